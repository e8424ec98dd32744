// Reading a log from its end: finding commit frames and following their chain.
//
// Invariants
// - A frame is believed only when its header hash fits its place in this file.
// - A commit counts only with its whole body; every step of a walk goes down the file, so a walk
//   ends.
// - A read error is an error, never the end of the log.
// - A search reads each byte once. What overlaps is read again for each frame that claims it, and
//   `cost` bounds that: whatever a file holds, opening it takes time in proportion to its bytes.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// A commit frame with its record, checked by its hash.
struct ScannedCommit {
    var offset: FileOffset
    var header: FrameHeader
    var record: CommitRecord
    /// The frame's bytes and where its payload lies.
    var frame: FrameBytes
    /// Bytes of the record at the front of the payload.
    var recordLength: Int

    var end: FileOffset { frame.end }
}

struct LogScan {
    let log: LogReader
    let size: UInt64
    /// What it has read and hashed.
    let cost: ScanCost
    private let readMax: UInt64
    /// No sound frame ends after it.
    private let soundEnd: UInt64
    /// Bytes that are read at the front of a commit frame: with more than its header, small frames
    /// take one read.
    var frontBytes = FrameHeader.length

    static let window: UInt64 = 1 << 20
    /// Of a frame at most so many zeros stand at its end: less than a sector of its payload's, the
    /// padding, and a tail word that did not arrive.
    private static let zerosMax: UInt64 = 4096

    /// A scan without a limit, for walks along a chain: each step goes down the file.
    init(log: LogReader, size: UInt64) {
        self.init(log, size, ScanCost(), readMax: .max, soundEnd: size)
    }

    private init(
        _ log: LogReader,
        _ size: UInt64,
        _ cost: ScanCost,
        readMax: UInt64,
        soundEnd: UInt64
    ) {
        self.log = log
        self.size = size
        self.cost = cost
        self.readMax = readMax
        self.soundEnd = soundEnd
    }

    /// The same for one opening, which reads what is there a few times and no more.
    func bounded(dataEnd: UInt64) -> LogScan {
        LogScan(
            log,
            size,
            cost,
            readMax: cost.readMax(ofLog: dataEnd - min(dataEnd, FileHeader.logStart.rawValue)),
            soundEnd: min(size, dataEnd + Self.zerosMax)
        )
    }

    /// Whether all of a frame may be there: after the data there are zeros only.
    func mayBeWhole(_ header: FrameHeader, at offset: UInt64) -> Bool {
        header.frameLength <= soundEnd - min(soundEnd, offset)
    }

    // MARK: Bytes

    func read(at offset: FileOffset, count: Int) throws(EngineError) -> [UInt8] {
        try cost.add(read: count, max: readMax)
        if let bytes = cost.kept(at: offset.rawValue, count: count) { return bytes }
        return try log.read(at: offset, count: count)
    }

    /// Whether the payload in `bytes` is the one that a header names.
    func isSound(
        _ bytes: [UInt8],
        _ payload: Range<Int>,
        of header: FrameHeader
    ) -> Bool {
        cost.add(hashed: payload.count)
        return FrameHash.xxh64(bytes, range: payload, seed: log.seed) == header.payloadHash
    }

    /// The first offset after the last byte that is not zero; the log's start in an empty log.
    func dataEnd() throws(EngineError) -> UInt64 {
        try dataEnd(from: FileHeader.logStart.rawValue, to: size)
    }

    /// The first offset after the last byte of a range that is not zero; its start when there is
    /// none.
    func dataEnd(from start: UInt64, to limit: UInt64) throws(EngineError) -> UInt64 {
        var end = limit
        // After a clean close there are no zeros, after a crash some KiB: small pieces first.
        var piece: UInt64 = 4 << 10
        while end > start {
            let from = max(start, end - min(piece, end - start))
            piece = min(piece * 2, Self.window)
            let bytes = try read(at: FileOffset(from), count: Int(end - from))
            guard bytes.count == Int(end - from) else {
                throw EngineError(.ioFailed, "the store file became shorter while it was read")
            }
            let used = bytes.countWithoutTrailingZeros
            if used > 0 {
                cost.keep(bytes, at: from)
                return from + UInt64(used)
            }
            end = from
        }
        return start
    }

    /// The header at an offset, or nil when there is none that fits.
    func header(at offset: UInt64) throws(EngineError) -> FrameHeader? {
        guard isPlace(offset) else { return nil }
        let bytes = try read(at: FileOffset(offset), count: FrameHeader.length)
        return decode(bytes, at: 0, offset: offset)
    }

    /// Where a frame may begin.
    private func isPlace(_ offset: UInt64) -> Bool {
        offset % FrameHeader.alignment == 0 && offset >= FileHeader.logStart.rawValue
            && offset < size && size - offset >= UInt64(FrameHeader.length)
    }

    /// A frame's header, and as much behind it as one read gives (`frontBytes`).
    private func front(of offset: UInt64) throws(EngineError) -> [UInt8]? {
        guard isPlace(offset) else { return nil }
        return try read(at: FileOffset(offset), count: Int(min(UInt64(frontBytes), size - offset)))
    }

    func decode(_ bytes: [UInt8], at position: Int, offset: UInt64) -> FrameHeader? {
        guard FrameHeader.mayStart(bytes, at: position) else { return nil }
        cost.add(hashed: FrameHeader.length)
        do throws(FormatError) {
            let header = try FrameHeader(
                decoding: bytes,
                at: position,
                offset: FileOffset(offset),
                seed: log.seed
            )
            let (end, overflow) = offset.addingReportingOverflow(header.frameLength)
            return overflow || end > size ? nil : header
        } catch {
            return nil
        }
    }

    /// The commit at an offset, or nil when there is no sound commit frame.
    func commit(at offset: FileOffset) throws(EngineError) -> ScannedCommit? {
        guard var bytes = try front(of: offset.rawValue),
            let header = decode(bytes, at: 0, offset: offset.rawValue), header.kind.isCommitFrame,
            mayBeWhole(header, at: offset.rawValue)
        else { return nil }
        let count = FrameHeader.length + Int(header.storedLength)
        if bytes.count > count {
            bytes.removeLast(bytes.count - count)
        } else if bytes.count < count {
            bytes = try read(at: offset, count: count)
        }
        guard bytes.count == count else { return nil }
        let payload = FrameHeader.length..<count
        guard isSound(bytes, payload, of: header) else { return nil }
        let record: CommitRecord
        let length: Int
        do throws(FormatError) {
            (record, length) = try CommitRecord.decode(
                bytes,
                range: payload.prefix(CommitRecord.fixedLength + CommitRecord.extraBytesMax),
                offset: offset
            )
        } catch {
            return nil
        }
        if record.flags & CommitRecord.readerFeatures != 0 { throw Self.tooNew(record, offset) }
        return ScannedCommit(
            offset: offset,
            header: header,
            record: record,
            frame: FrameBytes(header: header, bytes: bytes, payload: payload, offset: offset),
            recordLength: length
        )
    }

    /// A sound commit that uses what this library does not know. Passed over, it would be lost.
    static func tooNew(_ record: CommitRecord, _ offset: FileOffset) -> EngineError {
        EngineError(
            .formatTooNew,
            "commit \(record.number.rawValue) uses features that this library does not know "
                + "(flags 0x\(String(record.flags, radix: 16)))",
            place: offset
        )
    }

    /// Where a commit's body stops being sound: headers, hashes and `bodyHash`. Nil when all of it
    /// is.
    ///
    /// The place matters: a body may begin below a `durableEnd` and end above it, since pages of a
    /// checkpoint are handed over between commits.
    ///
    /// - Parameter checksPayloads: false for commits that are proven: their headers' hashes are
    ///   enough to know that the chain is whole, and pages are checked when they are used.
    func brokenBody(
        of commit: ScannedCommit,
        checksPayloads: Bool
    ) throws(EngineError) -> FileOffset? {
        guard log.checksBodies else { return nil }
        var position = commit.record.bodyStart.rawValue
        var hash = log.seed
        while position < commit.offset.rawValue {
            guard let header = try header(at: position), !header.kind.isCommitFrame,
                header.frameLength <= commit.offset.rawValue - position
            else { return FileOffset(position) }
            if checksPayloads {
                let start = FileOffset(position + UInt64(FrameHeader.length))
                let payload = try read(at: start, count: Int(header.storedLength))
                guard isSound(payload, payload.indices, of: header) else {
                    return FileOffset(position)
                }
            }
            hash = FrameHash.combine(hash, with: header.payloadHash)
            position += header.frameLength
        }
        // Sound frames that are not the ones this commit vouches for.
        return hash == commit.record.bodyHash ? nil : commit.offset
    }

    /// The commit before in the chain, or nil when it is not the one that `commit` names.
    func previous(of commit: ScannedCommit) throws(EngineError) -> ScannedCommit? {
        guard let before = try self.commit(at: commit.header.previousCommit),
            before.header.payloadHash == commit.record.previousHash,
            before.end <= commit.record.bodyStart, before.header.kind != .close
        else { return nil }
        let steps = commit.record.number.rawValue.subtractingReportingOverflow(
            before.record.number.rawValue
        )
        // CKPT and CLOSE repeat their commit's number; a settle may pass over absorbed ones.
        guard !steps.overflow else { return nil }
        return before
    }
}
