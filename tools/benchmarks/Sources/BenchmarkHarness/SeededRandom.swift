// The random numbers of the workloads: the same on every machine, for every peer, for ever.

/// SplitMix64: a small generator whose whole state is one seed.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Begins at a seed; equal seeds give equal sequences.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A number in `0..<bound`; the bias of the plain remainder does not matter here.
    public mutating func below(_ bound: UInt64) -> UInt64 { next() % bound }
}
