// What a writer knows of the log that it appends to.
//
// Invariants
// - Only the leader changes it, under the lock of the engine's writer.
// - `log`, `pending` and `generation` belong together: they are set together, by `stand`.
// - `logEnd` says what the file's last frame says. Whatever is appended takes it back to `.open`.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    enum Status {
        case open
        case poisoned(EngineError)
        case closed
    }

    /// What proves the newest commit, as the file ends.
    enum LogEnd {
        /// Nothing does: the next opening looks at it as after a crash.
        case open
        /// A CLOSE, while the store is open.
        case witnessed
        /// The CLOSE of a clean end: the object IDs that it names are those that were handed out.
        case closed
    }

    struct WriterState {
        var status: Status
        var log: LogWriter
        let epoch: UInt64
        /// The commit that told the account of this opening, and the turn that it belongs to.
        var epochNoted: (turn: Int, first: CommitNumber)?
        /// Stamps of transactions; never used twice in one opening.
        var stamp: UInt64 = TreeNode.cleanStamp + 1
        /// What the next transaction stands on: the newest commit that has its place in the log.
        var pending: StoreState
        /// The commit that `pending` stands on, while its saver waits for it.
        weak var newest: QueuedCommit?
        /// The file that the log goes on in; the newest state belongs to it.
        private(set) var generation: Generation
        /// Whether a checkpoint would write something: pages that only memory has, or that somebody
        /// wants a frame after the last one.
        private(set) var needsCheckpoint: Bool
        private(set) var logEnd: LogEnd
        /// What the newest frame at opening said of object IDs.
        let recordedHighWater: UInt64
        /// Whether files may be there whose making did not end; see `LogStart.Leftovers`.
        var mayHaveLeftovers = false
        /// Whether this process may write, and `log`, `pending` and `generation` are the newest.
        var hasTurn = true
        /// Whether the turn ends as soon as nothing is queued: nobody joins.
        var passesTurn = false
        /// Counts turns: what is prepared in one is worthless in the next.
        var turns = 0

        /// The writer of an opening.
        init(
            log: LogWriter,
            epoch: UInt64,
            stamp: UInt64 = TreeNode.cleanStamp + 1,
            state: StoreState,
            isClosed: Bool,
            recordedHighWater: UInt64
        ) {
            status = .open
            self.log = log
            self.epoch = epoch
            self.stamp = stamp
            pending = state
            generation = state.generation
            needsCheckpoint = state.isDirty
            logEnd = isClosed ? .closed : .open
            self.recordedHighWater = recordedHighWater
        }

        var isOpen: Bool { if case .open = status { true } else { false } }

        // MARK: Transitions

        /// The newest state is another one, and the log goes on elsewhere: at the end of another
        /// process's turn, or in a compacted file.
        mutating func stand(on state: StoreState, _ log: LogWriter, isWitnessed: Bool) {
            self.log = log
            pending = state
            newest = nil
            generation = state.generation
            needsCheckpoint = state.isDirty
            logEnd = isWitnessed ? .witnessed : .open
        }

        /// A commit, or a checkpoint that savers go on beside, has its place in the log.
        mutating func take(_ commit: QueuedCommit) {
            pending = commit.state
            newest = commit
            if commit.changes == nil {
                needsCheckpoint = false
            } else if commit.pages == nil {
                needsCheckpoint = true
            }
            wroteBehindItsEnd()
        }

        /// Every page of `clean` is in the file.
        mutating func checkpointed(as clean: StoreState) {
            pending = clean
            needsCheckpoint = false
        }

        /// Queued commits were refused: those before them are the newest again.
        mutating func fallBack(to state: StoreState) {
            log.rollbackToHanded()
            pending = state
            needsCheckpoint = true
        }

        mutating func wantCheckpoint() { needsCheckpoint = true }

        /// Bytes were appended after a CLOSE that may be there.
        mutating func wroteBehindItsEnd() { logEnd = .open }

        mutating func witnessed() { logEnd = .witnessed }

        mutating func closedCleanly() { logEnd = .closed }
    }
}
