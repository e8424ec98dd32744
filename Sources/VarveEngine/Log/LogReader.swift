// From an address to verified bytes.
//
// Invariants
// - Bytes are handed on only after offset, length and hash of the address and the header agree.
// - One read of the exact length per frame; a failed read is an error, never "absent".

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// One frame as it was read.
struct FrameBytes {
    var header: FrameHeader
    /// The frame from its header on; after its payload may stand anything.
    var bytes: [UInt8]
    /// Where the stored payload lies in `bytes`.
    var payload: Range<Int>
    var offset: FileOffset

    var end: FileOffset { FileOffset(offset.rawValue + header.frameLength) }
    var placed: Frame.Placed { Frame.Placed(offset: offset, header: header) }
}

struct LogReader: Sendable {
    let file: any ReadOnlyFile
    let seed: UInt64
    /// Tables that packed leaves are read with.
    let symbols: SymbolSets
    /// False in tests that plant a bug, never else.
    let checksPayloads: Bool
    let checksBodies: Bool
    let readsEdits: Bool

    init(
        file: any ReadOnlyFile,
        seed: UInt64,
        _ environment: any Environment = SystemEnvironment()
    ) {
        self.file = file
        self.seed = seed
        symbols = SymbolSets(readsTwins: !environment.leavesOut(.readTwin))
        checksPayloads = !environment.leavesOut(.checkPayloadHash)
        checksBodies = !environment.leavesOut(.checkBodyHash)
        readsEdits = !environment.leavesOut(.readEdits)
    }

    /// A reader that checks as another one, of the same bytes by another way.
    init(copying reader: LogReader, file: any ReadOnlyFile) {
        self.file = file
        seed = reader.seed
        symbols = reader.symbols
        checksPayloads = reader.checksPayloads
        checksBodies = reader.checksBodies
        readsEdits = reader.readsEdits
    }

    /// The frame that `address` names, checked against it.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    func frame(_ address: PageAddress, kind: FrameKind) throws(EngineError) -> FrameBytes {
        try frame(address, kind: kind, bytes: bytes(of: address, kind: kind))
    }

    /// The same, in the buffer if the frame fits in it.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    func frame(
        _ address: PageAddress,
        kind: FrameKind,
        in buffer: consuming [UInt8]
    ) throws(EngineError) -> FrameBytes {
        let count = FrameHeader.length + Int(address.storedLength)
        guard count <= buffer.count else { return try frame(address, kind: kind) }
        let found: Int
        do throws(IOError) {
            found = try file.read(at: address.offset, count: count, into: &buffer)
        } catch {
            throw .io(error)
        }
        return try frame(address, kind: kind, bytes: buffer, count: found)
    }

    /// The bytes of the frame that `address` names, not checked yet.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    func bytes(of address: PageAddress, kind: FrameKind) throws(EngineError) -> [UInt8] {
        guard address.storedLength <= kind.payloadBytesMax else {
            throw .damaged("an address names \(address.storedLength) bytes", place: address.offset)
        }
        let count = FrameHeader.length + Int(address.storedLength)
        return try read(at: address.offset, count: count)
    }

    /// The frame that `address` names, of bytes that were read there.
    ///
    /// - Parameter found: how many of them were read; nil: all.
    /// - Throws: `damaged`.
    func frame(
        _ address: PageAddress,
        kind: FrameKind,
        bytes: [UInt8],
        count found: Int? = nil
    ) throws(EngineError) -> FrameBytes {
        // Nothing after them is looked at.
        guard (found ?? bytes.count) >= FrameHeader.length else {
            throw .damaged("the file ends inside a frame", place: address.offset)
        }
        let count = FrameHeader.length + Int(address.storedLength)
        let header: FrameHeader
        do throws(FormatError) {
            header = try FrameHeader(decoding: bytes, at: 0, offset: address.offset, seed: seed)
        } catch {
            throw .damaged(error, place: address.offset)
        }
        guard header.kind == kind, header.storedLength == address.storedLength,
            header.payloadHash == address.payloadHash, (found ?? bytes.count) == count
        else {
            throw .damaged(
                "frame \(address.offset.frameName) is not the one its parent names",
                place: address.offset
            )
        }
        let payload = FrameHeader.length..<count
        guard
            FrameHash.xxh64(bytes, range: payload, seed: seed) == address.payloadHash
                || !checksPayloads
        else {
            throw .damaged(
                "frame \(address.offset.frameName) has another hash than its parent names",
                place: address.offset
            )
        }
        return FrameBytes(header: header, bytes: bytes, payload: payload, offset: address.offset)
    }

    /// The value at a place: a large value or a small blob.
    func value(_ place: ValuePlace) throws(EngineError) -> [UInt8] {
        let frame = try frame(place.address, kind: .value)
        let name = FormatPlace("value", frame.offset)
        do throws(FormatError) {
            _ = try ValueHeader(decoding: frame.bytes, range: frame.payload, place: name)
            let (bytes, range) = try Frame.body(
                of: frame.bytes,
                payload: frame.payload,
                header: frame.header,
                frontLength: ValueHeader.length,
                place: name
            )
            guard UInt64(range.count) == place.length else {
                throw FormatError(
                    place: name,
                    field: "length",
                    found: "\(range.count)",
                    expected: "\(place.length)"
                )
            }
            return Array(bytes[range])
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    func read(at offset: FileOffset, count: Int) throws(EngineError) -> [UInt8] {
        try Engine.io { () throws(IOError) in try file.read(at: offset, count: count) }
    }

    func size() throws(EngineError) -> UInt64 {
        try Engine.io { () throws(IOError) in try file.size() }
    }
}
