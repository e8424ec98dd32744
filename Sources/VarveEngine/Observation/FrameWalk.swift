// Single frames and all frames of a log, sound or not: for tools.
//
// Invariants
// - A length is believed only from a header whose hash fits its place; else the walk looks for the
//   next header that does. So every byte of the log belongs to one piece, and the walk ends.

public import VarveBase
public import VarveFormat

/// One frame as an observer finds it.
public struct ObservedFrame: Sendable {
    /// Where it starts.
    public let offset: FileOffset
    /// Its header; the header's hash fits its place.
    public let header: FrameHeader
    /// Whether the payload is the one that was written.
    public let isPayloadSound: Bool
    /// Whether the word after the payload is right.
    public let isTailSound: Bool
    /// The commit record of a sound commit frame.
    public let record: CommitRecord?
    /// The front of a page. Of a damaged one it is a hint only.
    public let page: PageHeader?
    /// The front of a value. Of a damaged one it is a hint only.
    public let value: ValueHeader?
    /// The frame's bytes as they are in the file.
    public let bytes: [UInt8]
    /// Length of the payload's uncompressed front.
    public let frontLength: Int

    /// The first byte after it.
    public var end: FileOffset { FileOffset(offset.rawValue + header.frameLength) }
    /// Where the stored payload lies in `bytes`.
    public var payload: Range<Int> {
        let end = FrameHeader.length + Int(header.storedLength)
        return FrameHeader.length..<min(end, max(bytes.count, FrameHeader.length))
    }

    /// What stands after the payload's uncompressed front, decompressed.
    ///
    /// - Throws: `FormatError` when a length does not fit.
    public func body() throws(FormatError) -> ByteReader {
        let place = FormatPlace("frame", offset)
        guard isPayloadSound else {
            throw FormatError(
                place: place,
                field: "payload hash",
                found: "another hash",
                expected: "the hash of its payload"
            )
        }
        let (bytes, range) = try Frame.body(
            of: bytes,
            payload: payload,
            header: header,
            frontLength: frontLength,
            place: place
        )
        return ByteReader(bytes, range: range, place: place)
    }
}

extension LogObserver {
    /// Keys and values of a page that is a leaf, whatever its layout.
    ///
    /// - Throws: `damaged`, `ioFailed` while symbol tables are read.
    /// - Complexity: O(page).
    public func entries(
        of frame: ObservedFrame
    ) throws(EngineError) -> [(key: [UInt8], value: [UInt8])] {
        guard let page = frame.page, page.level == 0, frame.isPayloadSound else {
            throw .damaged("no sound leaf begins at \(frame.offset.frameName)", place: frame.offset)
        }
        let bytes = FrameBytes(
            header: frame.header,
            bytes: frame.bytes,
            payload: frame.payload,
            offset: frame.offset
        )
        let node = try log.node(bytes, tree: page.tree, level: 0)
        return (0..<node.count).map { (node.key($0), node.value($0)) }
    }
}

/// A part of a log, in the order of its bytes.
public enum LogPiece: Sendable {
    /// A frame whose header fits its place.
    case frame(ObservedFrame)
    /// Bytes that begin no frame, up to the next frame or to the end of the data.
    case gap(Range<UInt64>)
    /// Zeros between frames: a writer leaves them behind doubtful bytes.
    case zeros(Range<UInt64>)
}

extension LogObserver {
    /// The frame at an offset, or nil when no header there fits its place.
    ///
    /// - Throws: `ioFailed`.
    /// - Complexity: O(frame).
    public func frame(at offset: FileOffset) throws(EngineError) -> ObservedFrame? {
        guard let header = try scan.header(at: offset.rawValue),
            let count = Int(exactly: header.frameLength)
        else { return nil }
        let bytes = try log.read(at: offset, count: count)
        guard bytes.count == count else { return nil }
        let payload = FrameHeader.length..<(FrameHeader.length + Int(header.storedLength))
        let isSound =
            FrameHash.xxh64(bytes, range: payload, seed: log.seed) == header.payloadHash
        let tail = FrameHeader.tailWord(bytes, at: count - FrameHeader.tailLength)
        var record: CommitRecord?
        var page: PageHeader?
        var value: ValueHeader?
        var frontLength = 0
        do throws(FormatError) {
            switch header.kind {
            case .delta, .tree, .checkpoint, .close:
                if isSound {
                    let limit = CommitRecord.fixedLength + CommitRecord.extraBytesMax
                    let front = Array(bytes[payload.prefix(limit)])
                    let decoded = try CommitRecord.decode(front, offset: offset)
                    record = decoded.record
                    frontLength = decoded.length
                }
            case .page:
                page = try PageHeader(decoding: bytes, range: payload, place: "page")
                frontLength = PageHeader.length
            case .value:
                value = try ValueHeader(decoding: bytes, range: payload, place: "value")
                frontLength = ValueHeader.length
            }
        } catch {
            // A front that cannot be read: the frame is told as it is, without it.
        }
        return ObservedFrame(
            offset: offset,
            header: header,
            isPayloadSound: isSound,
            isTailSound: tail == header.frameLength,
            record: record,
            page: page,
            value: value,
            bytes: bytes,
            frontLength: frontLength
        )
    }

    /// Every piece of the log in the order of its bytes, from `start` on, until `body` says stop.
    ///
    /// - Throws: `ioFailed`, and what `body` throws.
    /// - Complexity: O(bytes of the log).
    public func forEachPiece(
        from start: FileOffset = FileHeader.logStart,
        _ body: (LogPiece) throws -> Bool
    ) throws {
        var position = max(start.rawValue, FileHeader.logStart.rawValue)
        while position < dataEnd {
            if let frame = try frame(at: FileOffset(position)) {
                if let next = try soundFrame(inside: frame) {
                    guard try body(.gap(position..<next)) else { return }
                    position = next
                    continue
                }
                guard try body(.frame(frame)) else { return }
                position = frame.end.rawValue
            } else {
                let zeros = try endOfZeros(from: position)
                let next = zeros > position ? zeros : try nextHeader(after: position)
                let range = position..<next
                guard try body(zeros > position ? .zeros(range) : .gap(range)) else { return }
                position = next
            }
        }
    }

    /// Where a log goes on inside a frame that was torn: recovery goes on at a multiple of 4096
    /// after the bytes that arrived, which may lie before the end that the torn frame's header
    /// names. Of a frame with a sound payload only the tail word, which no hash covers, can be
    /// missing.
    private func soundFrame(inside torn: ObservedFrame) throws(EngineError) -> UInt64? {
        if torn.isPayloadSound && torn.isTailSound { return nil }
        var place = (torn.offset.rawValue | 4095) + 1
        if torn.isPayloadSound {
            let tail = torn.end.rawValue - UInt64(FrameHeader.tailLength)
            guard tail & 4095 == 0 else { return nil }
            place = tail
        }
        while place < min(torn.end.rawValue, dataEnd) {
            if let frame = try frame(at: FileOffset(place)), frame.isPayloadSound { return place }
            place += 4096
        }
        return nil
    }

    /// The first word at or after `position` that is not zero, or the end of the data.
    private func endOfZeros(from position: UInt64) throws(EngineError) -> UInt64 {
        var from = position
        while from < dataEnd {
            let count = Int(min(LogScan.window, dataEnd - from))
            let bytes = try log.read(at: FileOffset(from), count: count)
            if let first = bytes.firstIndex(where: { $0 != 0 }) {
                return max(position, (from + UInt64(first)) & ~7)
            }
            guard bytes.count == count else { break }
            from += UInt64(count)
        }
        return dataEnd
    }

    /// The next offset with a header that fits, or the end of the data.
    private func nextHeader(after position: UInt64) throws(EngineError) -> UInt64 {
        var from = (position & ~7) + FrameHeader.alignment
        while from < dataEnd {
            let count = Int(min(LogScan.window, dataEnd - from))
            let bytes = try log.read(at: FileOffset(from), count: count + FrameHeader.length)
            var at = 0
            while at < count {
                if scan.decode(bytes, at: at, offset: from + UInt64(at)) != nil {
                    return from + UInt64(at)
                }
                at += Int(FrameHeader.alignment)
            }
            from += UInt64(count + 7) & ~7
        }
        return dataEnd
    }
}
