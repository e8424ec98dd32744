// Sums that prove that every peer did the same work.
//
// Invariants
// - A fold depends on the order of the rows and on every column; equal work gives equal folds.
// - `RowFold` runs inside timed sections, so it touches each column once and costs a few
//   nanoseconds for every peer alike. `ContentHash` reads every byte and runs outside them.

/// Cheap, order-dependent sum over decoded rows: of a text it takes length, first and last byte.
public struct RowFold: Sendable {
    /// The sum so far.
    public private(set) var value: UInt64 = 0
    /// Rows added.
    public private(set) var rows: UInt64 = 0

    /// Begins empty.
    public init() {}

    /// Adds a row whose texts are Swift strings.
    @inlinable public mutating func add(
        id: Int64,
        timestamp: Double,
        title: String,
        note: String,
        count: Int,
        flag: Bool,
        pictureID: Int64
    ) {
        add(
            id: id,
            timestamp: timestamp,
            title: Self.digest(title),
            note: Self.digest(note),
            count: count,
            flag: flag,
            pictureID: pictureID
        )
    }

    /// Adds a row whose texts are digests made by `digest`.
    public mutating func add(
        id: Int64,
        timestamp: Double,
        title: UInt64,
        note: UInt64,
        count: Int,
        flag: Bool,
        pictureID: Int64
    ) {
        var sum = UInt64(bitPattern: id) ^ timestamp.bitPattern
        sum = (sum << 7 | sum >> 57) ^ title
        sum = (sum << 7 | sum >> 57) ^ note
        sum = (sum << 7 | sum >> 57) ^ UInt64(bitPattern: Int64(count))
        sum = (sum << 7 | sum >> 57) ^ (flag ? 1 : 0) ^ UInt64(bitPattern: pictureID) << 1
        value = value &* 0x9E37_79B9_7F4A_7C15 &+ sum
        rows &+= 1
    }

    /// Adds an item.
    public mutating func add(_ item: Item) {
        add(
            id: item.id,
            timestamp: item.timestamp,
            title: item.title,
            note: item.note,
            count: item.count,
            flag: item.flag,
            pictureID: item.pictureID
        )
    }

    /// Length, first and last byte of a text.
    @inlinable public static func digest(_ text: String) -> UInt64 {
        text.utf8.withContiguousStorageIfAvailable { digest(UnsafeRawBufferPointer($0)) }
            ?? digestSlowly(text)
    }

    /// Length, first and last byte of a text.
    @inlinable public static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        if count == 0 { return 0 }
        return digest(count: count, first: bytes[0], last: bytes[count - 1])
    }

    /// The digest of a text of which these are length, first and last byte.
    @inlinable public static func digest(count: Int, first: UInt8, last: UInt8) -> UInt64 {
        UInt64(count) << 16 | UInt64(first) << 8 | UInt64(last)
    }

    /// The same for a text that is not contiguous in memory.
    @usableFromInline static func digestSlowly(_ text: String) -> UInt64 {
        Array(text.utf8).withUnsafeBytes { digest($0) }
    }
}

/// The sum of FNV-1a hashes over every byte of every column of each row: the same in whatever order
/// the rows come.
public struct ContentHash: Sendable {
    /// The hash so far.
    public private(set) var value: UInt64 = 0
    /// Rows added.
    public private(set) var rows: UInt64 = 0

    /// Begins empty.
    public init() {}

    /// Adds one row.
    public mutating func add(_ item: Item) {
        var hash = RowHash()
        hash.add(item)
        value &+= hash.value
        rows &+= 1
    }
}

/// FNV-1a over every byte of one row.
private struct RowHash {
    var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ item: Item) {
        add(UInt64(bitPattern: item.id))
        add(item.timestamp.bitPattern)
        add(item.title)
        add(item.note)
        add(UInt64(bitPattern: Int64(item.count)))
        add(item.flag ? 1 : 0)
        add(UInt64(bitPattern: item.pictureID))
    }

    private mutating func add(_ word: UInt64) { value = (value ^ word) &* 0x0000_0100_0000_01B3 }

    private mutating func add(_ text: String) {
        add(UInt64(text.utf8.count))
        for byte in text.utf8 { add(UInt64(byte)) }
    }
}

/// The sums of one round: the first contestant sets them, the others must agree.
public struct CheckTable: Sendable {
    private var sums: [String: (value: UInt64, contestant: String)] = [:]

    /// Begins empty.
    public init() {}

    /// Adds a contestant's sums; throws when one differs from what another found.
    public mutating func add(_ checks: [String: UInt64], from contestant: String) throws {
        for (name, value) in checks.sorted(by: { $0.key < $1.key }) {
            if let first = sums[name] {
                guard first.value == value else {
                    throw BenchmarkError(
                        "\(name): \(contestant) did other work than \(first.contestant): "
                            + "sums \(value) and \(first.value)"
                    )
                }
            } else {
                sums[name] = (value, contestant)
            }
        }
    }
}
