// FENCE: rows as layout 0 packs them (Format.md, "Rows"), without what the laboratory's data lacks.

/// The types of the laboratory's columns.
public enum ColumnType: UInt8, Sendable {
    /// True or false.
    case bool
    /// A signed integer; references, too.
    case int
    /// A double; dates, too.
    case double
    /// Sixteen bytes.
    case uuid
    /// UTF-8 of any length.
    case text
}

/// One column of a row that is read.
enum PackedValue {
    case absent, null
    case int(Int64)
    case double(UInt64)
    case uuid(UInt64, UInt64)
    /// Where it lies.
    case text(Int, Int)
}

/// Reading packed rows.
enum PackedRow {
    static let absent: UInt64 = 0
    static let null: UInt64 = 1

    /// A varint, and how many bytes it takes.
    @inline(__always)
    static func varint(_ view: ByteView, _ at: inout Int) throws(LeafError) -> UInt64 {
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = try view.byte(at)
            at &+= 1
            result |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return result }
            shift &+= 7
            if shift > 63 { throw .damage }
        }
    }

    @inline(__always)
    static func bodySize(_ tag: UInt64) throws(LeafError) -> Int {
        if tag >= 32 { return Int(truncatingIfNeeded: (tag &- 32) &>> 1) }
        switch tag {
        case 0...5: return 0
        case 6: return 1
        case 7: return 2
        case 8: return 4
        case 9, 11, 12: return 8
        case 13: return 16
        default: throw .damage
        }
    }

    @inline(__always)
    static func value(
        _ view: ByteView,
        _ tag: UInt64,
        _ at: Int
    ) throws(LeafError) -> PackedValue {
        if tag >= 32 { return .text(at, Int(truncatingIfNeeded: (tag &- 32) &>> 1)) }
        let word = try view.word(at)
        switch tag {
        case absent: return .absent
        case null: return .null
        case 2, 4: return .int(0)
        case 3, 5: return .int(1)
        case 6: return .int(Int64(Int8(truncatingIfNeeded: word)))
        case 7: return .int(Int64(Int16(truncatingIfNeeded: word)))
        case 8: return .int(Int64(Int32(truncatingIfNeeded: word)))
        case 9: return .int(Int64(bitPattern: word))
        case 11, 12: return .double(word)
        case 13: return .uuid(word, try view.word(at &+ 8))
        default: throw .damage
        }
    }

    /// Calls `body` for each column of the row at a place.
    @inline(__always)
    static func forEach(
        _ view: ByteView,
        _ start: Int,
        _ body: (Int, PackedValue) throws(LeafError) -> Void
    ) throws(LeafError) {
        var at = start
        let count = Int(truncatingIfNeeded: try varint(view, &at))
        guard count >= 0, count <= 1024 else { throw .damage }
        // Bodies begin behind the tags.
        var bodies = at
        for _ in 0..<count { _ = try varint(view, &bodies) }
        for column in 0..<count {
            let tag = try varint(view, &at)
            try body(column, try value(view, tag, bodies))
            bodies &+= try bodySize(tag)
        }
    }

    /// Adds all columns to a digest; those that the row lacks as absent.
    @inline(__always)
    static func digest(
        _ view: ByteView,
        _ start: Int,
        _ columns: Int,
        _ digest: inout Digest
    ) throws(LeafError) {
        var seen = 0
        var result = digest
        try forEach(view, start) { (column, value) throws(LeafError) in
            seen = column &+ 1
            switch value {
            case .absent: result.addAbsent(column)
            case .null: result.addNil(column)
            case .int(let int): result.add(column, int: int)
            case .double(let bits): result.add(column, word: bits)
            case .uuid(let high, let low): result.add(column, high: high, low: low)
            case .text(let at, let length):
                // The view is there during the call.
                unsafe result.add(column, text: try view.buffer(at, length))
            }
        }
        while seen < columns {
            result.addAbsent(seen)
            seen &+= 1
        }
        digest = result
    }

    /// One integer column; nil when it has no value.
    @inline(__always)
    static func int(
        _ view: ByteView,
        _ start: Int,
        _ column: Int
    ) throws(LeafError) -> Int64? {
        var at = start
        let count = Int(truncatingIfNeeded: try varint(view, &at))
        guard column < count else { return nil }
        var offset = 0
        var tag: UInt64 = 0
        for index in 0..<count {
            let next = try varint(view, &at)
            if index < column { offset &+= try bodySize(next) }
            if index == column { tag = next }
        }
        if case .int(let int) = try value(view, tag, at &+ offset) { return int }
        return nil
    }
}
