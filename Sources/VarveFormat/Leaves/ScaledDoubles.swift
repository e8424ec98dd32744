// Doubles as integers: times a power of ten or of two, where the bit pattern comes back exactly.
//
// Invariants
// - A scale is taken only if every value of the leaf comes back with the same 64 bits, so -0.0,
//   infinities and NaNs stay as they are: raw.

/// How doubles become integers, and come back.
enum ScaledDoubles {
    /// value = integer / 10^scale
    static let decimalMax = 15
    /// value = integer * 2^-scale
    static let binaryMax = 52
    /// Integers beyond are not all doubles.
    static let integerLimit = 9_007_199_254_740_992.0

    /// 10^n of n up to 15, which is exact.
    @inline(__always)
    static func powerOfTen(_ exponent: Int) -> Double {
        switch exponent {
        case 0: 1
        case 1: 1e1
        case 2: 1e2
        case 3: 1e3
        case 4: 1e4
        case 5: 1e5
        case 6: 1e6
        case 7: 1e7
        case 8: 1e8
        case 9: 1e9
        case 10: 1e10
        case 11: 1e11
        case 12: 1e12
        case 13: 1e13
        case 14: 1e14
        default: 1e15
        }
    }

    /// 2^n of a small n.
    @inline(__always)
    static func powerOfTwo(_ exponent: Int) -> Double {
        Double(bitPattern: UInt64(truncatingIfNeeded: 1023 &+ exponent) &<< 52)
    }

    /// The bits of the double of an integer.
    @inline(__always)
    static func bits(_ integer: Int64, _ scale: Int, isDecimal: Bool) -> UInt64 {
        isDecimal
            ? (Double(integer) / powerOfTen(scale)).bitPattern
            : (Double(integer) * powerOfTwo(0 &- scale)).bitPattern
    }
}
