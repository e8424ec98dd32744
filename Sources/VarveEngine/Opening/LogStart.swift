// The one way in which a log is read again and gone on with: by an opening, and by a turn after a
// process that did not come to its end.
//
// Invariants
// - A process that may write has the turn before the log is read, and from then on no process
//   believes the shared page.
// - What is not proven is written again before anything is appended. A reader is shown it, and told
//   which commit is the newest that is proven.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// What is known before the log is read.
struct LogStart {
    /// How frames become states; of two stamps that are not used yet it has the first.
    let replay: Replay
    let names: DirectoryNames
    /// The store's name without ".varve".
    let store: String
    let budget: NodeBudget
    let epoch: UInt64
    let isReadOnly: Bool
    /// Whether this opening has made the file: then its name is durable.
    let isNew: Bool
    let leftovers: Leftovers
    /// Whether the file's name may be that of another file after a crash, however its log ends: a
    /// compaction may not have come to its end.
    let syncsName: Bool

    /// What becomes of files whose making did not end.
    enum Leftovers {
        /// They may be another process's, that is at work.
        case stay
        case goAtOnce
        /// To list a folder is much of what an opening costs that finds a log that was closed.
        /// They go before anything is written, or with the end.
        case waitForWriting
    }

    /// Where things stand when it was read.
    struct Begun {
        let recovered: RecoveredLog
        let state: StoreState
        /// Where the log goes on.
        let log: LogWriter
        /// Whether all that was not proven was written again.
        let isSettled: Bool
    }

    /// Reads the log, and writes again what a writer may not leave in doubt.
    ///
    /// - Parameter highWater: the first object ID that nobody has, from what was found.
    /// - Throws: `damaged`, `newestCommitDamaged`, `formatTooNew`, `noSpace`, `ioFailed`.
    /// - Complexity: O(log bytes since the last checkpoint), and of the store when its name is not
    ///   proven.
    func run(highWater: (RecoveredLog) -> UInt64) throws(EngineError) -> Begun {
        // 1. The newest commit, and what proves it.
        var recovered = try read()
        // What follows a crash needs room on the disk, most of all a copy; and openings that are
        // killed while they copy would leave one each.
        let copies = !isReadOnly && !isNew && !recovered.provesName
        let waits = leftovers == .waitForWriting && recovered.isClosed && !copies
        if leftovers != .stay, !waits { try Engine.removeLeftovers(store, in: names.directory) }
        // 2. A file whose name nothing proves is written once more.
        var replay = replay
        if copies {
            let file = NewFile(
                replay: replay,
                names: names,
                store: store,
                budget: budget,
                epoch: epoch
            )
            (replay.generation, recovered) = try file.write(recovered)
        }
        // 3. Its state: roots, then row changes.
        var state = try replay.state(of: recovered)
        // Behind a checkpoint that the state does not start from, frames count pages that it does
        // not have.
        let base = recovered.effectiveBase.offset
        let isCounted = recovered.unproven.allSatisfy { frame in
            frame.header.kind != .checkpoint || frame.offset <= base
        }
        if isCounted { state.liveBytes = recovered.newest.record.liveBytes }
        // 4. Where the log goes on.
        var log = LogWriter(
            behind: recovered,
            in: replay.generation,
            replay.options,
            replay.counters
        )
        // 5. What is not proven is written again.
        let highWater = highWater(recovered)
        let settles =
            !isReadOnly && !recovered.unsettled.isEmpty
            && !replay.options.environment.leavesOut(.settle)
        if settles {
            state = try settle(state, recovered, replay, highWater, &log)
            let count = UInt64(recovered.unsettled.count)
            replay.counters.settledCommits.add(count, ordering: .relaxed)
        }
        return Begun(recovered: recovered, state: state, log: log, isSettled: settles)
    }

    /// The log's tail as it is now. A reader has no turn: a writer may cut off what a dead one left
    /// while he reads it; then he reads again.
    static func scanned(
        _ reader: LogReader,
        isReadOnly: Bool
    ) throws(EngineError) -> RecoveredLog {
        for _ in 0..<8 {
            let size = try reader.size()
            do throws(EngineError) {
                return try Recovery(scan: LogScan(log: reader, size: size)).run()
            } catch {
                guard isReadOnly, try reader.size() < size else { throw error }
            }
        }
        throw EngineError(.ioFailed, "the store file became shorter each time it was read")
    }

    /// The log's tail, for a writer after a sync and from the disk again.
    private func read() throws(EngineError) -> RecoveredLog {
        let reader = replay.generation.log
        let file = replay.generation.file
        var recovered = try Self.scanned(reader, isReadOnly: isReadOnly)
        if !isReadOnly, let place = recovered.writerFeatures {
            throw EngineError(
                .formatTooNew,
                "the store uses features that this library does not know; it can be opened for "
                    + "reading",
                place: place
            )
        }
        if isReadOnly || !syncsName,
            recovered.newest.header.kind == .close && recovered.isClosed
        {
            return recovered
        }
        if !isReadOnly {
            // `provesName` is what counts. An earlier library's compacted file does not say when
            // it got its name: the process may have died before it synced the directory.
            try Engine.io { () throws(IOError) in try names.sync(since: names.mark) }
        }
        if recovered.isClosed { return recovered }
        if !isReadOnly {
            // What was read may be in the system's memory only: a sync and a fresh read show the
            // disk's truth earlier. Neither proves anything; the settle does.
            try Engine.io { () throws(IOError) in try file.syncData() }
            file.adviseDontNeed()
        }
        // A read that goes wrong once must not make a torn tail of the newest commit: whoever sees
        // less than was seen before looks again.
        for _ in 0..<4 {
            let again = try Self.scanned(reader, isReadOnly: isReadOnly)
            if again.newest.offset >= recovered.newest.offset, again.dataEnd >= recovered.dataEnd {
                return again
            }
            recovered = again
        }
        throw EngineError(.ioFailed, "reads of the store's log contradict each other")
    }

    private func settle(
        _ state: StoreState,
        _ recovered: RecoveredLog,
        _ replay: Replay,
        _ highWater: UInt64,
        _ log: inout LogWriter
    ) throws(EngineError) -> StoreState {
        let options = replay.options
        var record = CommitRecord()
        record.number = state.number
        record.epoch = epoch
        record.clockMicroseconds = options.environment.wallClockMicroseconds()
        record.liveBytes = state.liveBytes
        record.objectIDHighWater = Engine.toldHighWater(highWater)
        record.schemaVersion = state.schemaVersion
        let settle = Settle(
            generation: state.generation,
            options: options,
            provenEnd: recovered.provenEnd
        )
        let mark = log.mark
        // A sync may say so, too: then a commit frame is there, and nothing goes after it.
        func foundNoRoom(_ error: EngineError) -> Bool {
            error.code == .noSpace && !log.isBroken && !log.hasHandedCommit
        }
        if try log.mayHold(settle.pageBytes(of: state, recovered), leaving: options.tailReserve) {
            do throws(EngineError) {
                return try settle.run(
                    state,
                    of: recovered,
                    record: record,
                    stamp: replay.stamp + 1,
                    &log
                )
            } catch {
                guard foundNoRoom(error) else { throw error }
                log.rollback(to: mark)
            }
        }
        if Settle.canBeChanges(recovered.unsettled),
            try log.mayHold(settle.bytes(of: recovered), leaving: settle.reserve)
        {
            do throws(EngineError) {
                return try settle.runAsChanges(
                    recovered,
                    to: state,
                    objectIDHighWater: record.objectIDHighWater,
                    replay,
                    &log
                )
            } catch {
                guard foundNoRoom(error) else { throw error }
                log.rollback(to: mark)
            }
        }
        try settle.runInPlace(recovered, &log)
        replay.counters.settledInPlace.add(UInt64(recovered.unsettled.count), ordering: .relaxed)
        return state
    }
}
