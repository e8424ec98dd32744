// Following the savers: commits that came while a compaction copied.
//
// Invariants
// - Much at once is copied as the difference of two states, once; then commits follow as they are,
//   as row changes: that costs less than they cost their savers, however many pages they touch.
// - Each round copies what came during the one before, and is shorter: no sync per commit.
// - A round that leaves more than half of what the one before left slows savers down, each by some
//   milliseconds per commit, until the end of the run.
// - The last step runs under the writer lock. It finds little left, or gives the lock back: a saver
//   may just have left a commit that takes a second to copy, and the next saver waits. Rounds are
//   limited: then the last step takes what is left.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Log bytes that may be left for the last step.
    private static let restBytes: UInt64 = 64 << 10
    /// Rounds before the last step comes in any case.
    private static let roundsMax = 20
    private static let brakeMillisecondsMax = 16

    /// What came while the trees were copied, when only the newest commit is kept.
    /// - Returns: what the new file holds then.
    func firstRound(
        _ run: inout CompactionRun,
        from start: Snapshot
    ) throws(EngineError) -> Snapshot {
        let next = snapshot(for: PinOwner(.compaction))
        // Less is cheaper as row changes: the difference ends with a checkpoint, and that with all
        // the pages that a few random rows touch.
        let isMuch = Self.missing(start, next) > run.tailMax || run.skipsDamage
        guard isMuch, next.number > start.number else { return start }
        try Self.checkSameFile(start.state, next.state)
        try run.apply(from: start.state, to: next.state)
        return next
    }

    /// Places of one file say nothing of another.
    static func checkSameFile(_ old: StoreState, _ new: StoreState) throws(EngineError) {
        guard new.generation.header.fileID == old.generation.header.fileID else {
            throw EngineError(.busy, "another process has compacted the store meanwhile")
        }
    }

    /// Log bytes between two snapshots.
    private static func missing(_ done: Snapshot, _ next: Snapshot) -> UInt64 {
        missing(done.state, next.state)
    }

    private static func missing(_ done: StoreState, _ next: StoreState) -> UInt64 {
        next.frame.rawValue - min(next.frame, done.frame).rawValue
    }

    /// Whether savers would wait long if what is missing were copied under the writer lock.
    func isTooMuchForLastStep(_ done: StoreState, _ next: StoreState, rounds: Int) -> Bool {
        next.number > done.number && rounds < Self.roundsMax
            && Self.missing(done, next) > 4 * Self.restBytes
    }

    /// Copies commits until few are missing. The new file is synced, and has room.
    ///
    /// - Parameters:
    ///   - done: what the file holds.
    ///   - rounds: how many there were; the limit is for all together.
    func catchUp(
        _ run: inout CompactionRun,
        _ done: inout Snapshot,
        _ rounds: inout Int
    ) throws(EngineError) {
        var before: UInt64?
        var wait = 1
        try run.endRound(writesPages: false)
        if run.skipsDamage { return }
        while rounds < Self.roundsMax {
            let next = snapshot(for: PinOwner(.compaction))
            let missing = Self.missing(done, next)
            // With history the first round takes all: what is left without savers is whole.
            let isFirst = rounds == 0 && run.keepsHistory
            if next.number == done.number || missing < Self.restBytes && !isFirst { break }
            rounds += 1
            if let before, missing > before / 2 {
                compaction.brake(atLeast: wait)
                wait = min(wait * 2, Self.brakeMillisecondsMax)
            }
            before = missing
            try run.copyCommits(from: done.state, to: next.state)
            try run.endRound(writesPages: isFirst)
            done = next
        }
    }
}

extension CompactionRun {
    /// Copies the commits between two states of the old file, one by one.
    mutating func copyCommits(
        from old: StoreState,
        to new: StoreState
    ) throws(EngineError) {
        try Engine.checkSameFile(old, new)
        guard new.number > old.number else { return }
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
                try apply(chain.commit(at: place), chain)
            }
        }
        guard state.number == new.number else {
            throw .damaged("the chain of commits ends at \(state.number.rawValue)")
        }
    }
}

extension CommitChain {
    /// Epoch, clock, author and counts of a commit, for the checkpoint that stands for it.
    func record(of number: CommitNumber) throws(EngineError) -> CommitRecord {
        if let frame = try frame(of: number) {
            var record = frame.record
            if frame.header.flags.contains(.settle),
                let last = try Self.absorbed(by: frame).last
            {
                record.epoch = last.epoch
                record.clockMicroseconds = last.timeMicroseconds
                record.author = last.author
            }
            return record
        }
        // The first checkpoint of this file stands for it.
        return try oldest().record
    }
}
