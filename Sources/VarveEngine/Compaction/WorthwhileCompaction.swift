// When a compaction is worth its work.
//
// Invariants
// - Only what a compaction can give back counts: bytes in front of the oldest kept commit's
//   checkpoint that its state does not need. So no run follows another without new garbage.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

extension Engine {
    /// Bytes that a compaction would give back now.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(1) when the newest commit alone is kept, else O(checkpoints kept).
    public func reclaimableBytes() throws(EngineError) -> UInt64 {
        let state = published.withLock { $0.state }
        if options.retention == .newest { return state.deadBytes }
        let oldest = try oldestRetained(state)
        let chain = try CommitChain(state)
        var base = try chain.oldest()
        if let found = try chain.stretch({ $0.number <= oldest }) { base = found.base }
        let used = FileHeader.logStart.rawValue + base.record.liveBytes
        return base.offset.rawValue - min(base.offset.rawValue, used)
    }

    /// Compacts when more than half of the file can be given back, at least
    /// `EngineOptions.compactionDeadBytesMin`, and so much more than after the last run.
    ///
    /// - Parameter isCancelled: as in `compact`.
    /// - Returns: nil when it was not worthwhile.
    /// - Throws: as `compact`. What failed is tried again only when there is more to give back.
    public func compactIfWorthwhile(
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> CompactionReport? {
        if isReadOnly { return nil }
        let bytes = try reclaimableBytes()
        let file = published.withLock { $0.state.frame.rawValue }
        let (wanted, overflow) = compaction.deadBytesAfterLast.addingReportingOverflow(
            options.compactionDeadBytesMin
        )
        guard !overflow, bytes >= wanted, bytes > file / 2 else { return nil }
        do throws(EngineError) {
            return try compact(isCancelled: isCancelled)
        } catch {
            if error.code != .cancelled && error.code != .busy { compaction.note(deadBytes: bytes) }
            throw error
        }
    }
}
