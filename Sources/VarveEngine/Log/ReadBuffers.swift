// Buffers that pages are read into, used again and again.
//
// Invariants
// - A buffer has `length` bytes. Whoever writes into one that somebody still refers to gets a copy,
//   as with any array: giving one back too early costs time, and is no error.
// - What stands after the bytes that were read is of an earlier reading: nobody looks at it.

internal import Synchronization

/// Why: a store larger than its cache reads a page for most lookups, and needs the stored bytes
/// just until the node is made.
enum ReadBuffers {
    /// Bytes of a buffer: pages of usual size fit.
    static var length: Int { isUsed ? 16 << 10 : 0 }
    /// Not under the address sanitizer, which then sees what is read after the bytes of a page.
    static var isUsed: Bool {
        #if VARVE_ADDRESS_SANITIZER
        false
        #else
        true
        #endif
    }
    /// Buffers that are kept: one a reading thread, as a rule.
    private static let countMax = 8

    private static let kept = Mutex<[[UInt8]]>([])

    /// Buffers that wait for the next reader.
    static var count: Int { kept.withLock { $0.count } }

    /// Lets all of them go.
    static func drop() { kept.withLock { $0 = [] } }

    /// A buffer of `length` bytes.
    static func take() -> [UInt8] {
        kept.withLock { $0.popLast() } ?? [UInt8](repeating: 0, count: length)
    }

    /// Takes a buffer back; anything else goes.
    static func give(_ buffer: [UInt8]) {
        guard buffer.count == length else { return }
        kept.withLock { kept in
            if kept.count < countMax { kept.append(buffer) }
        }
    }
}
