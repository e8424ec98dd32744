// The keys of indexes: encoded columns, then the object ID (Format.md, "Keys").
//
// Invariants
// - A key is a pure function of the stored schema and the row; at most `keyBytesMax` bytes.
// - A text or data that is too long for its share of the key is cut and marked as cut. Keys with a
//   cut value stand a second time in the index's cut tree, so that an empty cut tree proves the
//   index exact.
// - Order among equal cut values is by the following columns: the planner asks the cut tree first.

import VarveBase
import VarveFormat

/// Builds keys of indexes.
enum IndexKeys {
    /// The longest key a tree takes.
    static let keyBytesMax = 1_024
    /// Fewer bytes than this for a text or data are refused when the schema is declared.
    static let byteLimitMin = 16
    /// What one whole value needs at most: tag, 256 bytes escaped, end.
    private static let contentMax = 2 * KeyCoding.contentBytesMax + 3

    /// Bytes that a value of this type needs in a key; nil when that varies.
    static func fixedSize(_ type: AttributeType) -> Int? {
        switch type {
        case .bool: 1
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64: 9
        case .float: 5
        case .double, .date: 9
        case .uuid: 17
        case .decimal: 27
        case .blob: 41
        case .text, .data, .url: nil
        }
    }

    /// The share of a key that each text or data gets; `sizes` has one element per column.
    static func byteLimit(sizes: [Int?]) -> Int {
        let fixed = sizes.reduce(0) { $0 + ($1 ?? 0) }
        let variable = sizes.count { $0 == nil }
        if variable == 0 { return 0 }
        return min(contentMax, (keyBytesMax - 8 - fixed) / variable)
    }

    /// Appends a value; true when it had to be cut.
    static func append(
        _ value: StoredValue,
        _ term: RecordIndex.Term,
        to key: inout [UInt8]
    ) -> Bool {
        let start = key.count
        KeyCoding.append(value, descending: term.isDescending, to: &key)
        return cut(term, from: start, &key)
    }

    /// Appends what a row holds in a column, without decoding texts; true when it had to be cut.
    static func append(
        _ row: Span<UInt8>,
        _ layout: RowLayout,
        _ entity: RecordEntity,
        _ term: RecordIndex.Term,
        to key: inout [UInt8]
    ) throws(FormatError) -> Bool {
        let start = key.count
        let slot = layout.slot(term.column, in: row)
        try KeyCoding.append(
            row,
            slot,
            // Looked up for rows that need it: most do not.
            absent: slot.isAbsent ? entity.defaultValue(term.column) : .null,
            descending: term.isDescending,
            to: &key
        )
        return cut(term, from: start, &key)
    }

    private static func cut(
        _ term: RecordIndex.Term,
        from start: Int,
        _ key: inout [UInt8]
    ) -> Bool {
        let mask: UInt8 = term.isDescending ? 0xFF : 0
        let tag = key[start] ^ mask
        guard tag == KeyCoding.textTag || tag == KeyCoding.dataTag else { return false }
        // A column whose type has no text has no share; a row that holds one all the same is
        // damaged, and the deriver checks what comes out.
        let limit = max(term.byteLimit, byteLimitMin)
        if key.count - start <= limit {
            return key[key.count - 1] ^ mask == KeyCoding.contentCut
        }
        key.removeLast(key.count - start - (limit - 2))
        // Not between a zero and the byte that escapes it: then the zero goes too.
        if key[key.count - 1] ^ mask == 0 { key.removeLast() }
        key.append(mask)
        key.append(KeyCoding.contentCut ^ mask)
        return true
    }

    /// Orders two keys as trees do.
    static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
        ByteReader.compare(left, 0..<left.count, right, 0..<right.count)
    }
}

/// Keys from `lower` on, below `upper`; nil: to the end.
struct KeyRange: Hashable, Sendable {
    var lower: [UInt8]
    var upper: [UInt8]?

    var isEmpty: Bool {
        if let upper { return IndexKeys.compare(lower, upper) >= 0 }
        return false
    }

    /// The keys that begin with `prefix`.
    init(prefix: [UInt8]) {
        lower = prefix
        upper = prefix.isEmpty ? nil : KeyCoding.end(ofPrefix: prefix)
    }

    init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    mutating func raiseLower(to key: [UInt8]) {
        if IndexKeys.compare(key, lower) > 0 { lower = key }
    }

    mutating func reduceUpper(to key: [UInt8]?) {
        guard let key else { return }
        if let upper, IndexKeys.compare(upper, key) <= 0 { return }
        upper = key
    }
}
