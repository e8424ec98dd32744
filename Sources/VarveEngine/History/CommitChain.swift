// The chain of commits backward: for history, snapshots of the past, compaction and backup.
//
// Invariants
// - What lies below a published commit frame is on disk and never changes: a walk takes no lock.
// - Every step goes down the file, so a walk ends. One frame is in memory at a time.
// - TREE and CKPT frames form a short chain of their own (`record.checkpoint`), so that finding a
//   commit costs one step for each of them and then those between two.

internal import VarveBase
internal import VarveFormat

extension ScannedCommit {
    /// Whether the frame has the roots of a whole state.
    var isBase: Bool { header.kind == .tree || header.kind == .checkpoint }
    /// Whether the chain begins here: the file was synced up to it before it got its name.
    var isFirst: Bool { header.previousCommit.rawValue == 0 }
    var carriesChanges: Bool { header.flags.contains(.carriesChanges) }
    var number: CommitNumber { record.number }
}

struct CommitChain {
    let generation: Generation
    let scan: LogScan
    let newest: FileOffset

    /// The chain that `state` stands on.
    init(_ state: StoreState) throws(EngineError) {
        generation = state.generation
        scan = LogScan(log: state.generation.log, size: try state.generation.log.size())
        newest = state.frame
    }

    /// The chain that ends with the frame at `newest`.
    init(generation: Generation, newest: FileOffset) throws(EngineError) {
        self.generation = generation
        scan = LogScan(log: generation.log, size: try generation.log.size())
        self.newest = newest
    }

    /// The same chain, read through a window: for walks over many small frames.
    func windowed() throws(EngineError) -> CommitChain {
        let end = try commit(at: newest).end
        let log = LogReader(copying: generation.log, file: FrameWindow(generation.file, upTo: end))
        var windowed = LogScan(log: log, size: scan.size)
        windowed.frontBytes = FrameWindow.smallFrameBytes
        return CommitChain(generation, windowed, newest)
    }

    private init(_ generation: Generation, _ scan: LogScan, _ newest: FileOffset) {
        (self.generation, self.scan, self.newest) = (generation, scan, newest)
    }

    /// A commit frame of the chain.
    func commit(at offset: FileOffset) throws(EngineError) -> ScannedCommit {
        guard let commit = try scan.commit(at: offset) else {
            throw .damaged("the commit at \(offset.frameName) is damaged", place: offset)
        }
        return commit
    }

    /// The commit frame before; nil where the chain begins.
    func before(_ commit: ScannedCommit) throws(EngineError) -> ScannedCommit? {
        if commit.isFirst { return nil }
        guard let before = try scan.previous(of: commit), before.number <= commit.number else {
            let place = commit.header.previousCommit
            throw .damaged(
                "the commit before \(commit.number.rawValue) is damaged",
                place: place
            )
        }
        return before
    }

    /// The TREE or CKPT before; nil where the chain begins.
    func base(before commit: ScannedCommit) throws(EngineError) -> ScannedCommit? {
        let place = commit.record.checkpoint
        if place.rawValue == 0 { return nil }
        let found = try self.commit(at: place)
        guard found.isBase, found.number <= commit.number, place < commit.offset else {
            throw .damaged("\(place.frameName) is no checkpoint", place: place)
        }
        return found
    }

    /// The newest TREE or CKPT that is `early` enough, and where a walk back to it begins: the
    /// TREE or CKPT after it, or the newest commit. Nil when none is early enough.
    ///
    /// - Complexity: O(checkpoints since).
    func stretch(
        _ isEarly: (CommitRecord) -> Bool
    ) throws(EngineError) -> (base: ScannedCommit, later: ScannedCommit)? {
        var later = try commit(at: newest)
        var candidate: ScannedCommit? = later
        while let frame = candidate {
            if frame.isBase {
                if isEarly(frame.record) { return (frame, later) }
                later = frame
            }
            candidate = try base(before: frame)
        }
        return nil
    }

    /// Places of the commits with changes after `base`, up to `later` and as far as they are
    /// `early` enough, oldest first.
    func places(
        from base: ScannedCommit,
        to later: ScannedCommit,
        _ isEarly: (CommitRecord) -> Bool
    ) throws(EngineError) -> [FileOffset] {
        var places: [FileOffset] = []
        var frame = later
        while frame.offset > base.offset {
            if frame.carriesChanges, isEarly(frame.record) { places.append(frame.offset) }
            guard let next = try before(frame) else { break }
            frame = next
        }
        return places.reversed()
    }

    /// The frame that made a commit; nil when there is none of that number alone.
    func frame(of number: CommitNumber) throws(EngineError) -> ScannedCommit? {
        guard let (_, later) = try stretch({ $0.number <= number }) else { return nil }
        var next: ScannedCommit? = later
        while let frame = next {
            if frame.carriesChanges && frame.number == number { return frame }
            if frame.number < number { return nil }
            next = try before(frame)
        }
        return nil
    }

    /// The commit that the chain begins with: no older one can be shown.
    func oldest() throws(EngineError) -> ScannedCommit {
        var frame = try commit(at: newest)
        while let earlier = try base(before: frame) { frame = earlier }
        return frame
    }

    /// What a settle says of the commits that it wrote again, oldest first.
    static func absorbed(
        by settle: ScannedCommit
    ) throws(EngineError) -> [CommitSummary] {
        do throws(FormatError) {
            var reader = try Replay.bodyReader(settle)
            _ = try TreeRoots.decode(&reader, offset: settle.offset)
            _ = try ChangedObjects.decode(
                &reader,
                limit: UInt64(settle.record.operationCount)
            )
            let count = try reader.count("absorbed commits", limit: reader.remaining / 18)
            var commits: [CommitSummary] = []
            for _ in 0..<count {
                let number = try reader.varint("number")
                guard (1...max(1, settle.number.rawValue)).contains(number) else {
                    throw reader.error("number", "\(number)", "at most the settle's, and not 0")
                }
                commits.append(
                    CommitSummary(
                        number: CommitNumber(number),
                        epoch: try reader.u64("epoch"),
                        timeMicroseconds: try reader.i64("clock"),
                        author: try reader.sizedText("author", limit: 64),
                        form: .settled,
                        bytes: 0,
                        schemaVersion: settle.record.schemaVersion,
                        counts: []
                    )
                )
            }
            return commits
        } catch {
            throw .damaged(error, place: settle.offset)
        }
    }
}
