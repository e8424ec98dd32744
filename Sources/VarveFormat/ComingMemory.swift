// FENCE: memory that will be read soon is asked for.
//
// Invariants
// - Nothing is read or changed, and no address can fail: the processor drops what it cannot bring.
//
// Why: rows that were read in the order of the file are used in the order of a list, so each waits
// for memory. Those a few places ahead can come meanwhile.

private import CVarve

/// Asks the processor for memory.
public enum ComingMemory {
    /// How many rows ahead a pass asks: the work of so many takes longer than memory does.
    public static var rowsAhead: Int { 6 }

    private static let line = 64
    /// Cache lines of a row that are asked for; the processor brings those behind by itself.
    private static let linesMax = 4

    /// Asks for the first bytes of a row.
    public static func foresee(_ row: Span<UInt8>) {
        unsafe row.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe foresee(start, bytes.count)
        }
    }

    /// Asks for the cache line of a byte of some memory, if it has that one.
    public static func foresee(_ bytes: RawSpan, at offset: Int) {
        if offset < 0 || offset >= bytes.byteCount { return }
        unsafe bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe varve_ask_for_memory(start + offset)
        }
    }

    /// Asks for the cache lines of so many bytes, all of them.
    @inline(__always)
    @unsafe public static func foreseeLines(_ start: UnsafeRawPointer, _ count: Int) {
        var offset = 0
        while offset < count {
            unsafe varve_ask_for_memory(start + offset)
            offset &+= line
        }
    }

    /// Asks for the first of so many bytes.
    @unsafe public static func foresee(_ start: UnsafeRawPointer, _ count: Int) {
        var offset = 0
        while offset < min(count, linesMax * line) {
            unsafe varve_ask_for_memory(start + offset)
            offset += line
        }
        // A row begins anywhere in a line.
        if count > 0, offset < linesMax * line { unsafe varve_ask_for_memory(start + count - 1) }
    }
}
