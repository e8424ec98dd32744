// How one column of a leaf of layout 1 is stored, and its 8 bytes in the leaf.
//
//   byte 0  type (low half), coding (high half)                byte 3     scale
//   byte 1  width in bits                                      bytes 4-5  first bit in a tuple
//   byte 2  specials: 1 nil, 2 absent, 4 the base; 128 far     bytes 6-7  base, its number, table
//
// Invariants
// - Codes below the number of specials say nil, absent, the base (in this order, those that the
//   leaf has); others are the value less the base, plus the number of specials. So nil is never
//   above anything, and a filter needs no branch.
// - Packed codes have at most 56 bits, so one load of 8 bytes holds one wherever it begins.
// Format.md, chapter "Leaves of layout 1".

/// What the values of a column are.
enum LeafType: UInt8 {
    /// False and true.
    case bool
    /// A signed integer.
    case int
    /// A 64-bit float.
    case double
    /// Sixteen bytes.
    case uuid
    /// UTF-8.
    case text
    /// A double that is a date.
    case date
    /// A 32-bit float, as the number of its bits.
    case float
    /// The number of an object.
    case reference
    /// Bytes.
    case data
    /// A tag and a body, as in a packed row: what has no type here, and columns that mix types.
    case any
}

/// Where the code of a value stands.
enum LeafCoding: UInt8 {
    /// In the tuple.
    case packed
    /// In the tuple; the double is the integer by a power of ten, or of two.
    case decimal, binary
    /// The value's own bytes, at a whole byte of the tuple.
    case raw
    /// The tuple says whether there is a value, the heap has it, less the base, in whole bytes.
    case sparse, sparseDecimal, sparseBinary
    /// The tuple has the length, the heap the bytes; coded when there is a table.
    case text
    /// The tuple has the number of a text in the leaf's dictionary, which begins at the base.
    case dictionary
    /// The tuple has the length, the heap a tag and a body.
    case body

    var isSparse: Bool { self == .sparse || self == .sparseDecimal || self == .sparseBinary }
    /// Whether the row's part of the heap has bytes of such a column.
    var usesHeap: Bool { isSparse || self == .text || self == .body }
}

/// How one column of one leaf is stored.
struct LeafPlan {
    var type: LeafType
    var coding = LeafCoding.packed
    var hasNil = false
    var hasAbsent = false
    /// Whether the base, the most frequent value, has a code of its own; sparse columns only.
    var hasCommon = false
    /// Bits of a code; of a raw value 64 or 128.
    var width = 0
    var scale = 0
    /// First bit in a tuple.
    var bit = 0
    /// What is added to a code, the number of a symbol table, or where a dictionary begins.
    var base: Int64 = 0

    init(_ type: LeafType) {
        self.type = type
    }

    /// The most bits of a code in a tuple.
    static let widthMax = 56
    /// Bytes of a plan in a leaf.
    static let length = 8
    static let nilFlag: UInt64 = 1
    static let absentFlag: UInt64 = 2
    static let commonFlag: UInt64 = 4
    static let farFlag: UInt64 = 128

    var specials: Int { (hasNil ? 1 : 0) + (hasAbsent ? 1 : 0) + (hasCommon ? 1 : 0) }

    /// Bits in the tuple.
    var tupleBits: Int { coding.isSparse ? Self.bits(UInt64(specials)) : width }

    /// Bytes in the heap of a sparse value.
    var heapBytes: Int { (width + 7) / 8 }

    static func bits(_ most: UInt64) -> Int { 64 - most.leadingZeroBitCount }

    /// The 8 bytes; a base that does not fit goes to the end of `bases`.
    func encoded(_ bases: inout [Int64]) -> UInt64 {
        var flags = hasNil ? Self.nilFlag : 0
        if hasAbsent { flags |= Self.absentFlag }
        if hasCommon { flags |= Self.commonFlag }
        var last = UInt64(UInt16(truncatingIfNeeded: base))
        if Int64(Int16(truncatingIfNeeded: base)) != base {
            flags |= Self.farFlag
            last = UInt64(bases.count)
            bases.append(base)
        }
        return UInt64(type.rawValue | coding.rawValue << 4) | UInt64(width) << 8 | flags << 16
            | UInt64(scale) << 24 | UInt64(bit) << 32 | last << 48
    }
}

/// The 8 bytes of a plan, read where they are needed.
struct LeafPlanWord {
    let word: UInt64

    @inline(__always) init(_ word: UInt64) { self.word = word }
    @inline(__always) var type: UInt64 { word & 15 }
    @inline(__always) var coding: UInt64 { word &>> 4 & 15 }
    @inline(__always) var width: Int { Int(truncatingIfNeeded: word &>> 8 & 255) }
    @inline(__always) var flags: UInt64 { word &>> 16 & 255 }
    @inline(__always) var hasNil: Bool { flags & LeafPlan.nilFlag != 0 }
    @inline(__always) var hasAbsent: Bool { flags & LeafPlan.absentFlag != 0 }
    @inline(__always) var hasCommon: Bool { flags & LeafPlan.commonFlag != 0 }
    @inline(__always) var isFar: Bool { flags & LeafPlan.farFlag != 0 }
    @inline(__always) var scale: Int { Int(truncatingIfNeeded: word &>> 24 & 255) }
    @inline(__always) var bit: Int { Int(truncatingIfNeeded: word &>> 32 & 0xFFFF) }
    @inline(__always) var isSparse: Bool { coding &- 4 < 3 }
    /// Whether the row's part of the heap has bytes of such a column.
    @inline(__always) var usesHeap: Bool {
        isSparse || coding == UInt64(LeafCoding.text.rawValue)
            || coding == UInt64(LeafCoding.body.rawValue)
    }
    /// The base where it is near; the number of a far one or of a table.
    @inline(__always) var last: Int { Int(truncatingIfNeeded: word &>> 48) }
    @inline(__always) var nearBase: Int64 { Int64(Int16(truncatingIfNeeded: word &>> 48)) }

    @inline(__always) var specials: UInt64 {
        let three = flags & 7
        return three &- three &>> 1 &- three &>> 2
    }

    /// Bits in the tuple of a column that keeps its states apart from its values.
    @inline(__always) var stateWidth: Int { Int(truncatingIfNeeded: min(specials, 2)) }

    /// Bits in the tuple.
    @inline(__always) var tupleWidth: Int { isSparse ? stateWidth : width }
}
