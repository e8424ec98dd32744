// Doubles as integers: times a power of ten or of two, where the bit pattern comes back exactly.
//
// Invariants
// - A scale is taken only if every value of the leaf comes back with the same 64 bits, so -0.0,
//   infinities and NaNs stay as they are: raw.

/// How the doubles of a leaf's column become integers.
enum DoubleScale: Equatable {
    /// value = integer / 10^scale
    case decimal(Int)
    /// value = integer * 2^-scale
    case binary(Int)

    static let decimalMax = 15
    static let binaryMax = 52

    /// 10^n, exact up to 22.
    static let powers: [Double] = (0...22).map { exponent in
        (0..<exponent).reduce(1.0) { power, _ in power * 10 }
    }

    /// The integer of a double, or nil when it does not come back.
    @inline(__always)
    func integer(_ value: Double) -> Int64? {
        let scaled: Double
        switch self {
        case .decimal(let scale): scaled = (value * Self.powers[scale]).rounded()
        case .binary(let scale): scaled = value * Self.power(scale)
        }
        guard abs(scaled) < 9_007_199_254_740_992 else { return nil }
        let integer = Int64(scaled)
        return self.value(integer).bitPattern == value.bitPattern ? integer : nil
    }

    /// The double of an integer.
    @inline(__always)
    func value(_ integer: Int64) -> Double {
        switch self {
        case .decimal(let scale): return Double(integer) / Self.powers[scale]
        case .binary(let scale): return Double(integer) * Self.power(-scale)
        }
    }

    /// 2^n of a small n.
    @inline(__always)
    static func power(_ exponent: Int) -> Double {
        Double(bitPattern: UInt64(truncatingIfNeeded: 1023 &+ exponent) &<< 52)
    }

    /// The scale with the smallest range of integers, with those, or nil.
    static func best(_ values: [Double]) -> (scale: DoubleScale, integers: [Int64])? {
        let decimal = smallest(values, decimalMax) { .decimal($0) }
        let binary = smallest(values, binaryMax) { .binary($0) }
        guard let decimal else { return binary }
        guard let binary else { return decimal }
        return range(binary.integers) < range(decimal.integers) ? binary : decimal
    }

    private static func range(_ integers: [Int64]) -> Int64 {
        (integers.max() ?? 0) - (integers.min() ?? 0)
    }

    private static func smallest(
        _ values: [Double],
        _ most: Int,
        _ scale: (Int) -> DoubleScale
    ) -> (scale: DoubleScale, integers: [Int64])? {
        var exponent = 0
        for value in values {
            while scale(exponent).integer(value) == nil {
                exponent += 1
                if exponent > most { return nil }
            }
        }
        var integers: [Int64] = []
        integers.reserveCapacity(values.count)
        for value in values {
            // A greater scale may not do for what a smaller one did.
            guard let integer = scale(exponent).integer(value) else { return nil }
            integers.append(integer)
        }
        return (scale(exponent), integers)
    }
}
