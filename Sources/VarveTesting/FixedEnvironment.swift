// A world without chance: clocks and random numbers that are the same in every run.
internal import Synchronization
public import VarveIO

/// An environment whose clock moves a second with each look and whose random bytes follow from a
/// seed: the same work gives the same bytes on disk.
public final class FixedEnvironment: Environment {
    private struct State {
        var random: SeededRandom
        var microseconds: Int64
    }
    private let state: Mutex<State>

    /// Begins at a moment, in microseconds since 1970.
    public init(seed: UInt64 = 1, startMicroseconds: Int64 = 1_772_460_660_000_000) {
        state = Mutex(
            State(random: SeededRandom(seed: seed), microseconds: startMicroseconds)
        )
    }

    /// Bytes that follow from the seed.
    public func randomBytes(_ count: Int) -> [UInt8] {
        state.withLock { $0.random.bytes(count) }
    }

    /// The wall clock in nanoseconds.
    public func monotonicNanoseconds() -> UInt64 {
        UInt64(max(0, wallClockMicroseconds())) &* 1000
    }

    /// A second later than the last look.
    public func wallClockMicroseconds() -> Int64 {
        state.withLock { state in
            defer { state.microseconds += 1_000_000 }
            return state.microseconds
        }
    }

    /// Always the same.
    public func processID() -> Int32 { 4411 }
    /// Nothing.
    public func yield(_ point: YieldPoint) {}
}
