// Compaction: the store once more in a new file, while it is read and written.
//
// Invariants
// - No commit is acknowledged in the new file before the directory that names it is synced.
// - Until the rename the store is untouched: any failure removes the new file and nothing else.
// - From the rename to the sync of the directory either file may be the store after a crash: both
//   hold every acknowledged commit. If that sync fails the engine is poisoned.
// - Snapshots of the old file go on reading it; it goes with the last of them.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// How far a compaction is.
public struct CompactionProgress: Sendable, Hashable {
    /// Entries of rows and indexes copied.
    public var entriesDone: UInt64
    /// Entries there are.
    public var entries: UInt64
    /// Bytes of the new file.
    public var bytesWritten: UInt64
}

/// What a compaction did.
public struct CompactionReport: Sendable, Hashable {
    /// Bytes of the log before.
    public var bytesBefore: UInt64
    /// Bytes of the log after.
    public var bytesAfter: UInt64
    /// The oldest commit in the new file.
    public var oldest: CommitNumber
    /// The newest one.
    public var newest: CommitNumber
    /// The file's generation.
    public var generation: UInt64
    /// What could not be copied; empty unless damage was to be skipped.
    public var damage: [DamagedRange]
}

/// What a compaction does when it meets a damaged page or value.
public enum CompactionDamage: Sendable {
    /// It ends and leaves the store as it is.
    case stop
    /// It leaves it out, keeps the newest commit alone, and the report names it. Indexes may then
    /// name rows that are gone, and rows values that are: the layer above rebuilds indexes.
    case skipDamaged
}

extension Engine {
    /// Copies what the store needs into a new file and puts that in the place of the old one.
    ///
    /// Runs beside readers and writers; writers wait only for the last commits and the rename.
    /// What is kept is `EngineOptions.retention`. Blob files stay where they are.
    ///
    /// - Parameters:
    ///   - damage: what to do about damaged pages.
    ///   - progress: called now and then on this thread.
    ///   - isCancelled: asked now and then; true ends it and leaves the store as it is.
    /// - Throws: `busy` when one is running, `cancelled`, `noSpace`, `damaged` with the frame,
    ///   `ioFailed`, `readOnly`, `closed`: the store is as it was. `poisoned`: the new file may
    ///   be in place; every acknowledged commit is in both.
    /// - Complexity: O(live bytes + commits kept). Memory: a few megabytes. Needs room on the disk
    ///   for both files.
    public func compact(
        damage: CompactionDamage = .stop,
        progress: (CompactionProgress) -> Void = { _ in },
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> CompactionReport {
        try exclusively { writer throws(EngineError) in try checkWritable(writer) }
        try compaction.begin()
        defer { compaction.end() }
        return try withoutActuallyEscaping(progress) { progress throws(EngineError) in
            try withoutActuallyEscaping(isCancelled) { isCancelled throws(EngineError) in
                try runCompaction(damage, progress, isCancelled)
            }
        }
    }

    private func runCompaction(
        _ damage: CompactionDamage,
        _ progress: @escaping (CompactionProgress) -> Void,
        _ isCancelled: @escaping () -> Bool
    ) throws(EngineError) -> CompactionReport {
        let start = snapshot(for: PinOwner(.compaction))
        let skipsDamage = if case .skipDamaged = damage { true } else { false }
        // History that cannot be read would stop it: then the newest commit alone is saved.
        let oldest = skipsDamage ? start : try retained(start)
        let file = try CompactedFile(
            beside: start.state.generation,
            in: directory,
            store: storeName,
            options: options,
            budget: nodeBudget,
            counters: counters
        )
        do throws(EngineError) {
            var status = CompactionProgress(entriesDone: 0, entries: 0, bytesWritten: 0)
            for id in oldest.state.trees.keys {
                status.entries += oldest.state.trees[id]?.rows ?? 0
            }
            var calls = 0
            var run = CompactionRun(
                file: file,
                options: options,
                delegate: delegate,
                counters: counters,
                keepsHistory: options.retention != .newest && !skipsDamage,
                skipsDamage: skipsDamage
            ) { count throws(EngineError) in
                status.entriesDone += count
                if isCancelled() { throw EngineError(.cancelled, "the compaction was cancelled") }
                calls += 1
                if calls % 32 == 1 { progress(status) }
            }
            let report = try compact(&run, oldest, start)
            progress(status)
            return report
        } catch {
            file.remove()
            throw error
        }
    }

    private func compact(
        _ run: inout CompactionRun,
        _ oldest: Snapshot,
        _ start: Snapshot
    ) throws(EngineError) -> CompactionReport {
        options.environment.yield("compaction.begin")
        try run.begin(with: oldest.state)
        if run.keepsHistory {
            run.describe(as: try record(of: oldest.number, CommitChain(start.state)))
            try run.writeCheckpoint()
        }
        var done = oldest
        // Without a sync for each commit it is faster than the writers, so little is left soon.
        for _ in 0..<8 {
            let next = snapshot(for: PinOwner(.compaction))
            if next.number == done.number { break }
            let missing =
                next.state.frame.rawValue - min(next.state.frame, done.state.frame).rawValue
            try catchUp(&run, from: done.state, to: next.state)
            done = next
            if missing < 64 << 10 { break }
        }
        options.environment.yield("compaction.caughtUp")
        try run.file.sync()
        return try exclusively { writer throws(EngineError) in
            try checkWritable(writer)
            let newest = published.withLock { $0.state }
            try catchUp(&run, from: done.state, to: newest)
            if !run.keepsHistory {
                run.describe(as: try record(of: newest.number, CommitChain(newest)))
            }
            try run.end(objectIDHighWater: objectIDHighWater)
            return try putInPlace(run, newest, oldest.number, &writer)
        }
    }

    /// Brings the new file from one state of the old one to a later one.
    private func catchUp(
        _ run: inout CompactionRun,
        from old: StoreState,
        to new: StoreState
    ) throws(EngineError) {
        guard new.number > old.number else { return }
        guard run.keepsHistory else { return try run.apply(from: old, to: new) }
        let chain = try CommitChain(new)
        // Stretches between two TREE or CKPT frames, newest first; then their commits in order.
        var bounds = [try chain.commit(at: chain.newest).offset]
        var frame = try chain.commit(at: chain.newest)
        while !frame.isBase || frame.number > old.number, let base = try chain.base(before: frame) {
            bounds.append(base.offset)
            frame = base
        }
        if bounds.count == 1 { bounds.append(frame.offset) }
        for index in bounds.indices.dropLast().reversed() {
            let base = try chain.commit(at: bounds[index + 1])
            let later = try chain.commit(at: bounds[index])
            for place in try chain.places(from: base, to: later, { $0.number > old.number }) {
                try run.apply(chain.commit(at: place), chain)
            }
        }
        guard run.state.number == new.number else {
            throw .damaged("the chain of commits ends at \(run.state.number.rawValue)")
        }
    }

    /// Epoch, clock, author and counts of a commit, for the checkpoint that stands for it.
    private func record(
        of number: CommitNumber,
        _ chain: CommitChain
    ) throws(EngineError) -> CommitRecord {
        if let frame = try chain.frame(of: number) {
            var record = frame.record
            if frame.header.flags.contains(.settle),
                let last = try CommitChain.absorbed(by: frame).last
            {
                record.epoch = last.epoch
                record.clockMicroseconds = last.timeMicroseconds
                record.author = last.author
            }
            return record
        }
        // The first checkpoint of this file stands for it.
        return try chain.oldest().record
    }

    // MARK: The new file becomes the store

    private func putInPlace(
        _ run: consuming CompactionRun,
        _ old: StoreState,
        _ oldest: CommitNumber,
        _ writer: inout WriterState
    ) throws(EngineError) -> CompactionReport {
        let generation = run.file.generation
        // What recovery would say of it is asked before anybody relies on it.
        let size = try generation.log.size()
        let recovered = try Recovery(scan: LogScan(log: generation.log, size: size)).run()
        guard recovered.isClosed, recovered.proven.number == old.number,
            recovered.proven.offset == run.state.frame
        else { throw .damaged("the compacted file does not end with its newest commit") }
        if run.damage.isEmpty {
            for id in Set(old.trees.keys).union(run.state.trees.keys) where id != .droppedBlobs {
                guard old.trees[id]?.rows == run.state.trees[id]?.rows else {
                    throw .damaged("tree \(id.rawValue) of the compacted file has lost entries")
                }
            }
        }
        options.environment.yield("compaction.rename")
        do throws(IOError) {
            try directory.rename(run.file.name, to: fileName, replacing: true)
        } catch {
            if (try? directory.exists(run.file.name)) == true { throw .io(error) }
            throw poison(&writer, Self.inDoubt(error))
        }
        options.environment.yield("compaction.directory")
        do throws(IOError) {
            try directory.sync()
        } catch {
            throw poison(&writer, Self.inDoubt(error))
        }
        let before = writer.log.end.rawValue
        writer.generation = generation
        writer.log = Self.logWriter(
            behind: recovered,
            generation.file,
            generation.header.fileSeed,
            options,
            counters
        )
        writer.pending = run.state
        writer.isDirty = false
        writer.isClosedCleanly = false
        writer.isWitnessed = true
        published.withLock { $0.show(run.state, isDurable: true) }
        // Its nodes give way; what old snapshots read comes back.
        old.generation.nodes.evictAll()
        let after = recovered.newest.end.rawValue
        counters.compactions.add(1, ordering: .relaxed)
        counters.compactionBytesReclaimed.add(before - min(before, after), ordering: .relaxed)
        compaction.note(deadBytes: after - min(after, run.state.liveBytes))
        return CompactionReport(
            bytesBefore: before,
            bytesAfter: after,
            oldest: run.keepsHistory ? oldest : run.state.number,
            newest: run.state.number,
            generation: generation.header.generation,
            damage: run.damage
        )
    }

    private static func inDoubt(_ error: IOError) -> EngineError {
        EngineError(
            .poisoned,
            "a compaction failed while its file became the store; every commit is in the old file "
                + "and in the new one (\(error.description))",
            cause: error
        )
    }
}

/// Whether a compaction runs, and what the last one left.
final class CompactionStatus: Sendable {
    private struct State {
        var isRunning = false
        var deadBytes: UInt64 = 0
    }
    private let state = Mutex(State())

    /// Dead bytes right after the last compaction of this opening.
    var deadBytesAfterLast: UInt64 { state.withLock { $0.deadBytes } }

    func begin() throws(EngineError) {
        let wasRunning = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        if wasRunning { throw EngineError(.busy, "a compaction of this store is running") }
    }
    func end() { state.withLock { $0.isRunning = false } }
    func note(deadBytes: UInt64) { state.withLock { $0.deadBytes = deadBytes } }
}
