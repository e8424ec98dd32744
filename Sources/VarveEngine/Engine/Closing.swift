// The ends of an engine: checkpoint, close, and the close of an owner that goes.
//
// Invariants
// - Closing twice does nothing.
// - While other processes write, only the last of them ends the log with a CLOSE.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Writes what is in memory only as pages. Done by itself when the log's tail grows long.
    ///
    /// - Throws: `noSpace`, `ioFailed`; `poisoned` when the write failed half-way.
    public func checkpoint() throws(EngineError) { try checkpoint(leaving: 0) }

    /// - Parameter reserve: prepared bytes that have to be left on a full disk.
    func checkpoint(leaving reserve: UInt64) throws(EngineError) {
        try exclusively { writer throws(EngineError) in
            try checkWritable(writer)
            try checkpoint(&writer, leaving: reserve)
        }
    }

    /// Checkpoints, marks the log as complete, cuts unused zeros off and lets go of the files.
    /// Snapshots that are held stay readable until they go. Closing twice does nothing.
    ///
    /// While other processes have the store open for writing, only the last of them leaves it so.
    public func close() throws(EngineError) {
        try checkNotInBody()
        role.maintenance?.stop()
        defer { writeLiveCounters(isClosed: true) }
        try exclusively(turn: .tried) { writer throws(EngineError) in
            if case .closed = writer.status { return }
            defer {
                writer.status = .closed
                role.close()
            }
            guard !role.isReadOnly, case .open = writer.status, writer.hasTurn else { return }
            role.turn?.leave()
            if let turn = role.turn, !turn.isLastWriter {
                giveTurn(&writer)
            } else {
                try closeCleanly(&writer)
                share(durableEnd: writer.log.durableEnd)
            }
        }
    }

    /// For an owner that goes: closes now, or on another thread when the last reference went inside
    /// a callback of a commit, which must not wait for itself.
    public func closeForOwner() {
        if queue.isLedByThisThread || role.follower?.isFollowedByThisThread == true {
            _ = BackgroundThread.start { try? self.close() }
        } else {
            try? close()
        }
    }
}
