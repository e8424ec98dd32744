// What maintenance does, and when.
//
// Invariants
// - Nothing here is needed for a commit to be durable; without it commits cost more, no less.
// - A checkpoint after which the file would be worth a compaction is not made: that
//   takes its place, and writes each page once.
// - A failed sync poisons the engine, whoever made it.

internal import Synchronization
internal import VarveBase
internal import VarveIO

extension Engine {
    /// What the commit that was just queued leaves to do. Called under the writer lock.
    func needs(_ writer: borrowing WriterState) -> MaintenanceNeeds {
        var needs = MaintenanceNeeds()
        if writer.needsCheckpoint { needs.checkpoint = writer.log.tailBytes > dueTail(writer) }
        if role.maintenance != nil { needs.room = writer.log.room.isLow(behind: writer.log.end) }
        return needs
    }

    /// After a commit: the saver's own work when there is no thread.
    func arrange(_ needs: MaintenanceNeeds, after commit: QueuedCommit) {
        var needs = needs
        needs.sync = commit.durability == .relaxed
        if let maintenance = role.maintenance {
            let now = needs.sync ? options.environment.monotonicNanoseconds() : 0
            maintenance.note(needs, at: now)
        } else if needs.checkpoint {
            // The commit stands whatever happens here; a failure shows at the next write.
            try? checkpoint(leaving: options.maintenanceReserve)
            if options.compactsAutomatically { _ = try? compactDeadBytes() }
        }
        // A compaction cannot catch up otherwise.
        let wait = compaction.brakeMilliseconds
        if wait > 0 { _ = Parker().park(milliseconds: wait) }
    }

    /// One round of the maintenance thread.
    ///
    /// - Parameter isWoken: whether somebody asked for it, who may find nothing left to do: the
    ///   round before has done it.
    /// - Returns: milliseconds until the next one, if nothing wakes the thread before.
    func maintain(
        _ needs: MaintenanceNeeds,
        on thread: MaintenanceThread,
        isWoken: Bool
    ) -> Int {
        writeLiveCounters()
        giveBackIfScarce()
        let before = published.withLock { $0.state.number }
        var pause = options.idleMilliseconds
        var needs = needs
        var isIdle = false
        let replaced = needs.checkpoint ? compactionInsteadOfCheckpoint(thread) : nil
        if replaced != nil { needs.checkpoint = false }
        do throws(EngineError) {
            pause = try serve(needs, on: thread)
            // Idle: nothing was asked for, and nothing was committed since the last round.
            let last = idle.withLock { last in
                defer { last = before }
                return last
            }
            if needs.isEmpty, !isWoken, replaced == nil, before == last {
                _ = published.withLock { $0.forgetRetired() }
                try goIdle(thread)
                isIdle = true
            }
        } catch {
            // Refusals come again at the next commit; a failed sync has poisoned the engine.
        }
        // While commits keep coming, too: the file would grow without bound.
        // Beside other writers it waits: their rows would have to be caught up with turn by turn.
        let packs = compaction.wasIdle(isIdle, rounds: Self.idleRoundsToPack)
        let ran =
            mayCompact(thread)
            && (compactIfWorthwhile(thread, toGiveBack: replaced)
                || packs && packIfWorthwhile(thread))
        if !ran, replaced == nil { return pause }
        // What was asked for meanwhile may have woken the thread already.
        var later = thread.takeNeeds()
        // A compaction that failed leaves the checkpoint to be made, and one that followed savers
        // may leave a tail that calls for one. Else the next saver would write it.
        later.checkpoint = true
        return (try? serve(later, on: thread)) ?? pause
    }

    /// Idle rounds before rows are packed: a program that waits between two imports is not idle.
    private static let idleRoundsToPack = 4

    private func mayCompact(_ thread: MaintenanceThread) -> Bool {
        options.compactsAutomatically && isAlone && !thread.isStopping
    }

    /// What a compaction would give back after the checkpoint that is due, if it is worthwhile.
    private func compactionInsteadOfCheckpoint(_ thread: MaintenanceThread) -> UInt64? {
        guard mayCompact(thread) else { return nil }
        let (state, end, isDue) = writer.withLock {
            ($0.pending, $0.log.end, $0.log.tailBytes > dueTail($0))
        }
        return isDue ? worthwhileBytes(behindCheckpointOf: state, at: end) : nil
    }

    /// Does what savers asked for. Called on the maintenance thread, with no lock held.
    /// - Returns: milliseconds until commits must be synced, or until an idle round.
    func serve(
        _ needs: MaintenanceNeeds,
        on thread: MaintenanceThread
    ) throws(EngineError) -> Int {
        var pause = options.idleMilliseconds
        if needs.sync {
            let wait = thread.millisecondsToSync(
                options.relaxedSyncMilliseconds,
                now: options.environment.monotonicNanoseconds()
            )
            if wait == 0 { try syncRelaxed() } else { pause = min(wait, pause) }
        }
        if needs.room { try growRoom(thread) }
        // Commits that came while the last one was written asked for it, too.
        if needs.checkpoint, writer.withLock({ $0.log.tailBytes > dueTail($0) }) {
            try checkpointBesideSavers(thread)
        }
        return pause
    }

    /// Zeros after the log, a piece at a time.
    private func growRoom(_ thread: MaintenanceThread) throws(EngineError) {
        while !thread.isStopping {
            // All of one file: a compaction may put another in its place at any time.
            let (room, end, generation) = writer.withLock {
                ($0.log.room, $0.log.end, $0.generation)
            }
            let goesOn: Bool
            do throws(EngineError) {
                let file = try maintenanceFile(thread, generation)
                goesOn = try room.growOnePiece(behind: end, file: file)
            } catch {
                throw poisonIfSyncFailed(error)
            }
            if !goesOn { return }
        }
    }

    /// The thread's own descriptor of a generation's file.
    ///
    /// - Throws: `ioFailed`, also when the name belongs to a newer file already.
    func maintenanceFile(
        _ thread: MaintenanceThread,
        _ generation: Generation
    ) throws(EngineError) -> any StoreFile {
        do throws(IOError) {
            return try thread.file(like: generation.file, directory, fileName)
        } catch {
            throw .io(error)
        }
    }

    /// Any failed sync of the store file may be the only report of a lost write.
    func poisonIfSyncFailed(_ error: EngineError) -> EngineError {
        guard error.code == .poisoned else { return error }
        return writer.withLock { poison(&$0, error) }
    }

    /// Commits that were visible before their sync.
    private func syncRelaxed() throws(EngineError) {
        let isBehind = writer.withLock { $0.hasTurn && $0.log.handedEnd > $0.log.durableEnd }
        guard isBehind else { return }
        try exclusively { writer throws(EngineError) in
            if case .open = writer.status { try syncHanded(&writer) }
        }
    }

    /// In one turn when other processes may write: a turn that ends in between would make the pages
    /// worthless.
    private func checkpointBesideSavers(_ thread: MaintenanceThread) throws(EngineError) {
        let keepsTurn = role.turn.map { $0.isHeard && isAlone } ?? true
        if keepsTurn, writer.withLock({ $0.hasTurn }) { return try checkpointInBackground(thread) }
        try exclusively { writer throws(EngineError) in
            try checkWritable(writer)
            // Another process may have been faster.
            guard writer.log.tailBytes > options.idleTailBytes else { return }
            try checkpoint(&writer, leaving: options.maintenanceReserve)
        }
    }

    /// Nobody has committed for a while: a checkpoint when it is worth one, and a witness. Then the
    /// turn ends: an idle process holds nobody up, even when it is stopped.
    private func goIdle(_ thread: MaintenanceThread) throws(EngineError) {
        let (isWorthIt, isDone, hasTurn) = writer.withLock {
            (
                $0.needsCheckpoint && $0.log.tailBytes > options.idleTailBytes,
                $0.logEnd != .open || !$0.isOpen, $0.hasTurn
            )
        }
        // Beside others the process that wrote last does it, while it has the turn.
        if !hasTurn, isDone || !isAlone { return }
        if isWorthIt { try checkpointBesideSavers(thread) }
        if !isAlone { return endIdleTurn() }
        defer { endIdleTurn() }
        try exclusively { writer throws(EngineError) in try witness(&writer) }
    }

    /// Whether no other process may write, whoever has the turn.
    private var isAlone: Bool { role.turn.map { $0.company() < .writers } ?? true }

    private func endIdleTurn() {
        guard role.turn != nil else { return }
        queue.claimLead()
        writer.withLock { writer in
            if queue.isEmpty { giveTurn(&writer) }
        }
        endLead([])
    }
}
