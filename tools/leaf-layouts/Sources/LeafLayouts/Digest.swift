// FENCE: a sum over decoded values, the same for every layout that gave the same values.
//
// Invariants
// - The order in which rows and columns are added does not matter.

/// What a reader gives the values of a row to, in the order of their columns.
protocol RowSink {
    mutating func addAbsent(_ column: Int)
    mutating func addNil(_ column: Int)
    mutating func add(_ column: Int, int: Int64, isBool: Bool)
    mutating func add(_ column: Int, double bits: UInt64)
    mutating func add(_ column: Int, high: UInt64, low: UInt64)
    mutating func add(_ column: Int, text: UnsafeBufferPointer<UInt8>)
}

/// A sum over all values.
public struct Digest: Hashable, RowSink {
    /// The sum so far.
    public private(set) var sum: UInt64 = 0
    /// Values so far.
    public private(set) var count = 0

    /// A sum over nothing.
    public init() {}

    @inline(__always)
    mutating func add(_ column: Int, word: UInt64) {
        sum &+= (word ^ (word &>> 29)) &* (0x9E37_79B9_7F4A_7C15 &+ UInt64(column) &* 2)
        count &+= 1
    }

    @inline(__always)
    mutating func add(_ column: Int, int: Int64) {
        add(column, word: UInt64(bitPattern: int))
    }

    @inline(__always)
    mutating func add(_ column: Int, int: Int64, isBool: Bool) {
        add(column, word: UInt64(bitPattern: int))
    }

    @inline(__always)
    mutating func add(_ column: Int, double bits: UInt64) {
        add(column, word: bits)
    }

    @inline(__always)
    mutating func addNil(_ column: Int) {
        add(column, word: 0x6E69_6C00_0000_0001)
    }

    @inline(__always)
    mutating func addAbsent(_ column: Int) {
        add(column, word: 0x6162_7365_6E74_0001)
    }

    @inline(__always)
    mutating func add(_ column: Int, high: UInt64, low: UInt64) {
        add(column, word: high &* 31 &+ low)
    }

    @inline(__always)
    mutating func add(_ column: Int, text: UnsafeBufferPointer<UInt8>) {
        var hash = UInt64(text.count)
        let raw = UnsafeRawBufferPointer(text)
        var at = 0
        let count = text.count
        while at &+ 8 <= count {
            // Eight bytes are there.
            let word = unsafe raw.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            hash = (hash ^ word) &* 0xFF51_AFD7_ED55_8CCD
            hash ^= hash &>> 32
            at &+= 8
        }
        var rest: UInt64 = 0
        while at < count {
            // One byte is there.
            rest = unsafe rest &<< 8 | UInt64(raw[at])
            at &+= 1
        }
        add(column, word: (hash ^ rest) &* 0xC4CE_B9FE_1A85_EC53)
    }
}
