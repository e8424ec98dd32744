// How a parent names what lies below it.
//
// Invariants
// - The parent vouches for the child: offset, length and hash must all fit, so that a sound root
//   vouches for every byte of its trees.
// - A child lies below its parent in the file; no chain of addresses can be a cycle.
// Format.md, chapter "Addresses".

public import VarveBase

/// Address of a PAGE or VALUE frame.
public struct PageAddress: Hashable, Sendable {
    /// Offset of the frame; a multiple of 8.
    public var offset: FileOffset
    /// Bytes of the frame's stored payload.
    public var storedLength: UInt32
    /// XXH64 of the stored payload, seeded with the file's seed.
    public var payloadHash: UInt64

    /// Joins the fields.
    public init(offset: FileOffset, storedLength: UInt32, payloadHash: UInt64) {
        self.offset = offset
        self.storedLength = storedLength
        self.payloadHash = payloadHash
    }

    /// Bytes of the whole frame.
    public var frameLength: UInt64 {
        UInt64(FrameHeader.length + FrameHeader.tailLength)
            + FrameHeader.padded(UInt64(storedLength))
    }

    /// Appends offset / 8 and length as varints, then the hash.
    public func append(to writer: inout ByteWriter) {
        writer.varint(offset.rawValue / FrameHeader.alignment)
        writer.varint(UInt64(storedLength))
        writer.u64(payloadHash)
    }

    /// Reads an address whose frame must end at or below `limit`.
    public init(
        from reader: inout ByteReader,
        below limit: FileOffset
    ) throws(FormatError) {
        let words = try reader.varint("address")
        let length = try reader.varint("address length")
        payloadHash = try reader.u64("address hash")
        let (bytes, overflow) = words.multipliedReportingOverflow(by: FrameHeader.alignment)
        guard !overflow, let stored = UInt32(exactly: length) else {
            throw reader.error("address", "a number too large", "a place in the file")
        }
        offset = FileOffset(bytes)
        storedLength = stored
        let (end, tooFar) = bytes.addingReportingOverflow(frameLength)
        guard !tooFar, bytes >= FileHeader.logStart.rawValue, end <= limit.rawValue else {
            throw reader.error(
                "address",
                offset.frameName,
                "a frame below \(limit.frameName)"
            )
        }
    }
}

/// Where a large value or a small blob lies: a VALUE frame and the value's own length.
public struct ValuePlace: Hashable, Sendable {
    /// The frame.
    public var address: PageAddress
    /// Bytes of the value itself.
    public var length: UInt64

    /// Joins the fields.
    public init(address: PageAddress, length: UInt64) {
        self.address = address
        self.length = length
    }

    /// Appends address and length.
    public func append(to writer: inout ByteWriter) {
        address.append(to: &writer)
        writer.varint(length)
    }

    /// Reads a place whose frame must end at or below `limit`.
    public init(
        from reader: inout ByteReader,
        below limit: FileOffset
    ) throws(FormatError) {
        address = try PageAddress(from: &reader, below: limit)
        length = try reader.varint("value length")
    }

    /// Reads an entry of the tree of large values, which stands in the page of a commit.
    public init(decoding entry: [UInt8]) throws(FormatError) {
        var reader = ByteReader(entry, place: "large value")
        try self.init(from: &reader, below: FileOffset(.max))
    }
}
