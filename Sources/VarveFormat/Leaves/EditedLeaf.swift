// A leaf of layout 2: another leaf, of layout 1, of which some rows were changed.
//
// Invariants
// - Rows of the basis that are gone ascend, and so do the objects of the leaf's own rows.
// - The basis lies below the leaf in the file, and is a leaf of layout 1: nothing is looked for
//   through several leaves.
// Format.md, chapter "Leaves of layout 2".

public import VarveBase

/// What a leaf of layout 2 says beside its basis.
public struct EditedLeaf: Sendable {
    /// The most bytes that rows of a basis have together: those of any leaf of layout 1.
    static let keptBytesMax = 16 << 20

    /// Where the leaf of layout 1 is.
    public let basis: PageAddress
    /// Bytes that the values of those rows have which are still the basis's, once unpacked.
    public let keptBytes: Int
    /// Rows of the basis that are not the leaf's, ascending.
    public let gone: [Int]
    /// Objects of the leaf's own rows, ascending.
    public let objects: [UInt64]
    /// Where the value of each of them lies: the version, then the row.
    public let values: [Range<Int>]

    /// Appends what stands in front of the values, which the caller appends then.
    public static func append(
        basis: PageAddress,
        keptBytes: Int,
        gone: [Int],
        objects: [UInt64],
        valueLengths: [Int],
        to writer: inout ByteWriter
    ) {
        precondition(objects.count == valueLengths.count, "each row has a value")
        basis.append(to: &writer)
        writer.count(keptBytes)
        writer.count(gone.count)
        var next = 0
        for row in gone {
            writer.count(row - next)
            next = row + 1
        }
        writer.count(objects.count)
        var last: UInt64 = 0
        for object in objects {
            writer.varint(object &- last)
            last = object
        }
        for length in valueLengths { writer.count(length) }
    }

    /// Reads the body that lies at `range` of `bytes`.
    ///
    /// - Parameters:
    ///   - count: rows of the leaf, as its header says.
    ///   - offset: where its frame begins.
    /// - Throws: `FormatError` when a number does not fit. Whether the rows that are gone are the
    ///   basis's is for the caller.
    /// - Complexity: O(rows that are gone + own rows).
    public init(
        decoding bytes: [UInt8],
        range: Range<Int>,
        count: Int,
        offset: FileOffset
    ) throws(FormatError) {
        var reader = ByteReader(bytes, range: range, place: FormatPlace("page", offset))
        basis = try PageAddress(from: &reader, below: offset)
        keptBytes = try reader.count("kept bytes", limit: Self.keptBytesMax)
        // No leaf has more rows.
        let rowsMax = Int(UInt16.max)
        let goneCount = try reader.count(
            "rows that are gone",
            limit: min(rowsMax, reader.remaining)
        )
        var gone: [Int] = []
        gone.reserveCapacity(goneCount)
        var next = 0
        for _ in 0..<goneCount {
            next += try reader.count("row that is gone", limit: rowsMax - min(next, rowsMax))
            gone.append(next)
            next += 1
        }
        self.gone = gone
        let ownCount = try reader.count("rows", limit: min(count, reader.remaining))
        var objects: [UInt64] = []
        objects.reserveCapacity(ownCount)
        var last: UInt64 = 0
        for index in 0..<ownCount {
            let (object, overflow) = last.addingReportingOverflow(try reader.varint("object"))
            guard !overflow, index == 0 || object > last else {
                throw reader.error("object", "\(object) after \(last)", "ascending objects")
            }
            objects.append(object)
            last = object
        }
        self.objects = objects
        var lengths: [Int] = []
        lengths.reserveCapacity(ownCount)
        for _ in 0..<ownCount {
            lengths.append(try reader.count("length", limit: FrameKind.page.payloadBytesMax))
        }
        var values: [Range<Int>] = []
        values.reserveCapacity(ownCount)
        for length in lengths { values.append(try reader.range(count: length, "value")) }
        self.values = values
        try reader.finish("page")
    }
}
