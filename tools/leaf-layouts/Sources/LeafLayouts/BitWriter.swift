// FENCE: writing bit fields of tuples one after the other.

/// Writes fields of at most 64 bits, lowest bit first.
struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var gathered: UInt64 = 0
    private var filled = 0

    init(capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Appends a field.
    @inline(__always)
    mutating func append(_ code: UInt64, _ width: Int) {
        if width == 0 { return }
        gathered |= code &<< UInt64(truncatingIfNeeded: filled)
        let sum = filled &+ width
        if sum < 64 {
            filled = sum
            return
        }
        flushWord()
        // What did not fit; a shift by 64 gives 0.
        gathered = code >> UInt64(64 &- filled)
        filled = sum &- 64
    }

    /// Fills the last byte with zeros.
    mutating func align() {
        while filled > 0 {
            bytes.append(UInt8(truncatingIfNeeded: gathered))
            gathered >>= 8
            filled = max(0, filled - 8)
        }
        gathered = 0
    }

    private mutating func flushWord() {
        // The word's own 8 bytes.
        unsafe withUnsafeBytes(of: gathered.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
