// FENCE: large values in pages of their own, which go back to the system as soon as nobody holds
// them.
//
// Invariants
// - The memory is freed once: by the `Data` that `finish` gives away, else when the value ends.
// - Nothing is written behind the capacity, and nothing once the `Data` exists.
//
// Reason: a heap keeps the room of freed pictures, one heap for each thread. Pictures of 1 to 3 MB
// that scroll by, ten at a time, read on background threads, cost 74 MB with the heap and 28 MB
// with pages.

import Foundation

/// Gathers the bytes of one large value.
@safe struct PageData: ~Copyable {
    /// Smaller values are better off in the heap: pages are whole, and cost two system calls.
    static let byteCountMin = 128 << 10

    // All pages are about to be written: taken at once they cost a fraction of a fault each.
    #if os(Linux) || os(Android)
    private static let populate = MAP_POPULATE
    #else
    private static let populate: Int32 = 0
    #endif

    private let base: UnsafeMutableRawPointer
    private let capacity: Int
    private var count = 0

    /// Takes pages for `capacity` bytes; nil when the system has none, or when there is no need for
    /// them.
    init?(capacity: Int) {
        guard capacity >= Self.byteCountMin else { return nil }
        // A new private mapping: nothing else refers to it.
        let pages = unsafe mmap(
            nil,
            capacity,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANON | Self.populate,
            -1,
            0
        )
        guard let pages = unsafe pages, unsafe pages != MAP_FAILED else { return nil }
        unsafe base = pages
        self.capacity = capacity
    }

    // The mapping is this value's own until `finish` gives it away.
    deinit { unsafe _ = munmap(base, capacity) }

    /// Adds bytes; those behind the capacity are left out.
    mutating func append(_ bytes: [UInt8]) {
        let length = min(bytes.count, capacity - count)
        guard length > 0 else { return }
        // Both ranges hold `length` bytes, and an array never lies in the mapping.
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe (base + count).copyMemory(from: start, byteCount: length)
        }
        count += length
    }

    /// The bytes gathered. The pages now belong to the `Data`.
    consuming func finish() -> Data {
        let capacity = capacity
        // The data frees the pages with the length that they were taken with.
        let data = unsafe Data(
            bytesNoCopy: base,
            count: count,
            deallocator: .custom { pages, _ in unsafe _ = munmap(pages, capacity) }
        )
        discard self
        return data
    }
}
