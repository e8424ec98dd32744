// What the tests of this module draw besides numbers.

import VarveTesting

extension SeededRandom {
    mutating func pick<T>(_ values: [T]) -> T {
        values[Int.random(in: 0..<values.count, using: &self)]
    }

    /// Mostly small numbers, sometimes any.
    mutating func number() -> UInt64 { next() >> UInt64.random(in: 0..<64, using: &self) }
}
