// Appending frames: the only code that writes to a store file after its creation.
//
// Invariants
// - A byte that was written is never written again and never cut off: frames go behind everything
//   that is not zero. Only unused zeros are cut, at a clean close.
// - `durableEnd` is raised by a successful sync of this opening alone.
// - Frames gather in `buffer`; until `flush` begins to write, giving the batch up costs nothing.
//   After that its bytes are a void, also when the write failed: some of them may have arrived, and
//   the next commit's body starts behind them.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct LogWriter {
    let file: any StoreFile
    let seed: UInt64
    let options: EngineOptions
    let counters: EngineCounters

    /// Where the next frame goes.
    private(set) var end: FileOffset
    /// Zeros are written and synced up to here.
    private(set) var preparedEnd: FileOffset
    /// Everything below is on disk.
    private(set) var durableEnd: FileOffset
    /// Newest commit frame of the chain, and the hash of its payload.
    private(set) var lastCommit: FileOffset
    private(set) var lastCommitHash: UInt64
    /// Newest TREE or CKPT frame.
    private(set) var checkpoint: FileOffset
    /// Body of the commit to come.
    private(set) var bodyStart: FileOffset
    private var bodyHash: UInt64

    private var buffer = ByteWriter()
    private var bufferStart: FileOffset
    /// The end of everything that was handed to the system, whether it arrived or not.
    private var handedEnd: FileOffset

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
        self.end = end
        // Zeros found behind the log may not be on disk: they are prepared again before use.
        preparedEnd = end
        self.durableEnd = durableEnd
        self.lastCommit = lastCommit
        self.lastCommitHash = lastCommitHash
        self.checkpoint = checkpoint
        bodyStart = end
        bodyHash = seed
        bufferStart = end
        handedEnd = end
    }

    /// Log bytes behind the newest checkpoint.
    var tailBytes: UInt64 { end.rawValue - min(checkpoint.rawValue, end.rawValue) }
    var bufferedBytes: Int { buffer.count }

    // MARK: Frames

    /// Appends a PAGE or VALUE frame to the body of the commit to come.
    mutating func appendBody(
        _ kind: FrameKind,
        front: [UInt8],
        body: [UInt8],
        compresses: Bool
    ) -> PageAddress {
        precondition(!kind.isCommitFrame, "commit frames end a body")
        let placed = Frame.append(
            to: &buffer,
            kind: kind,
            front: front,
            body: body,
            compresses: compresses,
            previousCommit: lastCommit,
            at: end,
            seed: seed
        )
        bodyHash = FrameHash.combine(bodyHash, with: placed.header.payloadHash)
        end = placed.end
        return PageAddress(
            offset: placed.offset,
            storedLength: placed.header.storedLength,
            payloadHash: placed.header.payloadHash
        )
    }

    /// Appends a commit frame, which ends the body. Chain, body and `durableEnd` are filled in.
    @discardableResult
    mutating func appendCommit(
        _ kind: FrameKind,
        flags: FrameFlags,
        record: CommitRecord,
        body: [UInt8]
    ) -> Frame.Placed {
        precondition(kind.isCommitFrame, "body frames end nothing")
        var record = record
        record.previousHash = lastCommitHash
        record.bodyStart = bodyStart
        record.bodyHash = bodyHash
        record.checkpoint = checkpoint
        record.durableEnd = durableEnd
        let placed = Frame.append(
            to: &buffer,
            kind: kind,
            flags: flags,
            front: record.encoded(),
            body: body,
            compresses: body.count > 1024,
            previousCommit: lastCommit,
            at: end,
            seed: seed
        )
        if kind == .tree || kind == .checkpoint { checkpoint = placed.offset }
        lastCommit = placed.offset
        lastCommitHash = placed.header.payloadHash
        end = placed.end
        bodyStart = end
        bodyHash = seed
        return placed
    }

    // MARK: Writing

    /// Makes sure that the buffer fits into prepared zeros.
    ///
    /// - Throws: `noSpace` or another refusal; no byte of the batch was written yet.
    mutating func makeRoom() throws(EngineError) {
        guard end > preparedEnd else { return }
        // A large batch extends the file itself: zeros first would only write it twice.
        if buffer.count > Int(options.tailRoomMax) { return }
        let wanted = min(max(end.rawValue / 8, options.tailRoomMin), options.tailRoomMax)
        let target = (end.rawValue + wanted + 4095) & ~4095
        do throws(IOError) {
            // From the first byte the log may use: zeros that an earlier opening left there may
            // never have reached the disk.
            var position = max(preparedEnd.rawValue, bufferStart.rawValue)
            while position < target {
                let count = min(target - position, 128 << 10)
                try file.write(
                    [UInt8](repeating: 0, count: Int(count)),
                    at: FileOffset(position)
                )
                position += count
            }
            try file.syncData()
        } catch {
            throw .io(error)
        }
        counters.roomExtensions.add(1, ordering: .relaxed)
        counters.bytesWritten.add(target - preparedEnd.rawValue, ordering: .relaxed)
        preparedEnd = FileOffset(target)
    }

    /// Hands the buffer to the system. After an error the outcome is unknown.
    mutating func flush() throws(IOError) {
        guard buffer.count > 0 else { return }
        handedEnd = end
        try file.write(buffer.bytes, at: bufferStart)
        counters.bytesWritten.add(UInt64(buffer.count), ordering: .relaxed)
        buffer.bytes.removeAll(keepingCapacity: buffer.count <= 1 << 20)
        bufferStart = end
    }

    /// Makes everything written so far durable. After an error the outcome is unknown.
    mutating func sync() throws(IOError) {
        precondition(buffer.count == 0, "a sync covers what was flushed")
        try file.syncData()
        counters.syncs.add(1, ordering: .relaxed)
        durableEnd = end
        preparedEnd = max(preparedEnd, end)
    }

    /// Gives up what was appended since `earlier`. What was handed over meanwhile becomes a void.
    mutating func abandon(backTo earlier: LogWriter) {
        let reached = handedEnd
        let prepared = max(preparedEnd, earlier.preparedEnd)
        self = earlier
        preparedEnd = prepared
        if reached > handedEnd {
            handedEnd = reached
            end = reached
            bufferStart = reached
            bodyStart = reached
            bodyHash = seed
        }
    }

    /// Cuts unused zeros off, at a clean close.
    mutating func cutZeros() throws(IOError) {
        precondition(buffer.count == 0, "everything is written before zeros are cut")
        let size = try file.size()
        if size > end.rawValue { try file.cut(to: end.rawValue) }
        preparedEnd = end
    }
}
