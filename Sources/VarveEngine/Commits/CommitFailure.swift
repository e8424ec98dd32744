// What becomes of commits when a write or a sync fails.
//
// Invariants
// - Before a commit frame is handed over, a failure leaves the store as it was.
// - From then on its outcome is unknown, nothing is written any more, and every commit that stands
//   on the state of a failed one fails too.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Before the commit frame was handed over: the store is as it was.
    func giveUp(
        _ writer: inout WriterState,
        backTo mark: LogWriter.Mark,
        _ error: EngineError
    ) -> EngineError {
        writer.log.rollback(to: mark)
        // Others' commits may have been in the write, or the sync of room may have failed.
        if writer.log.isBroken || error.code == .poisoned { return poison(&writer, error) }
        return error
    }

    /// The write of the batch failed, or there is none any more.
    func refuse(_ batch: inout Batch, _ error: EngineError, _ writer: inout WriterState) {
        if writer.log.isBroken || error.code == .poisoned {
            _ = poison(&writer, error)
        }
        let handed = writer.log.handedEnd
        var kept: [QueuedCommit] = []
        for commit in batch.commits {
            if commit.end <= handed {
                // All of it is with the system: the sync decides, unless the write itself failed.
                if case .open = writer.status {
                    kept.append(commit)
                } else {
                    batch.outcomes.append((commit, .failed(Self.unknown(commit, error))))
                }
            } else {
                let failure =
                    if case .open = writer.status { error } else {
                        Self.notWritten(commit, error)
                    }
                batch.outcomes.append((commit, .failed(failure)))
            }
        }
        batch.commits = kept
        writer.fallBack(to: kept.last?.state ?? published.withLock { $0.state })
    }

    /// The sync failed: nobody knows what of the batch is on disk, and commits that stand on it
    /// fail too. Or the batch went into a file that is not the store's any more.
    func fail(_ batch: inout Batch, _ error: EngineError, _ writer: inout WriterState) {
        _ = poison(&writer, error)
        let handed = writer.log.handedEnd
        for commit in batch.commits + queue.takeAll() {
            let failure =
                commit.end <= handed
                ? Self.unknown(commit, error) : Self.notWritten(commit, error)
            batch.outcomes.append((commit, .failed(failure)))
        }
        batch.commits = []
    }

    private static func unknown(_ commit: QueuedCommit, _ error: EngineError) -> EngineError {
        if error.code == .storeGone { return error }
        if commit.changes == nil {
            return EngineError(
                .poisoned,
                "a checkpoint failed while it was written; every commit is on disk "
                    + "(\(error.message))",
                cause: error
            )
        }
        return EngineError(
            .outcomeUnknown,
            "commit \(commit.state.number.rawValue) may or may not be on disk; open the store "
                + "again and ask for its outcome (\(error.message))",
            cause: error.cause ?? error,
            commit: CommitIdentity(epoch: commit.epoch, number: commit.state.number.rawValue)
        )
    }

    private static func notWritten(_ commit: QueuedCommit, _ error: EngineError) -> EngineError {
        if error.code == .storeGone { return error }
        return EngineError(
            .poisoned,
            "nothing of commit \(commit.state.number.rawValue) was written: one that it stands on "
                + "failed (\(error.message)); open the store again to write",
            cause: error
        )
    }

    /// No more writes through this engine. The first reason stays.
    func poison(_ writer: inout WriterState, _ error: EngineError) -> EngineError {
        if case .open = writer.status {
            writer.status = .poisoned(error)
            // Not while another thread's batch is on its way: it would be published after what
            // another process writes.
            if !queue.leavesTurnToLeader() { abandonTurn(&writer) }
        }
        return EngineError(.poisoned, error.message, cause: error)
    }
}
