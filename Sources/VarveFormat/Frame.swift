// Frames: what the log is made of.
//
//   header 32 | payload | zeros up to 8 | tail word 8
//
// Invariants
// - A frame starts at a multiple of 8 and frames follow each other without a gap.
// - The header hash binds the header to its place and its file; the payload hash to its file.
// - No frame has 256 zeros in a row, from its header to its tail word: a payload that would is
//   stored compressed. So in every 512-byte sector that a frame touches two of its bytes at least
//   are not zero, and one that was never written can be told from one with a flipped bit.
// Format.md, chapter "Frames".

public import VarveBase

/// What a frame holds.
public enum FrameKind: UInt8, Sendable, CaseIterable {
    /// A commit as row changes.
    case delta = 1
    /// A commit as roots of trees.
    case tree = 2
    /// Roots of trees without a change.
    case checkpoint = 3
    /// "All before me is synced."
    case close = 4
    /// One node of a tree.
    case page = 5
    /// One large value.
    case value = 6

    /// Whether the frame carries a commit record and is a link of the commit chain.
    public var isCommitFrame: Bool { rawValue <= FrameKind.close.rawValue }

    /// The most payload bytes that a reader accepts, compressed or not.
    public var payloadBytesMax: Int {
        switch self {
        case .delta, .tree: 1 << 30
        case .checkpoint, .close: 1 << 24
        case .page: 1 << 26
        case .value: 1 << 25
        }
    }
}

/// Flags of a frame.
public struct FrameFlags: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt8
    /// Wraps bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The payload after its uncompressed front is one LZ4 block.
    public static let compressed = FrameFlags(rawValue: 1)
    /// The commit changes rows.
    public static let carriesChanges = FrameFlags(rawValue: 2)
    /// The commit writes unproven commits again.
    public static let settle = FrameFlags(rawValue: 4)
    /// Reserved for encrypted payloads.
    public static let encrypted = FrameFlags(rawValue: 8)
    /// The commit that the header names was not known to be on disk when this was written: both
    /// belong to one batch.
    public static let stacked = FrameFlags(rawValue: 16)
    /// What this version understands.
    public static let known: FrameFlags = [.compressed, .carriesChanges, .settle, .stacked]
}

/// The first 32 bytes of a frame.
public struct FrameHeader: Hashable, Sendable {
    /// Bytes of the header.
    public static let length = 32
    /// Bytes of the word after the payload.
    public static let tailLength = 8
    /// First two bytes, little-endian; not zero, so zeros are no frame.
    public static let magic: UInt16 = 0x5646
    /// Upper half of the tail word.
    public static let tailMagic: UInt32 = 0x4C54_5246
    /// Fewer zeros than these stand in a row anywhere in a frame.
    public static let zerosEnd = 256
    /// Frames start at multiples of this.
    public static let alignment: UInt64 = 8

    /// What the payload is.
    public var kind: FrameKind
    /// How it is stored.
    public var flags: FrameFlags
    /// Payload bytes in the file.
    public var storedLength: UInt32
    /// Payload bytes after decompression.
    public var rawLength: UInt32
    /// Newest commit frame of the chain before this frame; 0 when there is none.
    public var previousCommit: FileOffset
    /// XXH64 of the stored payload, seeded with the file's seed.
    public var payloadHash: UInt64

    /// Joins the fields.
    public init(
        kind: FrameKind,
        flags: FrameFlags,
        storedLength: UInt32,
        rawLength: UInt32,
        previousCommit: FileOffset,
        payloadHash: UInt64
    ) {
        self.kind = kind
        self.flags = flags
        self.storedLength = storedLength
        self.rawLength = rawLength
        self.previousCommit = previousCommit
        self.payloadHash = payloadHash
    }

    /// Bytes of the whole frame: header, payload, padding, tail word.
    public var frameLength: UInt64 {
        UInt64(Self.length + Self.tailLength) + Self.padded(UInt64(storedLength))
    }

    static func padded(_ length: UInt64) -> UInt64 { (length + 7) & ~7 }

    /// Appends the 32 bytes of a header that stands at `offset` of a file with `seed`.
    public func append(to writer: inout ByteWriter, at offset: FileOffset, seed: UInt64) {
        let start = writer.count
        writer.u16(Self.magic)
        writer.u8(kind.rawValue)
        writer.u8(flags.rawValue)
        writer.u32(storedLength)
        writer.u32(rawLength)
        writer.u32(0)
        writer.u64(previousCommit.rawValue)
        writer.u64(payloadHash)
        let hash = FrameHash.xxh64(
            writer.bytes,
            range: start..<(start + Self.length),
            seed: seed ^ offset.rawValue
        )
        writer.patch(UInt32(truncatingIfNeeded: hash), at: start + 12)
    }

    /// Reads the header at `position` of `bytes`, which is `offset` in a file with `seed`.
    ///
    /// - Throws: `FormatError` when the bytes are no header of this place, or of an unknown kind.
    public init(
        decoding bytes: [UInt8],
        at position: Int,
        offset: FileOffset,
        seed: UInt64
    ) throws(FormatError) {
        let place = FormatPlace("frame", offset)
        guard position >= 0, bytes.count - position >= Self.length else {
            throw FormatError(
                place: place,
                field: "header",
                found: "end of data",
                expected: "32 bytes"
            )
        }
        var reader = ByteReader(
            bytes,
            range: position..<(position + Self.length),
            place: place
        )
        guard try reader.u16("magic") == Self.magic else {
            throw reader.error("magic", "other bytes", "a frame")
        }
        let kindByte = try reader.u8("kind")
        let flagByte = try reader.u8("flags")
        storedLength = try reader.u32("stored length")
        rawLength = try reader.u32("raw length")
        let storedHash = try reader.u32("header hash")
        previousCommit = FileOffset(try reader.u64("previous commit"))
        payloadHash = try reader.u64("payload hash")

        let hash = FrameHash.xxh64WithoutWord3(
            bytes,
            range: position..<(position + Self.length),
            seed: seed ^ offset.rawValue
        )
        guard storedHash == UInt32(truncatingIfNeeded: hash) else {
            throw reader.error("header hash", "another hash", "the hash of this header here")
        }
        guard let kind = FrameKind(rawValue: kindByte) else {
            throw reader.error("kind", "\(kindByte)", "1 to 6")
        }
        self.kind = kind
        flags = FrameFlags(rawValue: flagByte)
        guard flags.isSubset(of: .known) else {
            throw reader.error("flags", "\(flagByte)", "known flags")
        }
        guard storedLength <= kind.payloadBytesMax, rawLength <= kind.payloadBytesMax else {
            throw reader.error(
                "length",
                "\(max(storedLength, rawLength))",
                "at most \(kind.payloadBytesMax)"
            )
        }
        guard offset.rawValue % Self.alignment == 0, previousCommit < offset else {
            throw reader.error("previous commit", "a later frame", "an earlier one")
        }
    }

    /// Whether bytes at `position` could be a header: the cheap test before `init(decoding:)`.
    public static func mayStart(_ bytes: [UInt8], at position: Int) -> Bool {
        position >= 0 && bytes.count - position >= length
            && ByteReader.load16(bytes, position) == magic
    }

    /// Length of the frame that a tail word at `position` claims to end; nil when it is none.
    public static func tailWord(_ bytes: [UInt8], at position: Int) -> UInt64? {
        guard position >= 0, bytes.count - position >= tailLength,
            ByteReader.load32(bytes, position + 4) == tailMagic
        else { return nil }
        return UInt64(ByteReader.load32(bytes, position)) * alignment
    }
}

extension FileOffset {
    /// The spelling of a frame's place everywhere: "p@" and the offset in lowercase hex.
    public var frameName: String { "p@" + String(rawValue, radix: 16) }
}

/// Builds frames.
public enum Frame {
    /// A frame as its reader will need it.
    public struct Placed: Hashable, Sendable {
        /// Where it starts.
        public var offset: FileOffset
        /// Its header.
        public var header: FrameHeader
        /// Joins the parts.
        public init(offset: FileOffset, header: FrameHeader) {
            self.offset = offset
            self.header = header
        }
        /// The first byte after it.
        public var end: FileOffset { FileOffset(offset.rawValue + header.frameLength) }
    }

    /// A frame whose place is not known yet: compressed and hashed, which needs no place.
    public struct Prepared: Sendable {
        let kind: FrameKind
        let flags: FrameFlags
        let payload: [UInt8]
        let rawLength: UInt32
        let payloadHash: UInt64

        /// Whether the body is compressed, wished or not: a long run of zeros always is.
        public var isCompressed: Bool { flags.contains(.compressed) }

        /// Bytes of the whole frame.
        public var frameLength: UInt64 {
            UInt64(FrameHeader.length + FrameHeader.tailLength)
                + FrameHeader.padded(UInt64(payload.count))
        }
    }

    /// Compresses and hashes a payload: the costly half of building a frame, for any thread.
    ///
    /// - Parameters:
    ///   - front: payload bytes that are never compressed.
    ///   - body: the rest of the payload; compressed when `compresses` is true and that saves an
    ///     eighth, or when the frame would have `FrameHeader.zerosEnd` zeros in a row.
    /// - Complexity: O(payload).
    public static func prepare(
        _ kind: FrameKind,
        flags: FrameFlags = [],
        front: [UInt8],
        body: [UInt8],
        compresses: Bool,
        seed: UInt64
    ) -> Prepared {
        precondition(
            front.count + body.count <= kind.payloadBytesMax,
            "the caller bounds its payloads"
        )
        var stored: [UInt8]?
        if compresses {
            stored = BlockCompression.compress(body)
        }
        if !isDense(front: front, rest: stored ?? body) {
            stored = BlockCompression.compressAlways(body)
            if !isDense(front: front, rest: stored ?? body) { stored = ZeroRuns.block(body) }
        }
        var payload = ByteWriter(capacity: front.count + (stored ?? body).count)
        payload.raw(front)
        payload.raw(stored ?? body)
        return Prepared(
            kind: kind,
            flags: stored == nil ? flags : flags.union(.compressed),
            payload: payload.bytes,
            rawLength: UInt32(front.count + body.count),
            payloadHash: FrameHash.xxh64(payload.bytes, seed: seed)
        )
    }

    /// Appends a prepared frame.
    ///
    /// - Parameter offset: where the frame will stand; a multiple of 8.
    /// - Complexity: O(payload), a copy.
    public static func append(
        _ prepared: Prepared,
        to writer: inout ByteWriter,
        flags: FrameFlags = [],
        previousCommit: FileOffset,
        at offset: FileOffset,
        seed: UInt64
    ) -> Placed {
        precondition(offset.rawValue % FrameHeader.alignment == 0, "frames are aligned")
        let header = FrameHeader(
            kind: prepared.kind,
            flags: prepared.flags.union(flags),
            storedLength: UInt32(prepared.payload.count),
            rawLength: prepared.rawLength,
            previousCommit: previousCommit,
            payloadHash: prepared.payloadHash
        )
        append(header, payload: prepared.payload[...], to: &writer, at: offset, seed: seed)
        return Placed(offset: offset, header: header)
    }

    /// The bytes of a frame whose header and payload are known.
    public static func append(
        _ header: FrameHeader,
        payload: ArraySlice<UInt8>,
        to writer: inout ByteWriter,
        at offset: FileOffset,
        seed: UInt64
    ) {
        precondition(payload.count == Int(header.storedLength), "a header and its payload")
        let start = writer.count
        writer.reserve(Int(header.frameLength))
        header.append(to: &writer, at: offset, seed: seed)
        writer.raw(payload)
        writer.zeros(start + Int(header.frameLength) - FrameHeader.tailLength - writer.count)
        writer.u32(UInt32(header.frameLength / FrameHeader.alignment))
        writer.u32(FrameHeader.tailMagic)
    }

    /// Prepares a frame and appends it; the parameters of `prepare` and `append(_:to:)`.
    /// - Complexity: O(payload).
    public static func append(
        to writer: inout ByteWriter,
        kind: FrameKind,
        flags: FrameFlags = [],
        front: [UInt8],
        body: [UInt8],
        compresses: Bool,
        previousCommit: FileOffset,
        at offset: FileOffset,
        seed: UInt64
    ) -> Placed {
        let prepared = prepare(
            kind,
            flags: flags,
            front: front,
            body: body,
            compresses: compresses,
            seed: seed
        )
        return append(prepared, to: &writer, previousCommit: previousCommit, at: offset, seed: seed)
    }

    /// Fills in what a commit frame can know only when its batch is about to be written.
    ///
    /// - Parameters:
    ///   - position: where the frame starts in `writer`; `placed` is what `append` returned.
    ///   - previousHash: payload hash of the commit before, which was sealed before.
    ///   - durableEnd: everything below is on disk.
    ///   - isStacked: whether the commit before is not known to be.
    /// - Returns: the header as it is now.
    /// - Complexity: O(payload), for its hash.
    public static func sealCommit(
        in writer: inout ByteWriter,
        at position: Int,
        placed: Placed,
        previousHash: UInt64,
        durableEnd: FileOffset,
        isStacked: Bool,
        seed: UInt64
    ) -> FrameHeader {
        precondition(placed.header.kind.isCommitFrame, "only commit frames have a record")
        let payload = position + FrameHeader.length
        writer.patch(previousHash, at: payload + CommitRecord.previousHashOffset)
        writer.patch(durableEnd.rawValue, at: payload + CommitRecord.durableEndOffset)
        var header = placed.header
        if isStacked { header.flags.insert(.stacked) }
        header.payloadHash = FrameHash.xxh64(
            writer.bytes,
            range: payload..<(payload + Int(header.storedLength)),
            seed: seed
        )
        var bytes = ByteWriter(capacity: FrameHeader.length)
        header.append(to: &bytes, at: placed.offset, seed: seed)
        writer.bytes.replaceSubrange(position..<payload, with: bytes.bytes)
        return header
    }

    /// Whether a frame of this payload, header and padding included, has no run of
    /// `FrameHeader.zerosEnd` zeros.
    private static func isDense(front: [UInt8], rest: [UInt8]) -> Bool {
        if ZeroRuns.hasRun(of: FrameHeader.zerosEnd, in: rest) { return false }
        let length = UInt64(front.count + rest.count)
        let padding = Int(FrameHeader.padded(length) - length)
        // Hashes, and what `sealCommit` fills in, may be zeros: a front of zeros goes on in the
        // header. That of a commit ends with its record, which has other bytes after those.
        var before = ZeroRuns.trailing(front)
        if before == front.count { before += FrameHeader.length }
        let leading = ZeroRuns.leading(rest)
        if leading == rest.count { return before + leading + padding < FrameHeader.zerosEnd }
        return before + leading < FrameHeader.zerosEnd
            && ZeroRuns.trailing(rest) + padding < FrameHeader.zerosEnd
    }

    /// What stands after the uncompressed front of a payload: the bytes to read and where.
    ///
    /// - Parameters:
    ///   - bytes: an array that holds the stored payload at `payload`.
    ///   - frontLength: bytes that are never compressed.
    /// - Throws: `FormatError` when a length does not fit. The caller checked the payload hash.
    /// - Complexity: O(raw length) for a compressed payload, else O(1).
    public static func body(
        of bytes: [UInt8],
        payload: Range<Int>,
        header: FrameHeader,
        frontLength: Int,
        place: FormatPlace
    ) throws(FormatError) -> (bytes: [UInt8], range: Range<Int>) {
        precondition(payload.lowerBound >= 0 && payload.upperBound <= bytes.count)
        guard frontLength <= payload.count, frontLength <= Int(header.rawLength) else {
            throw FormatError(
                place: place,
                field: "stored length",
                found: "\(payload.count)",
                expected: "at least \(frontLength)"
            )
        }
        let stored = (payload.lowerBound + frontLength)..<payload.upperBound
        guard header.flags.contains(.compressed) else {
            guard header.rawLength == header.storedLength else {
                throw FormatError(
                    place: place,
                    field: "raw length",
                    found: "\(header.rawLength)",
                    expected: "\(header.storedLength)"
                )
            }
            return (bytes, stored)
        }
        let raw = try BlockCompression.decompress(
            bytes,
            range: stored,
            rawLength: Int(header.rawLength) - frontLength,
            limit: header.kind.payloadBytesMax,
            place: place
        )
        return (raw, 0..<raw.count)
    }
}
