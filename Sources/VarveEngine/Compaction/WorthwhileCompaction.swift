// When a compaction is worth its work.
//
// Invariants
// - What counts is what it would give back: history that is to be kept does not.
// - What the last run left does not count again, so that a run follows a run only when there is
//   more to give back.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Bytes that a compaction would give back now: in front of the newest checkpoint. After a
    /// compaction of this opening the room in pages counts, too.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(trees) when the newest commit alone is kept, else O(checkpoints kept).
    public func reclaimableBytes() throws(EngineError) -> UInt64 {
        let state = published.withLock { $0.state }
        if options.retention == .newest { return reclaimable(state) }
        let oldest = try oldestRetained(state)
        let chain = try CommitChain(state)
        var base = try chain.oldest()
        if let found = try chain.stretch({ $0.number <= oldest }) { base = found.base }
        let used = compaction.compacted(base.record.liveBytes, of: state)
        return base.offset.rawValue - min(base.offset.rawValue, FileHeader.logStart.rawValue + used)
    }

    /// The same if no earlier commit were kept: never less.
    private func reclaimable(_ state: StoreState) -> UInt64 {
        let used = FileHeader.logStart.rawValue + compaction.compacted(state.liveBytes, of: state)
        return state.baseFrame.rawValue - min(state.baseFrame.rawValue, used)
    }

    /// Compacts when more than half of the file can be given back, at least
    /// `EngineOptions.compactionDeadBytesMin`, and so much more than the last run left, or twice
    /// that; or when packing the rows makes an eighth of the file free, and a 16th of that.
    ///
    /// - Parameter isCancelled: as in `compact`.
    /// - Returns: nil when it was not worthwhile.
    /// - Throws: as `compact`. What failed is tried again only when there is more to give back.
    public func compactIfWorthwhile(
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> CompactionReport? {
        if let report = try compactDeadBytes(isCancelled) { return report }
        if try worthwhilePackingBytes(isCancelled) == nil { return nil }
        return try compact(.stop, pace: nil, { _ in }, isCancelled)
    }

    /// The same without a look at how rows would be packed: for savers, who do not wait for that.
    func compactDeadBytes(
        _ isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> CompactionReport? {
        guard let bytes = try worthwhileBytes() else { return nil }
        return try compact(toGiveBack: bytes, pace: nil, isCancelled)
    }

    /// The same on the maintenance thread.
    ///
    /// - Parameter known: what it would give back, when that is known to be enough.
    /// - Returns: whether it ran, to whatever end.
    func compactIfWorthwhile(_ thread: MaintenanceThread, toGiveBack known: UInt64?) -> Bool {
        guard let bytes = known ?? ((try? worthwhileBytes()) ?? nil) else { return false }
        // The store is as it was, or poisoned: the next save says so.
        _ = try? compact(toGiveBack: bytes, pace: CompactionPace(self, thread)) {
            thread.isStopping
        }
        return true
    }

    /// Compacts on the maintenance thread where packing rows makes the file much smaller.
    ///
    /// - Returns: whether it ran, to whatever end. What was suspended is tried again; what failed
    ///   otherwise only once the file grew.
    func packIfWorthwhile(_ thread: MaintenanceThread) -> Bool {
        do throws(EngineError) {
            let bytes = try worthwhilePackingBytes { thread.isStopping }
            if bytes == nil { return false }
            _ = try compact(.stop, pace: CompactionPace(self, thread), { _ in }) {
                thread.isStopping
            }
        } catch {
            // As above.
            if error.code == Suspension.error.code { compaction.forgetRowLook() }
        }
        return true
    }

    private func compact(
        toGiveBack bytes: UInt64,
        pace: CompactionPace?,
        _ isCancelled: () -> Bool
    ) throws(EngineError) -> CompactionReport {
        do throws(EngineError) {
            return try compact(.stop, pace: pace, { _ in }, isCancelled)
        } catch {
            if error.code != .cancelled && error.code != .busy {
                compaction.note(reclaimable: bytes)
            }
            throw error
        }
    }

    /// What a compaction would give back, if that is worthwhile.
    private func worthwhileBytes() throws(EngineError) -> UInt64? {
        if role.isReadOnly || options.retention == .all || compaction.isRunning { return nil }
        let state = published.withLock { $0.state }
        // Usually this says no, and nothing was read.
        guard isEnough(reclaimable(state), of: state.frame) else { return nil }
        if options.retention != .newest {
            let isTime = compaction.shouldLook(
                file: state.frame.rawValue,
                step: options.compactionDeadBytesMin / 4,
                now: options.environment.monotonicNanoseconds()
            )
            if !isTime { return nil }
        }
        let bytes = try reclaimableBytes()
        return isEnough(bytes, of: state.frame) ? bytes : nil
    }

    /// The same for the moment after a checkpoint that is due: what the file holds now is dead
    /// then but for what the state needs. Nil when history is to be kept: it would have to be read.
    ///
    /// - Complexity: O(changed pages).
    func worthwhileBytes(behindCheckpointOf state: StoreState, at end: FileOffset) -> UInt64? {
        if role.isReadOnly || options.retention != .newest || compaction.isRunning { return nil }
        let pages = state.changedPageBytes
        let file = FileOffset(end.rawValue + pages)
        let live = compaction.compacted(state.liveBytes(withPages: pages), of: state)
        let used = FileHeader.logStart.rawValue + live
        let bytes = file.rawValue - min(file.rawValue, used)
        return isEnough(bytes, of: file) ? bytes : nil
    }

    private func isEnough(_ bytes: UInt64, of file: FileOffset) -> Bool {
        // What the last run left under the load of savers goes with the next, but is no reason for
        // it: there must be as much again, or the least that is worthwhile.
        let (left, least) = (compaction.leftOver, options.compactionDeadBytesMin)
        let (more, overflow) = left.addingReportingOverflow(min(left, least))
        return bytes >= max(overflow ? .max : more, least) && bytes > file.rawValue / 2
    }
}
