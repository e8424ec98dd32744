// What every layout offers: leaves of a dataset, and reading them.

/// Encoded leaves, one behind the other.
public struct Leaves: Sendable {
    /// The leaves' bodies, each at a multiple of 8, and 8 bytes more.
    public internal(set) var bytes: [UInt8] = []
    /// Where each leaf lies.
    public internal(set) var ranges: [Range<Int>] = []
    /// The first key of each leaf.
    public internal(set) var firstKeys: [UInt64] = []
    /// Bytes of symbol tables.
    public internal(set) var tableBytes = 0

    /// Bytes that a frame and the front of its page take.
    static let frontBytes = 48

    /// Bytes in the file: with fronts and tables, without inner nodes.
    public var storedBytes: Int {
        bytes.count - 8 + ranges.count * Self.frontBytes + tableBytes
    }

    mutating func append(_ leaf: some Collection<UInt8>, firstKey: UInt64) {
        let start = bytes.count
        bytes.append(contentsOf: leaf)
        ranges.append(start..<bytes.count)
        firstKeys.append(firstKey)
        while bytes.count % 8 != 0 { bytes.append(0) }
    }

    mutating func finish() {
        bytes += [UInt8](repeating: 0, count: 8)
    }

    /// The leaf that a key belongs to.
    public func leaf(of key: UInt64) -> Int {
        var low = 0
        var high = firstKeys.count
        while low < high {
            let middle = (low + high) / 2
            if firstKeys[middle] <= key { low = middle + 1 } else { high = middle }
        }
        return max(0, low - 1)
    }
}

/// A way to lay out leaves.
public protocol LeafLayout {
    /// What it is called in the tables.
    var name: String { get }
    /// Learns what it needs of a dataset before the first leaf.
    func prepare(_ data: Dataset)
    /// Makes all leaves of a dataset.
    func encode(_ data: Dataset) throws(LeafError) -> Leaves
    /// Reads the row of a key with all its columns, in the leaf that begins at `firstKey`.
    func row(
        _ leaf: ByteView,
        firstKey: UInt64,
        _ key: UInt64,
        _ digest: inout Digest
    ) throws(LeafError)
    /// Counts the rows whose integer column is above a value.
    func count(_ leaf: ByteView, column: Int, above: Int64) throws(LeafError) -> Int
    /// Reads all rows with all their columns.
    func scan(_ leaf: ByteView, _ digest: inout Digest) throws(LeafError)
}
