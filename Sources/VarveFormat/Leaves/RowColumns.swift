// Which columns of a row somebody reads.
//
// Invariants
// - Either all columns, or those whose bits are set.

public import VarveBase

/// A set of columns of one entity's rows.
public struct RowColumns: Hashable, Sendable {
    private var words: [UInt64] = []
    /// Whether it has every column that there can be.
    public let isAll: Bool

    /// Every column.
    public static let all = RowColumns(isAll: true)

    /// No column.
    public static let none = RowColumns(isAll: false)

    private init(isAll: Bool) { self.isAll = isAll }

    /// Some columns.
    public init(_ columns: some Sequence<ColumnID>) {
        isAll = false
        for column in columns { insert(Int(column.rawValue)) }
    }

    private mutating func insert(_ column: Int) {
        while words.count <= column >> 6 { words.append(0) }
        words[column >> 6] |= 1 << UInt64(column & 63)
    }

    /// Whether a column is one of them.
    @inline(__always)
    public func contains(_ column: Int) -> Bool {
        if isAll { return true }
        let place = column >> 6
        return place < words.count && words[place] >> UInt64(column & 63) & 1 != 0
    }

    /// The columns of both.
    public func union(_ other: RowColumns) -> RowColumns {
        if isAll || other.isAll { return .all }
        var result = words.count < other.words.count ? other : self
        let shorter = words.count < other.words.count ? words : other.words
        for (place, word) in shorter.enumerated() { result.words[place] |= word }
        return result
    }

    /// Columns up to the last one of them; nil: there is no last one.
    public var end: Int? {
        if isAll { return nil }
        guard let last = words.last else { return 0 }
        return 64 * words.count - last.leadingZeroBitCount
    }
}
