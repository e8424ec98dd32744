// Which commits a compaction keeps.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// The oldest commit that the options want kept, at most `newest`.
    ///
    /// - Complexity: O(checkpoints of the retained span).
    func oldestRetained(_ newest: StoreState) throws(EngineError) -> CommitNumber {
        switch options.retention {
        case .newest: return newest.number
        case .commits(let count):
            let kept = UInt64(max(count, 1)) - 1
            return CommitNumber(newest.number.rawValue - min(kept, newest.number.rawValue))
        case .all: return CommitNumber(0)
        case .days(let days):
            let span = Int64(max(days, 0)).multipliedReportingOverflow(by: 86_400_000_000)
            let now = options.environment.wallClockMicroseconds()
            let (limit, underflow) = now.subtractingReportingOverflow(span.partialValue)
            if span.overflow || underflow { return CommitNumber(0) }
            let chain = try CommitChain(newest)
            guard let found = try chain.stretch({ $0.clockMicroseconds <= limit }) else {
                return CommitNumber(0)
            }
            let places = try chain.places(from: found.base, to: found.later) {
                $0.clockMicroseconds <= limit
            }
            guard let last = places.last else { return found.base.number }
            return max(found.base.number, try chain.commit(at: last).number)
        case .bytes(let bytes):
            let chain = try CommitChain(newest)
            var oldest = newest.number
            var frame = try chain.commit(at: chain.newest)
            let end = frame.end.rawValue
            while end - frame.offset.rawValue <= bytes {
                if frame.isBase { oldest = frame.number }
                guard let base = try chain.base(before: frame) else { break }
                frame = base
            }
            return oldest
        }
    }

    /// The state of the oldest commit to keep, pinned.
    func retained(_ newest: Snapshot) throws(EngineError) -> Snapshot {
        let oldest = try oldestRetained(newest.state)
        if oldest >= newest.number { return newest }
        let first = try retainedCommits().lowerBound
        do throws(EngineError) {
            return try snapshot(at: max(oldest, first), for: PinOwner(.compaction))
        } catch {
            guard error.code == .notRetained else { throw error }
            // A commit that a settle wrote again together with later ones: the newest of them.
            let chain = try CommitChain(newest.state)
            var next: ScannedCommit? = try chain.commit(at: chain.newest)
            var settle = newest.number
            while let frame = next, frame.number > oldest {
                settle = frame.number
                next = try chain.before(frame)
            }
            return try snapshot(at: settle, for: PinOwner(.compaction))
        }
    }
}
