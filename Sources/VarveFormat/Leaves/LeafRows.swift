// Rows on their way into a leaf, and where a leaf says its set of symbol tables is.
//
// Invariants
// - As many objects and versions as ends of rows; a row lies between two ends.
// - An address is refused unless two frames may lie there.

public import VarveBase

/// Rows for the encoder: ascending objects, versions, packed rows one after another.
public struct LeafRows: Sendable {
    /// The object of each row.
    public var objects: [UInt64] = []
    /// The version of each row: the commit that last changed it.
    public var versions: [UInt64] = []
    /// The packed rows, one after another.
    public var bytes: [UInt8] = []
    /// Where each row ends in `bytes`.
    public var ends: [Int] = []

    /// No rows.
    public init() {}

    /// Number of rows.
    public var count: Int { ends.count }

    /// Adds a row behind the others.
    /// - Complexity: O(bytes of the row).
    public mutating func append(object: UInt64, version: UInt64, row: Span<UInt8>) {
        objects.append(object)
        versions.append(version)
        var writer = ByteWriter(appendingTo: bytes)
        bytes = []
        writer.raw(row, 0..<row.count)
        bytes = writer.bytes
        ends.append(bytes.count)
    }

    /// Takes all rows out, and keeps the memory if asked to.
    public mutating func removeAll(keepingCapacity: Bool = false) {
        objects.removeAll(keepingCapacity: keepingCapacity)
        versions.removeAll(keepingCapacity: keepingCapacity)
        bytes.removeAll(keepingCapacity: keepingCapacity)
        ends.removeAll(keepingCapacity: keepingCapacity)
    }

    /// Where a row lies in `bytes`.
    public func range(_ index: Int) -> Range<Int> {
        (index == 0 ? 0 : ends[index - 1])..<ends[index]
    }
}

/// Where a leaf says its set of tables is: two equal frames.
public struct SymbolSetAddress: Hashable, Sendable {
    /// The first VALUE frame.
    public var first: FileOffset
    /// The second VALUE frame, with the same payload.
    public var twin: FileOffset
    /// Bytes of each frame's stored payload.
    public var storedLength: UInt32
    /// XXH64 of the stored payload, seeded with the file's seed.
    public var payloadHash: UInt64

    /// Joins the fields.
    public init(first: FileOffset, twin: FileOffset, storedLength: UInt32, payloadHash: UInt64) {
        self.first = first
        self.twin = twin
        self.storedLength = storedLength
        self.payloadHash = payloadHash
    }

    /// The address in words of a leaf; nil: there is no set.
    init?(
        first: UInt64,
        twin: UInt64,
        hash: UInt64,
        lengths: UInt64,
        place: FormatPlace
    ) throws(FormatError) {
        if first == 0, twin == 0, hash == 0, lengths == 0 { return nil }
        self.first = FileOffset(first)
        self.twin = FileOffset(twin)
        storedLength = UInt32(truncatingIfNeeded: lengths)
        payloadHash = hash
        guard lengths >> 32 == 0 else {
            throw FormatError(
                place: place,
                field: "symbol set, reserved",
                found: "some bits",
                expected: "0"
            )
        }
        guard storedLength > 0, first != twin, Self.isPlace(first, storedLength),
            Self.isPlace(twin, storedLength)
        else {
            throw FormatError(
                place: place,
                field: "symbol set",
                found: "\(self.first.frameName) and \(self.twin.frameName)",
                expected: "two frames"
            )
        }
    }

    private static func isPlace(_ offset: UInt64, _ length: UInt32) -> Bool {
        let address = PageAddress(
            offset: FileOffset(offset),
            storedLength: length,
            payloadHash: 0
        )
        return offset % FrameHeader.alignment == 0 && offset >= FileHeader.logStart.rawValue
            && !offset.addingReportingOverflow(address.frameLength).overflow
    }
}
