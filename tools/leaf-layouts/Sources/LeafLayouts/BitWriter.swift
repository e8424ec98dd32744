// FENCE: writing bit fields of tuples one after the other.
//
// Invariants
// - Room is made for as many bytes as the caller says, and a word more; more is refused.

/// Writes fields of at most 64 bits, lowest bit first.
struct BitWriter {
    /// What was written, and zeros behind it.
    private var room: [UInt8]
    private var end = 0
    private var gathered: UInt64 = 0
    private var filled = 0

    init(capacity: Int) {
        room = [UInt8](repeating: 0, count: capacity + 8)
    }

    /// What was written up to the last `align()`.
    var bytes: ArraySlice<UInt8> { room[..<end] }

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
        store()
        end &+= 8
        // What did not fit; a shift by 64 gives 0.
        gathered = code >> UInt64(64 &- filled)
        filled = sum &- 64
    }

    /// Fills the last byte with zeros.
    @inline(__always)
    mutating func align() {
        store()
        end &+= (filled &+ 7) &>> 3
        gathered = 0
        filled = 0
    }

    @inline(__always)
    private mutating func store() {
        precondition(end &+ 8 <= room.count, "more fields than there is room for")
        // The line above made sure of 8 bytes.
        unsafe room.withUnsafeMutableBytes {
            unsafe $0.storeBytes(of: gathered.littleEndian, toByteOffset: end, as: UInt64.self)
        }
    }
}
