// Chance that can be repeated: a generator that a seed determines.

/// A random number generator whose numbers follow from its seed.
///
/// A failing test prints `seed`; the same seed gives the same numbers on every machine. The
/// generator is SplitMix64: fast, well mixed, and not for secrets.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    /// The seed it began with.
    public let seed: UInt64
    private var state: UInt64

    /// A generator that begins at `seed`.
    public init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// A generator with a fresh seed, to be printed.
    public init() {
        self.init(seed: UInt64.random(in: 0 ... .max))
    }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A generator for a part of the work: its numbers do not depend on how many this one gave
    /// since.
    public func branch(_ number: UInt64) -> SeededRandom {
        var mixer = SeededRandom(seed: seed ^ (number &* 0xD1B5_4A32_D192_ED03))
        return SeededRandom(seed: mixer.next())
    }

    /// `count` random bytes.
    /// - Complexity: O(`count`).
    public mutating func bytes(_ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count)
        while result.count < count {
            var word = next()
            for _ in 0..<min(8, count - result.count) {
                result.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return result
    }
}

extension SeededRandom: CustomStringConvertible {
    /// How to repeat it.
    public var description: String { "SeededRandom(seed: \(seed))" }
}
