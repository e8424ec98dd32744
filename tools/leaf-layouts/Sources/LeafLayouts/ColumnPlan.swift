// How one column of one leaf is stored, and its 8 bytes in the leaf.
//
//   byte 0  type (low half), coding (high half)                byte 3     scale
//   byte 1  width in bits                                      bytes 4-5  first bit in a tuple
//   byte 2  specials: 1 nil, 2 absent, 4 the base; 128 far     bytes 6-7  base, its number, table
//
// The scale of a dictionary is the number of its texts.
//
// Invariants
// - Codes below the number of specials say nil, absent, the base (in this order, those that the
//   leaf has); others are the value less the base, plus the number of specials. So nil is never
//   above anything, and a filter needs no branch.
// - Packed codes have at most 56 bits, so one load of 8 bytes holds one wherever it begins.

/// Where the code of a value stands.
enum ColumnCoding: UInt8 {
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

    var isSparse: Bool { self == .sparse || self == .sparseDecimal || self == .sparseBinary }
}

/// How one column of one leaf is stored.
struct ColumnPlan {
    var type: ColumnType
    var coding = ColumnCoding.packed
    var hasNil = false
    var hasAbsent = false
    /// Whether the base, the most frequent value, has a code of its own; sparse columns only.
    var hasCommon = false
    /// Bits of a code; of a raw value 64 or 128.
    var width = 0
    var scale = 0
    /// First bit in a tuple.
    var bit = 0
    /// What is added to a code, or the number of a symbol table.
    var base: Int64 = 0

    init(_ type: ColumnType) {
        self.type = type
    }

    var specials: Int { (hasNil ? 1 : 0) + (hasAbsent ? 1 : 0) + (hasCommon ? 1 : 0) }

    /// Bits in the tuple.
    var tupleBits: Int { coding.isSparse ? Self.bits(UInt64(specials)) : width }

    /// Bytes in the heap of a sparse value.
    var heapBytes: Int { (width + 7) / 8 }

    static func bits(_ most: UInt64) -> Int { 64 - most.leadingZeroBitCount }

    /// The 8 bytes; a base that does not fit goes to the end of `bases`.
    func encoded(_ bases: inout [Int64]) -> UInt64 {
        var flags: UInt64 = (hasNil ? 1 : 0) | (hasAbsent ? 2 : 0) | (hasCommon ? 4 : 0)
        var last = UInt64(UInt16(truncatingIfNeeded: base))
        if Int64(Int16(truncatingIfNeeded: base)) != base {
            flags |= 128
            last = UInt64(bases.count)
            bases.append(base)
        }
        return UInt64(type.rawValue | coding.rawValue << 4) | UInt64(width) << 8 | flags << 16
            | UInt64(scale) << 24 | UInt64(bit) << 32 | last << 48
    }
}

/// The 8 bytes of a plan, read where they are needed.
struct PlanWord {
    let word: UInt64

    @inline(__always) init(_ word: UInt64) { self.word = word }
    @inline(__always) var type: UInt64 { word & 15 }
    @inline(__always) var coding: UInt64 { word &>> 4 & 15 }
    @inline(__always) var width: Int { Int(truncatingIfNeeded: word &>> 8 & 255) }
    @inline(__always) var hasNil: Bool { word & 1 &<< 16 != 0 }
    @inline(__always) var hasCommon: Bool { word & 4 &<< 16 != 0 }
    @inline(__always) var scale: Int { Int(truncatingIfNeeded: word &>> 24 & 255) }
    @inline(__always) var bit: Int { Int(truncatingIfNeeded: word &>> 32 & 0xFFFF) }
    @inline(__always) var isSparse: Bool { coding &- 4 < 3 }
    @inline(__always) var tableNumber: Int { Int(truncatingIfNeeded: word &>> 48) }

    @inline(__always) var specials: UInt64 {
        UInt64(truncatingIfNeeded: (word &>> 16 & 7).nonzeroBitCount)
    }

    /// Bits in the tuple of a column that keeps its states apart from its values.
    @inline(__always) var stateWidth: Int { Int(truncatingIfNeeded: min(specials, 2)) }

    /// The base; `bases` is where the far ones begin.
    @inline(__always)
    func base(_ leaf: ByteView, _ bases: Int) throws(LeafError) -> Int64 {
        let last = Int16(truncatingIfNeeded: word &>> 48)
        if word & 128 &<< 16 == 0 { return Int64(last) }
        let number = Int(UInt16(bitPattern: last))
        return Int64(bitPattern: try leaf.word(bases &+ 8 &* number))
    }

    /// The double of an integer, as its bits.
    @inline(__always)
    func double(_ integer: Int64, isDecimal: Bool) throws(LeafError) -> UInt64 {
        if isDecimal {
            guard scale < DoubleScale.powers.count else { throw .damage }
            return DoubleScale.decimal(scale).value(integer).bitPattern
        }
        guard scale <= DoubleScale.binaryMax else { throw .damage }
        return DoubleScale.binary(scale).value(integer).bitPattern
    }
}
