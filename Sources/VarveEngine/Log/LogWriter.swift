// Appending frames: where every byte of a store file comes from, its header and its zeros aside.
//
// Invariants
// - A byte that was written never changes and is never cut off: frames go after everything that is
//   not zero. Only unused zeros are cut, at a clean close. `writeAgain` writes what is there.
// - `durableEnd` is raised by a successful sync of this opening alone.
// - Frames gather in `buffer`; until they are handed to the system, giving them up costs nothing.
//   What was handed over stays: as part of the body of the next commit while all writes succeeded,
//   as a void, which the next body begins after, after one that failed.
// - Commit frames in `buffer` are sealed (chain hash, `durableEnd`) when they are handed over.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// How far the log is on disk. Raised by whoever synced, read by whoever seals.
final class LogProgress: Sendable {
    private let durable: Atomic<UInt64>
    private let syncing = Mutex(())
    private let failure = Mutex<IOError?>(nil)

    /// True in tests that plant this bug, never else.
    private let isStuck: Bool

    init(durableEnd: FileOffset, _ environment: any Environment) {
        durable = Atomic(durableEnd.rawValue)
        isStuck = environment.leavesOut(.raiseDurableEnd)
    }

    /// Syncs the log through the descriptor that commits are written through.
    ///
    /// One thread at a time, and never again after any sync of the file failed: the system reports
    /// a lost write once per descriptor. Of two syncs at once one may get the report of bytes that
    /// the other waits for, and the other success.
    func sync(_ file: any StoreFile) throws(IOError) {
        try syncing.withLock { _ throws(IOError) in
            try checkFailure()
            try syncElsewhere(file)
            try checkFailure()
        }
    }

    /// Syncs through another descriptor of the file: a failure counts for all.
    func syncElsewhere(_ file: any StoreFile) throws(IOError) {
        do throws(IOError) { try file.syncData() } catch {
            failure.withLock { $0 = $0 ?? error }
            throw error
        }
    }

    private func checkFailure() throws(IOError) {
        if let error = failure.withLock({ $0 }) { throw error }
    }

    var durableEnd: FileOffset { FileOffset(durable.load(ordering: .acquiring)) }

    /// After a sync that succeeded, begun after everything below `end` was written.
    func raise(to end: FileOffset) {
        if isStuck { return }
        durable.max(end.rawValue, ordering: .acquiringAndReleasing)
    }
}

struct LogWriter {
    let file: any StoreFile
    let seed: UInt64
    let options: EngineOptions
    let counters: EngineCounters
    let room: TailRoom
    let progress: LogProgress

    /// A point of the log that appending can go back to.
    struct Mark {
        /// Where the next frame goes.
        fileprivate(set) var end: FileOffset
        /// Newest commit frame of the chain, its end, and the hash of its payload once sealed.
        fileprivate(set) var lastCommit: FileOffset
        fileprivate(set) var lastCommitEnd: FileOffset
        fileprivate(set) var lastCommitHash: UInt64
        /// Newest TREE or CKPT frame.
        fileprivate(set) var checkpoint: FileOffset
        /// Bytes after it that are pages of the checkpoint to come.
        fileprivate(set) var pageBytesAhead: UInt64 = 0
        /// Body of the commit to come.
        fileprivate(set) var bodyStart: FileOffset
        fileprivate var bodyHash: UInt64
    }

    /// Where this began.
    private let start: FileOffset
    private var now: Mark
    /// As of the last bytes that were handed over.
    private var handed: Mark
    private var buffer = ByteWriter()
    private var bufferStart: FileOffset
    /// Commit frames in `buffer`, where they start in it, and the log after them.
    private var unsealed: [(position: Int, placed: Frame.Placed, behind: Mark)] = []
    /// Whether the buffer may hold pages or values: they can be read only once they are handed
    /// over.
    private(set) var holdsBody = false
    /// Whether a write that held commit frames failed: their outcome is unknown.
    private(set) var isBroken = false
    /// Times that handed bytes became a void.
    private(set) var voids = 0

    init(
        file: any StoreFile,
        seed: UInt64,
        options: EngineOptions,
        counters: EngineCounters,
        end: FileOffset,
        durableEnd: FileOffset,
        lastCommit: FileOffset,
        lastCommitHash: UInt64,
        checkpoint: FileOffset
    ) {
        self.file = file
        self.seed = seed
        self.options = options
        self.counters = counters
        progress = LogProgress(durableEnd: durableEnd, options.environment)
        room = TailRoom(end: end, options: options, counters: counters, progress: progress)
        // The chain goes on from a proven frame, which lies below `durableEnd`.
        now = Mark(
            end: end,
            lastCommit: lastCommit,
            lastCommitEnd: lastCommit,
            lastCommitHash: lastCommitHash,
            checkpoint: checkpoint,
            bodyStart: end,
            bodyHash: seed
        )
        handed = now
        start = end
        bufferStart = end
    }

    /// Where the next frame goes.
    var end: FileOffset { now.end }
    /// Newest TREE or CKPT frame.
    var checkpoint: FileOffset { now.checkpoint }
    /// Everything below is on disk.
    var durableEnd: FileOffset { progress.durableEnd }
    /// Everything below was handed to the system.
    var handedEnd: FileOffset { handed.end }
    /// Whether anything was handed to the system since this began.
    var hasHanded: Bool { handed.end > start }
    /// Whether a DELTA, TREE or CKPT was handed to the system since this began.
    var hasHandedCommit: Bool { handed.lastCommit >= start }
    /// A place to go back to.
    var mark: Mark { now }
    /// Log bytes after the newest checkpoint, without the pages of the next one: what a replay
    /// reads, and what calls for pages.
    var tailBytes: UInt64 {
        let bytes = end.rawValue - min(checkpoint.rawValue, end.rawValue)
        return bytes - min(now.pageBytesAhead, bytes)
    }
    /// Pages of the checkpoint to come were handed over.
    mutating func countAhead(_ bytes: UInt64) { now.pageBytesAhead += bytes }
    var bufferedBytes: Int { buffer.count }

    private var isStacked: Bool { now.lastCommitEnd > durableEnd }

    // MARK: Frames

    /// Appends a PAGE or VALUE frame to the body of the commit to come.
    mutating func appendBody(
        _ kind: FrameKind,
        front: [UInt8],
        body: [UInt8],
        compresses: Bool
    ) -> PageAddress {
        appendBody(
            Frame.prepare(kind, front: front, body: body, compresses: compresses, seed: seed)
        )
    }

    /// Appends a prepared PAGE or VALUE frame to the body of the commit to come.
    mutating func appendBody(_ prepared: Frame.Prepared) -> PageAddress {
        let placed = Frame.append(
            prepared,
            to: &buffer,
            flags: isStacked ? .stacked : [],
            previousCommit: now.lastCommit,
            at: end,
            seed: seed
        )
        precondition(!placed.header.kind.isCommitFrame, "commit frames end a body")
        holdsBody = true
        now.bodyHash = FrameHash.combine(now.bodyHash, with: placed.header.payloadHash)
        now.end = placed.end
        return PageAddress(
            offset: placed.offset,
            storedLength: placed.header.storedLength,
            payloadHash: placed.header.payloadHash
        )
    }

    /// Appends a commit frame, which ends the body. The body is filled in here; the chain and
    /// `durableEnd` when it is sealed.
    @discardableResult
    mutating func appendCommit(
        _ kind: FrameKind,
        flags: FrameFlags,
        record: CommitRecord,
        body: [UInt8]
    ) -> Frame.Placed {
        precondition(kind.isCommitFrame, "body frames end nothing")
        var record = record
        record.bodyStart = now.bodyStart
        record.bodyHash = now.bodyHash
        record.checkpoint = now.checkpoint
        let position = buffer.count
        let placed = Frame.append(
            to: &buffer,
            kind: kind,
            flags: flags,
            front: record.encoded(),
            body: body,
            compresses: body.count > 1024,
            previousCommit: now.lastCommit,
            at: end,
            seed: seed
        )
        if kind == .tree || kind == .checkpoint {
            now.checkpoint = placed.offset
            now.pageBytesAhead = 0
        }
        // Nothing ever chains to a CLOSE: what follows declares it a void.
        if kind != .close {
            now.lastCommit = placed.offset
            now.lastCommitEnd = placed.end
        }
        now.end = placed.end
        now.bodyStart = now.end
        now.bodyHash = seed
        unsealed.append((position, placed, now))
        return placed
    }

    /// Fills in what only the moment of writing knows.
    private mutating func seal() {
        let durableEnd = durableEnd
        var (hash, last) = (handed.lastCommitHash, handed.lastCommitEnd)
        for (position, placed, _) in unsealed {
            let header = Frame.sealCommit(
                in: &buffer,
                at: position,
                placed: placed,
                previousHash: hash,
                durableEnd: durableEnd,
                isStacked: last > durableEnd,
                seed: seed
            )
            if placed.header.kind != .close { (hash, last) = (header.payloadHash, placed.end) }
        }
        unsealed.removeAll(keepingCapacity: true)
        now.lastCommitHash = hash
    }

    // MARK: Writing

    /// Body bytes after the last commit frame that gathered.
    private var looseBytes: UInt64 {
        end.rawValue - (unsealed.last?.placed.end ?? bufferStart).rawValue
    }

    /// Whether a body gathered that is too long for zeros to be written first: it extends the file
    /// itself. It may find no space there, so it goes without a commit frame.
    private var holdsLargeBody: Bool { looseBytes > options.tailRoomMax / 4 }

    /// Hands over a large body, ahead of the commit frame that is to end it.
    ///
    /// - Throws: as `makeRoom` and `flush`.
    mutating func handLargeBody(leaving reserve: UInt64? = nil) throws(EngineError) {
        if holdsLargeBody { try handBody(leaving: reserve) }
    }

    /// Hands over a part of a large body, however small the part is: zeros would be written, and
    /// synced, for every piece.
    ///
    /// - Throws: as `makeRoom` and `flush`.
    mutating func handBody(leaving reserve: UInt64? = nil) throws(EngineError) {
        guard looseBytes > 0 else { return }
        try makeRoom(leaving: reserve ?? options.tailReserve, extendsFile: true)
        do throws(IOError) { try flush(bodyApart: true) } catch { throw .io(error) }
    }

    /// Makes sure that what gathered may be written: zeros are ready for every commit frame, and
    /// for the rest unless it is large.
    ///
    /// - Parameter reserve: prepared bytes that have to be left: `tailReserve` by saves.
    /// - Throws: `noSpace` or another refusal; no byte of the buffer was written yet.
    func makeRoom(leaving reserve: UInt64, extendsFile: Bool = false) throws(EngineError) {
        guard extendsFile || holdsLargeBody else {
            return try room.ensure(end, reserve: reserve, file: file)
        }
        if let last = unsealed.last?.placed.end {
            try room.ensure(last, reserve: reserve, file: file)
        }
        try room.pass(end, reserve: reserve, file: file)
    }

    /// The same for what saves write on their way.
    func makeRoom() throws(EngineError) { try makeRoom(leaving: options.tailReserve) }

    /// Whether all that gathered may be written.
    var hasRoom: Bool { room.holds(end) }

    /// Sealed bytes for the caller to write at once at the place given. From here on they count as
    /// handed to the system.
    mutating func takeBuffer() -> (bytes: [UInt8], at: FileOffset) {
        seal()
        let result = (buffer.bytes, bufferStart)
        counters.bytesWritten.add(UInt64(buffer.count), ordering: .relaxed)
        buffer = ByteWriter(capacity: min(buffer.count, 64 << 10))
        bufferStart = now.end
        holdsBody = false
        handed = now
        if Invariants.areChecked { check() }
        return result
    }

    /// Hands the buffer to the system.
    ///
    /// - Parameter bodyApart: whether what is behind the last commit frame extends the file itself.
    /// - Throws: after an error what gathered is a void, which is no harm as long as no commit
    ///   frame was among it.
    mutating func flush(bodyApart: Bool = false) throws(IOError) {
        guard buffer.count > 0 else { return }
        if bodyApart || holdsLargeBody, let last = unsealed.last {
            // The commits first: a large body that finds no space is a void, and no harm to them.
            let split = Int(last.behind.end.rawValue - bufferStart.rawValue)
            var body = ByteWriter(capacity: buffer.count - split)
            body.raw(buffer.bytes[split...])
            let behindBody = now
            buffer.bytes.removeSubrange(split...)
            now = last.behind
            try flushAll()
            now = behindBody
            now.lastCommitHash = handed.lastCommitHash
            buffer = body
        }
        try flushAll()
    }

    private mutating func flushAll() throws(IOError) {
        let before = handed
        let hadCommit = !unsealed.isEmpty
        let (bytes, offset) = takeBuffer()
        do throws(IOError) {
            try file.write(bytes, at: offset)
        } catch {
            if hadCommit { isBroken = true } else { abandonHanded(since: before) }
            if error.isNoSpace { room.noteNoSpace() }
            throw error
        }
        reuse(bytes)
    }

    /// Large bodies are written piece by piece: each would take its memory from the system anew.
    /// What is written after the last piece is little, and lets the memory go.
    private mutating func reuse(_ bytes: consuming [UInt8]) {
        guard buffer.count == 0, bytes.count >= Self.reusedBytesMin,
            bytes.capacity <= Self.reusedCapacityMax
        else { return }
        bytes.removeAll(keepingCapacity: true)
        buffer = ByteWriter(appendingTo: bytes)
    }

    private static let reusedBytesMin = 512 << 10
    /// A buffer that grew to a piece of the usual size, and what the allocator rounds up.
    private static let reusedCapacityMax = 5 << 20

    /// Makes everything handed over durable. After an error the outcome is unknown.
    mutating func sync() throws(IOError) {
        precondition(buffer.count == 0, "a sync covers what was handed over")
        try progress.sync(file)
        counters.syncs.add(1, ordering: .relaxed)
        progress.raise(to: handed.end)
        if Invariants.areChecked { check() }
    }

    // MARK: What stands there

    /// Writes bytes once more where they stand, below where this began.
    func writeAgain(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        precondition(
            offset.rawValue + UInt64(bytes.count) <= start.rawValue,
            "only what was there is written again"
        )
        try file.write(bytes, at: offset)
        counters.bytesWritten.add(UInt64(bytes.count), ordering: .relaxed)
    }

    /// Goes on after a commit that stands in the log, once it is on disk.
    ///
    /// - Parameters:
    ///   - commit: all that its chain has above `durableEnd` was written again.
    ///   - checkpoint: the newest TREE or CKPT of that chain.
    mutating func goOn(
        behind commit: ScannedCommit,
        checkpoint: FileOffset
    ) throws(IOError) {
        precondition(buffer.count == 0 && commit.end <= start, "the chain goes on behind it")
        now.lastCommit = commit.offset
        now.lastCommitEnd = commit.end
        now.lastCommitHash = commit.header.payloadHash
        now.checkpoint = checkpoint
        handed = now
        try sync()
    }

    private mutating func abandonHanded(since before: Mark) {
        let reached = now.end
        now = before
        now.end = reached
        now.bodyStart = reached
        now.bodyHash = seed
        handed = now
        bufferStart = reached
        voids += 1
    }

    /// Gives up what was appended since `mark` and was not handed over. What was stays in the body
    /// of the next commit, where nothing names it.
    mutating func rollback(to mark: Mark) {
        if mark.end > handed.end, !isBroken {
            buffer.bytes.removeSubrange(Int(mark.end.rawValue - bufferStart.rawValue)...)
            unsealed.removeAll { $0.placed.offset >= mark.end }
            now = mark
        } else {
            buffer.bytes.removeAll(keepingCapacity: true)
            unsealed.removeAll(keepingCapacity: true)
            now = handed
            holdsBody = false
        }
        if Invariants.areChecked { check() }
    }

    /// Gives up everything that was not handed over.
    mutating func rollbackToHanded() { rollback(to: handed) }

    private func offset(inBuffer position: Int) -> FileOffset {
        FileOffset(bufferStart.rawValue + UInt64(position))
    }

    /// Traps where the writer is not what its invariants say.
    /// - Complexity: O(commits in the buffer).
    func check() {
        precondition(
            start <= handed.end && durableEnd <= handed.end && handed.end <= now.end,
            "bytes are durable after they are handed over, and that after they are appended"
        )
        precondition(
            bufferStart == handed.end && offset(inBuffer: buffer.count) == now.end,
            "the buffer holds what is not handed over"
        )
        precondition(now.end.rawValue % 8 == 0, "frames begin at multiples of 8")
        precondition(
            now.lastCommit <= now.lastCommitEnd && now.lastCommitEnd <= now.bodyStart
                && handed.bodyStart <= now.bodyStart && now.bodyStart <= now.end,
            "a body begins after the newest commit"
        )
        precondition(now.checkpoint <= now.end, "a checkpoint is in the log")
        var last = bufferStart
        for (position, placed, after) in unsealed {
            precondition(
                last <= placed.offset && placed.offset == offset(inBuffer: position)
                    && placed.end == after.end && after.end <= now.end,
                "commits in the buffer follow each other"
            )
            last = placed.end
        }
    }

    /// Cuts unused zeros off, at a clean close.
    mutating func cutZeros() throws(IOError) {
        precondition(buffer.count == 0, "everything is written before zeros are cut")
        try room.cut(to: end, file: file)
    }
}
