// What opening finds: the newest commit, and whether what lies after it is a torn tail or damage.
//
// Invariants
// - Recovery writes nothing. What it accepts but cannot prove is written again by `settle`.
// - A sound commit is never passed over; damage is refused, never rolled back in silence.
// - Only a frame's `durableEnd` proves what lies below it.
// The argument stands in docs/Durability.md.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// The result of reading a log.
struct RecoveredLog {
    /// The newest accepted commit frame.
    var newest: ScannedCommit
    /// The newest commit that a `durableEnd` proves; the chain goes on from here.
    var proven: ScannedCommit
    /// Accepted frames after `proven`, oldest first.
    var unproven: [ScannedCommit]
    /// The TREE or CKPT whose roots the state starts from.
    var base: ScannedCommit
    /// DELTA commits after `base` up to `proven`, oldest first.
    var replay: [ScannedCommit]
    /// Everything below was synced once.
    var durableEnd: FileOffset
    /// The first byte after everything that is not zero.
    var dataEnd: UInt64
    /// A commit, accepted or torn, that says that a writer must know what this library does not.
    var writerFeatures: FileOffset?

    /// Whether nothing can be in doubt: the log ends with a CLOSE, or with the frame that the chain
    /// begins with, which was synced before the file got its name, and nothing stands after it.
    var isClosed: Bool {
        let isWitness = newest.header.kind == .close || newest.isFirst
        return isWitness && newest.end.rawValue == dataEnd
    }
    /// Everything below is on disk: the frame that a chain begins with is proven, whatever the
    /// `durableEnd` of the newest says.
    var provenEnd: FileOffset { max(durableEnd, proven.end) }
    /// Commits with changes that are accepted but not proven.
    var unsettled: [ScannedCommit] { unproven.filter { $0.header.flags.contains(.carriesChanges) } }
}

struct Recovery {
    let scan: LogScan

    /// Reads the log's tail.
    ///
    /// - Throws: `damaged` (a byte below a `durableEnd` is wrong), `newestCommitDamaged` (the
    ///   newest commit is all there and wrong), `ioFailed`.
    /// - Complexity: O(bytes since the last checkpoint); O(bytes of the log) whatever it holds.
    func run() throws(EngineError) -> RecoveredLog {
        // 1. Where the data ends.
        let dataEnd = try scan.dataEnd()
        return try Recovery(scan: scan.bounded(dataEnd: dataEnd)).run(to: dataEnd)
    }

    private func run(to dataEnd: UInt64) throws(EngineError) -> RecoveredLog {
        // 2. The newest commit whose chain is sound down to a proven frame. A body frame is passed
        //    over: between it and the commit that it names others may stand, which a torn settle
        //    was to absorb.
        var accepted: (ScannedCommit, Chain)?
        var named: Set<FileOffset> = [FileOffset(0)]
        var failure: EngineError?
        var writerFeatures: FileOffset?
        var broken = BrokenChains()
        try scan.searchBackward(from: dataEnd) { offset, header throws(EngineError) in
            // The commit that a frame names was synced before the frame was written, unless both
            // belong to one batch.
            let before = header.previousCommit
            if !header.flags.contains(.stacked), named.insert(before).inserted,
                try scan.commit(at: before) == nil
            {
                failure = Self.lost(before, namedAt: FileOffset(offset))
                return false
            }
            guard header.kind.isCommitFrame,
                let candidate = try scan.commit(at: FileOffset(offset))
            else { return true }
            if candidate.record.flags & CommitRecord.writerFeatures != 0 {
                writerFeatures = candidate.offset
            }
            switch try chain(of: candidate, broken) {
            case .sound(let chain):
                accepted = (candidate, chain)
                return false
            case .brokenBelowDurableEnd(let place):
                failure = Self.lost(place, below: candidate)
                return false
            case .brokenTail(let passed):
                broken.add(passed, of: candidate)
                return true
            }
        }
        if let failure { throw failure }
        guard let (newest, chain) = accepted else {
            throw .damaged("the log holds no sound commit", place: FileHeader.logStart)
        }
        // 3. What lies after it: nothing, a torn tail, or a commit that has rotted.
        try judge(from: newest.end.rawValue, to: dataEnd)
        // 4. Where the state of the proven commit comes from.
        let (base, replay) = try history(of: chain.proven)
        return RecoveredLog(
            newest: newest,
            proven: chain.proven,
            unproven: chain.unproven,
            base: base,
            replay: replay,
            durableEnd: newest.record.durableEnd,
            dataEnd: dataEnd,
            writerFeatures: writerFeatures
        )
    }

    private static func lost(_ commit: FileOffset, namedAt place: FileOffset) -> EngineError {
        .damaged(
            "the commit at \(commit.frameName) is damaged; it was on disk before the frame "
                + "at \(place.frameName) was written",
            place: commit
        )
    }

    private static func lost(_ place: FileOffset, below commit: ScannedCommit) -> EngineError {
        .damaged(
            "the log is damaged at \(place.frameName), which was on disk before commit "
                + "\(commit.record.number.rawValue) was written",
            place: place
        )
    }

    // MARK: Chain

    struct Chain {
        var proven: ScannedCommit
        var unproven: [ScannedCommit]
    }

    enum Verdict {
        case sound(Chain)
        case brokenBelowDurableEnd(FileOffset)
        /// With the commits above the break.
        case brokenTail([FileOffset])
    }

    /// Commits above a break that was met already: each chain is followed to its break once, so
    /// that a torn batch of many commits costs no more than its bytes.
    struct BrokenChains {
        /// By commit, a `durableEnd` that every commit from there down to the break ends above.
        private var ends: [FileOffset: FileOffset] = [:]

        /// Whether the chain of a candidate that has come to a commit is known to break before it
        /// meets a proven one.
        func holds(_ commit: ScannedCommit, durableEnd: FileOffset) -> Bool {
            ends[commit.offset].map { durableEnd <= $0 } ?? false
        }

        mutating func add(_ passed: [FileOffset], of candidate: ScannedCommit) {
            for offset in passed {
                let known = ends[offset] ?? candidate.record.durableEnd
                ends[offset] = max(known, candidate.record.durableEnd)
            }
        }
    }

    /// Follows the chain back to a frame that ends at or below the candidate's `durableEnd`.
    ///
    /// - Parameter broken: what is known of chains: none of their commits is looked at again.
    func chain(
        of candidate: ScannedCommit,
        _ broken: BrokenChains
    ) throws(EngineError) -> Verdict {
        let durableEnd = candidate.record.durableEnd
        var unproven: [ScannedCommit] = []
        var commit = candidate
        // The first one was synced before the file got its name.
        while commit.end > durableEnd && !commit.isFirst {
            if broken.holds(commit, durableEnd: durableEnd) {
                return .brokenTail(unproven.map(\.offset))
            }
            if let place = try scan.brokenBody(of: commit, checksPayloads: true) {
                return place < durableEnd
                    ? .brokenBelowDurableEnd(place)
                    : .brokenTail((unproven + [commit]).map(\.offset))
            }
            unproven.append(commit)
            guard let before = try scan.previous(of: commit) else {
                let place = commit.header.previousCommit
                return place < durableEnd
                    ? .brokenBelowDurableEnd(place) : .brokenTail(unproven.map(\.offset))
            }
            commit = before
        }
        return .sound(Chain(proven: commit, unproven: unproven.reversed()))
    }

    /// From a proven commit back to the roots it stands on.
    func history(
        of proven: ScannedCommit
    ) throws(EngineError) -> (base: ScannedCommit, replay: [ScannedCommit]) {
        var replay: [ScannedCommit] = []
        var commit = proven
        while commit.header.kind == .delta {
            if let place = try scan.brokenBody(of: commit, checksPayloads: false) {
                throw .damaged(
                    "the body of commit \(commit.record.number.rawValue) is damaged",
                    place: place
                )
            }
            replay.append(commit)
            guard let before = try scan.previous(of: commit) else {
                throw .damaged(
                    "the commit before \(commit.record.number.rawValue) is damaged",
                    place: commit.header.previousCommit
                )
            }
            commit = before
        }
        guard commit.header.kind == .tree || commit.header.kind == .checkpoint else {
            throw .damaged("a commit stands on a CLOSE frame", place: commit.offset)
        }
        return (commit, replay.reversed())
    }

    // MARK: Torn or rotten

    /// Judges the frames after the accepted commit.
    ///
    /// A write that was torn over zeros leaves 512-byte sectors missing; rot leaves them all there
    /// and wrong. Only the second is refused. A device that writes garbage inside a sector can make
    /// the first look like the second: that costs a question, no data.
    ///
    /// All of them, not only the first: a commit may stand after torn bytes, or after the zeros
    /// up to the next 4 KiB, that an earlier recovery went round.
    private func judge(from start: UInt64, to dataEnd: UInt64) throws(EngineError) {
        var position = start
        var window = LogWindow()
        while position < dataEnd {
            guard let header = try scan.header(at: position) else {
                let next = try scan.nextHeader(from: position, to: dataEnd, &window)
                try judgeHeaderless(from: position, to: next)
                position = next
                continue
            }
            // The log may have gone on inside what this frame was to be.
            let inside = position + FrameHeader.alignment
            guard scan.mayBeWhole(header, at: position) else {
                position = try scan.nextHeader(from: inside, to: dataEnd, &window)
                continue
            }
            let count = Int(header.frameLength)
            let bytes = try scan.read(at: FileOffset(position), count: count)
            let payload = FrameHeader.length..<(FrameHeader.length + Int(header.storedLength))
            guard bytes.count == count else {
                throw EngineError(.ioFailed, "the store file became shorter while it was read")
            }
            if scan.isSound(bytes, payload, of: header) {
                position += header.frameLength
                continue
            }
            // Without a CKPT, a CLOSE or a settle no commit is lost.
            let losesNothing =
                header.kind == .checkpoint || header.kind == .close
                || header.flags.contains(.settle)
            let tail = FrameHeader.tailWord(bytes, at: count - FrameHeader.tailLength)
            if !losesNothing && tail == header.frameLength
                && !hasMissingSector(bytes, at: position)
            {
                throw rotten(FileOffset(position), count)
            }
            position = try scan.nextHeader(from: inside, to: dataEnd, &window)
        }
    }

    /// No header fits from `start` up to `limit`, but a tail word before `limit` may point back to
    /// a frame that is all there.
    private func judgeHeaderless(
        from start: UInt64,
        to limit: UInt64
    ) throws(EngineError) {
        let end = (try scan.dataEnd(from: start, to: limit) + 7) & ~7
        guard let place = try scan.frame(endingAt: end), place >= start,
            end - place <= UInt64(FrameKind.delta.payloadBytesMax)
        else { return }
        let bytes = try scan.read(at: FileOffset(place), count: Int(end - place))
        if !hasMissingSector(bytes, at: place) { throw rotten(FileOffset(place), bytes.count) }
    }

    private func hasMissingSector(_ bytes: [UInt8], at offset: UInt64) -> Bool {
        var start = 0
        while start < bytes.count {
            let sector = (offset + UInt64(start)) / 512
            let end = min(bytes.count, Int((sector + 1) * 512 - offset))
            if bytes[start..<end].allSatisfy({ $0 == 0 }) { return true }
            start = end
        }
        return false
    }

    private func rotten(_ place: FileOffset, _ count: Int) -> EngineError {
        EngineError(
            .newestCommitDamaged,
            "the newest commit at \(place.frameName) (\(count) bytes) is all there, but its bytes "
                + "are wrong; opening for writing would roll it back",
            place: place
        )
    }
}
