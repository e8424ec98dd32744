// Reading a log from its end: finding commit frames and following their chain.
//
// Invariants
// - A frame is believed only when its header hash fits its place in this file.
// - A commit counts only with its whole body; every step of a walk goes down the file, so a walk
//   ends.
// - A read error is an error, never the end of the log.

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

    /// The most bytes that a search for a frame reads backwards before it gives up.
    static let searchBytesMax: UInt64 = 1 << 30
    static let window: UInt64 = 1 << 20

    // MARK: Bytes

    /// The first offset behind the last byte that is not zero; the log's start in an empty log.
    func dataEnd() throws(EngineError) -> UInt64 {
        try dataEnd(from: FileHeader.logStart.rawValue, to: size)
    }

    /// The first offset behind the last byte of a range that is not zero; its start when there is
    /// none.
    func dataEnd(from start: UInt64, to limit: UInt64) throws(EngineError) -> UInt64 {
        var end = limit
        // Behind a clean close there are no zeros, behind a crash some KiB: small pieces first.
        var piece: UInt64 = 4 << 10
        while end > start {
            let from = max(start, end - min(piece, end - start))
            piece = min(piece * 2, Self.window)
            let bytes = try log.read(at: FileOffset(from), count: Int(end - from))
            guard bytes.count == Int(end - from) else {
                throw EngineError(.ioFailed, "the store file became shorter while it was read")
            }
            let used = bytes.countWithoutTrailingZeros
            if used > 0 { return from + UInt64(used) }
            end = from
        }
        return start
    }

    /// The header at an offset, or nil when there is none that fits.
    func header(at offset: UInt64) throws(EngineError) -> FrameHeader? {
        guard offset % FrameHeader.alignment == 0, offset >= FileHeader.logStart.rawValue,
            offset < size, size - offset >= UInt64(FrameHeader.length)
        else { return nil }
        let bytes = try log.read(at: FileOffset(offset), count: FrameHeader.length)
        return decode(bytes, at: 0, offset: offset)
    }

    func decode(_ bytes: [UInt8], at position: Int, offset: UInt64) -> FrameHeader? {
        guard FrameHeader.mayStart(bytes, at: position) else { return nil }
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
        guard let header = try header(at: offset.rawValue), header.kind.isCommitFrame else {
            return nil
        }
        let count = FrameHeader.length + Int(header.storedLength)
        let bytes = try log.read(at: offset, count: count)
        guard bytes.count == count else { return nil }
        let payload = FrameHeader.length..<count
        guard FrameHash.xxh64(bytes, range: payload, seed: log.seed) == header.payloadHash else {
            return nil
        }
        let record: CommitRecord
        let length: Int
        do throws(FormatError) {
            (record, length) = try CommitRecord.decode(
                Array(bytes[payload.prefix(CommitRecord.fixedLength + CommitRecord.extraBytesMax)]),
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
                let payload = try log.read(at: start, count: Int(header.storedLength))
                guard FrameHash.xxh64(payload, seed: log.seed) == header.payloadHash else {
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

    // MARK: Search

    /// Offsets of frames whose header fits, newest first, below `end`, until `body` says stop.
    ///
    /// Looks at the tail word first; where it is torn, at every multiple of 8 going back.
    func searchBackward(
        from end: UInt64,
        _ body: (UInt64, FrameHeader) throws(EngineError) -> Bool
    ) throws(EngineError) {
        let start = FileHeader.logStart.rawValue
        var limit = (end + 7) & ~7
        var budget = Self.searchBytesMax
        while limit > start {
            // A tail word of another length than the header's would lead past sound frames.
            if let offset = try frame(endingAt: limit), let header = try header(at: offset),
                offset + header.frameLength == limit
            {
                if try !body(offset, header) { return }
                limit = offset
                continue
            }
            let from = max(start, limit - min(Self.window, limit - start))
            let bytes = try log.read(
                at: FileOffset(from),
                count: Int(min(limit + 32, size) - from)
            )
            var found: UInt64?
            var offset = limit
            while offset > from {
                offset -= 8
                if let header = decode(bytes, at: Int(offset - from), offset: offset) {
                    found = offset
                    if try !body(offset, header) { return }
                    break
                }
            }
            let read = limit - (found ?? from)
            guard budget > read else {
                throw .damaged("no commit in the last \(Self.searchBytesMax) bytes of the log")
            }
            budget -= read
            limit = found ?? from
        }
    }

    /// The first offset from `start` on where a header fits; `end` when there is none below it.
    func nextHeader(from start: UInt64, to end: UInt64) throws(EngineError) -> UInt64 {
        var from = start
        while from < end {
            let to = min(end, from + Self.window)
            let bytes = try log.read(
                at: FileOffset(from),
                count: Int(min(to + UInt64(FrameHeader.length), size) - from)
            )
            for offset in stride(from: from, to: to, by: Int(FrameHeader.alignment))
            where decode(bytes, at: Int(offset - from), offset: offset) != nil {
                return offset
            }
            from = to
        }
        return end
    }

    /// The frame whose tail word ends exactly at `end`.
    func frame(endingAt end: UInt64) throws(EngineError) -> UInt64? {
        guard end >= FileHeader.logStart.rawValue + 40, end <= size else { return nil }
        let bytes = try log.read(
            at: FileOffset(end - UInt64(FrameHeader.tailLength)),
            count: FrameHeader.tailLength
        )
        guard let length = FrameHeader.tailWord(bytes, at: 0), length >= 40,
            length <= end - FileHeader.logStart.rawValue
        else { return nil }
        return end - length
    }
}
