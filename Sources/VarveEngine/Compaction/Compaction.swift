// Compaction: the store once more in a new file, while it is read and written.
//
// Invariants
// - No commit is acknowledged in the new file before the directory that names it is synced, and the
//   first bytes after its end say so (Recovery/NewFile.swift).
// - Until the rename the store is untouched: any failure removes the new file and nothing else.
// - From the rename to the sync of the directory either file may be the store after a crash: both
//   hold every acknowledged commit. If that sync fails the engine is poisoned.
// - Snapshots of the old file go on reading it; it goes with the last of them.
// - What savers wait for is little: the commits of some milliseconds, as row changes. No code of
//   the caller's runs meanwhile.

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
    /// Times it caught up with savers before the last step.
    public var rounds: Int
    /// Commits that were copied while savers waited.
    public var commitsInLastStep: UInt64
    /// Bytes of the new file that were written while savers waited.
    public var bytesInLastStep: UInt64
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
    /// Runs beside readers and writers; writers wait only for the last commits and the rename, and
    /// some milliseconds each when they are so fast that it cannot catch up otherwise. What is kept
    /// is `EngineOptions.retention`; commits of the last moments may be kept besides. Blob files
    /// stay where they are; those that nothing needs any more are removed after it.
    ///
    /// - Parameters:
    ///   - damage: what to do about damaged pages.
    ///   - progress: called now and then on this thread, while savers go on.
    ///   - isCancelled: asked now and then, but not while savers wait for the last step; true ends
    ///     it and leaves the store as it is.
    /// - Throws: `busy` when one is running, `cancelled`, `noSpace`, `damaged` with the frame,
    ///   `ioFailed`, `readOnly`, `closed`: the store is as it was. `poisoned`: the new file may
    ///   be in place; every acknowledged commit is in both.
    /// - Complexity: O(live bytes + commits kept). Memory: at most 40 MiB, and the nodes that
    ///   commits change meanwhile, up to `EngineOptions.changedBytesMax`, beside those of the
    ///   old file. Needs room on the disk for both files.
    public func compact(
        damage: CompactionDamage = .stop,
        progress: (CompactionProgress) -> Void = { _ in },
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> CompactionReport {
        try compact(damage, pace: nil, progress, isCancelled)
    }

    func compact(
        _ damage: CompactionDamage,
        pace: CompactionPace?,
        _ progress: (CompactionProgress) -> Void,
        _ isCancelled: () -> Bool
    ) throws(EngineError) -> CompactionReport {
        try exclusively { writer throws(EngineError) in try checkWritable(writer) }
        try compaction.begin()
        defer { compaction.end() }
        try suspension.beginCopy()
        defer { suspension.endCopy() }
        let report = try telling(options.compacted) { () throws(EngineError) in
            try withoutActuallyEscaping(progress) { progress throws(EngineError) in
                try withoutActuallyEscaping(isCancelled) { isCancelled throws(EngineError) in
                    try runCompaction(damage, pace, progress, isCancelled)
                }
            }
        }
        let state = published.withLock { $0.state }
        compaction.note(reclaimable: (try? reclaimableBytes()) ?? state.deadBytes)
        // A failure of this costs disk space only; a failed sync has poisoned the engine.
        try? sweepBehindCompaction()
        return report
    }

    private func runCompaction(
        _ damage: CompactionDamage,
        _ pace: CompactionPace?,
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
            var status = CompactionProgress(
                entriesDone: 0,
                entries: oldest.state.entries,
                bytesWritten: 0
            )
            var calls = 0
            var run = CompactionRun(
                file: file,
                options: options,
                delegate: delegate,
                counters: counters,
                keepsHistory: options.retention != .newest && !skipsDamage,
                skipsDamage: skipsDamage,
                // In the background the processors are the app's.
                threads: pace == nil ? options.encodingThreads : 1
            ) { count, bytes throws(EngineError) in
                self.options.environment.yield(.compactionStep)
                status.entriesDone += count
                status.bytesWritten = bytes
                if isCancelled() { throw EngineError(.cancelled, "the compaction was cancelled") }
                if self.suspension.isEnding { throw Suspension.error }
                calls += 1
                if calls % 32 == 1 { progress(status) }
                pace?.breathe(self)
            }
            let report = try compact(&run, oldest, start, pace)
            status.bytesWritten = report.bytesAfter
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
        _ start: Snapshot,
        _ pace: CompactionPace?
    ) throws(EngineError) -> CompactionReport {
        options.environment.yield(.compactionBegin)
        try run.begin(with: oldest.state)
        if run.keepsHistory {
            run.describe(as: try CommitChain(start.state).record(of: oldest.number))
            try run.writeCheckpoint()
        }
        options.environment.yield(.compactionCopied)
        pace?.isCatchingUp = true
        var done = oldest
        var kept = oldest.number
        if !run.keepsHistory {
            done = try firstRound(&run, from: oldest)
            kept = done.number
            run.describe(as: try CommitChain(done.state).record(of: kept))
            if !run.skipsDamage { try run.writeCheckpoint() }
        }
        var rounds = 0
        var report: CompactionReport?
        while report == nil {
            try catchUp(&run, &done, &rounds)
            options.environment.yield(.compactionCaughtUp)
            let (commits, bytes) = (run.commits, run.file.log.end.rawValue)
            report = try lastStep(&run, done, &kept, rounds: rounds)
            report?.commitsInLastStep = run.commits - commits
            if let after = report?.bytesAfter {
                report?.bytesInLastStep = after - min(bytes, after)
            }
        }
        guard var report else { preconditionFailure("the loop ends with one") }
        // Its nodes give way; what old snapshots read comes back.
        start.state.generation.nodes.evictAll()
        report.oldest = kept
        report.rounds = rounds
        counters.compactionLastStepBytes.max(report.bytesInLastStep, ordering: .relaxed)
        return report
    }

    /// What is left, under the writer lock, and the rename. Nil when so much is left that savers
    /// would wait long.
    private func lastStep(
        _ run: inout CompactionRun,
        _ done: Snapshot,
        _ kept: inout CommitNumber,
        rounds: Int
    ) throws(EngineError) -> CompactionReport? {
        try exclusively { writer throws(EngineError) -> CompactionReport? in
            try checkWritable(writer)
            let newest = published.withLock { $0.state }
            run.isLastStep = true
            if run.skipsDamage {
                // Row changes may meet rows that are lost.
                kept = newest.number
                try Self.checkSameFile(done.state, newest)
                try run.apply(from: done.state, to: newest)
                try run.forgetEpochs()
                writer.epochNoted = nil
                run.describe(as: try CommitChain(newest).record(of: kept))
                try run.writeCheckpoint()
            } else if isTooMuchForLastStep(done.state, newest, rounds: rounds) {
                run.isLastStep = false
                return nil
            } else {
                try run.copyCommits(from: done.state, to: newest)
            }
            try run.end(objectIDHighWater: objectIDHighWater)
            return try putInPlace(run, newest, &writer)
        }
    }

    // MARK: The new file becomes the store

    private func putInPlace(
        _ run: CompactionRun,
        _ old: StoreState,
        _ writer: inout WriterState
    ) throws(EngineError) -> CompactionReport {
        let generation = run.file.generation
        let recovered = try run.check(against: old)
        let mark = names.mark
        options.environment.yield(.compactionRename)
        do throws(IOError) {
            try directory.rename(run.file.name, to: fileName, replacing: true)
        } catch {
            if (try? directory.exists(run.file.name)) == true { throw .io(error) }
            throw poison(&writer, Self.inDoubt(error))
        }
        options.environment.yield(.compactionDirectory)
        do throws(IOError) {
            try names.sync(since: mark)
        } catch {
            throw poison(&writer, Self.inDoubt(error))
        }
        options.environment.yield(.compactionWitness)
        var log = LogWriter(behind: recovered, in: generation, options, counters)
        if run.file.preparedEnd > log.end { log.room.pass(run.file.preparedEnd) }
        do throws(IOError) {
            try log.proveName(behind: recovered, epoch: writer.epoch, options.environment)
        } catch {
            throw poison(&writer, Self.inDoubt(error))
        }
        let before = writer.log.end.rawValue
        // Stamps of nodes in memory: no transaction to come may take them for its own.
        writer.stamp = max(writer.stamp, run.stamp)
        writer.stand(on: run.state, log, isWitnessed: true)
        // `.relaxed` commits, too: the new file was synced with all of them.
        _ = published.withLock { $0.show(run.state, isDurable: true) }
        pastStates.removeAll()
        let after = recovered.newest.end.rawValue
        counters.compactions.add(1, ordering: .relaxed)
        counters.compactionBytesReclaimed.add(before - min(before, after), ordering: .relaxed)
        compaction.note(run.state)
        return CompactionReport(
            bytesBefore: before,
            bytesAfter: after,
            oldest: run.state.number,
            newest: run.state.number,
            generation: generation.header.generation,
            rounds: 0,
            commitsInLastStep: 0,
            bytesInLastStep: 0,
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

extension CompactionRun {
    /// What recovery says of the new file, which must be `old` whole, before anybody relies on it.
    func check(against old: StoreState) throws(EngineError) -> RecoveredLog {
        let log = file.generation.log
        let recovered = try Recovery(scan: LogScan(log: log, size: log.size())).run()
        guard recovered.isClosed, recovered.proven.number == old.number,
            recovered.proven.offset == state.frame
        else { throw .damaged("the compacted file does not end with its newest commit") }
        guard damage.isEmpty else { return recovered }
        for id in Set(old.trees.keys).union(state.trees.keys) where id != .droppedBlobs {
            guard old.trees[id]?.rows == state.trees[id]?.rows else {
                throw .damaged("tree \(id.rawValue) of the compacted file has lost entries")
            }
        }
        return recovered
    }
}
