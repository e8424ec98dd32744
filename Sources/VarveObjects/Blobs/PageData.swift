// FENCE: large values in pages of their own, which go back to the system as soon as nobody holds
// them, but for a few that the next value takes.
//
// Invariants
// - The memory is given up once: by the `Data` that `finish` gives away, else when the value ends.
// - Nothing is written after the capacity, and nothing once the `Data` exists.
// - What is kept belongs to nobody, and is at most `PagePool.bytesMax` in all.
//
// Reason: a heap keeps the room of freed pictures, one heap for each thread. Pictures of 1 to 3 MB
// that scroll by, ten at a time, read on background threads, cost 74 MB with the heap and 28 MB
// with pages.

import Foundation
import Synchronization

/// Pages that a value gave back, for the next one of about their size.
///
/// Why: the system takes more time to hand out the pages of 1 MB, cleared and one by one, than to
/// copy 1 MB into them. Scrolling gives back a picture for each that it reads.
enum PagePool {
    /// Bytes that are kept.
    static let bytesMax = 4 << 20

    /// A mapping that nobody refers to.
    @safe struct Pages {
        let base: UnsafeMutableRawPointer
        let capacity: Int
    }

    /// The one given back last stands last.
    private static let kept = Mutex<[Pages]>([])

    /// Bytes kept now.
    static var byteCount: Int { kept.withLock { $0.reduce(0) { $0 + $1.capacity } } }

    /// Kept pages for `capacity` bytes, at most a quarter more; nil when there are none.
    static func take(capacity: Int) -> Pages? {
        if capacity > bytesMax { return nil }
        return kept.withLock { kept in
            let fits = capacity...(capacity + capacity / 4)
            guard let index = kept.lastIndex(where: { fits.contains($0.capacity) }) else {
                return nil
            }
            return kept.remove(at: index)
        }
    }

    /// Keeps pages, or gives them back to the system; those kept longest go first.
    static func give(_ pages: Pages) {
        if pages.capacity > bytesMax { return free(pages) }
        var gone: [Pages] = []
        kept.withLock { kept in
            kept.append(pages)
            var byteCount = kept.reduce(0) { $0 + $1.capacity }
            while byteCount > bytesMax {
                let oldest = kept.removeFirst()
                byteCount -= oldest.capacity
                gone.append(oldest)
            }
        }
        for pages in gone { free(pages) }
    }

    /// Gives all that is kept back to the system.
    static func trim() {
        let gone = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        for pages in gone { free(pages) }
    }

    private static func free(_ pages: Pages) {
        // Taken with this length, and nobody refers to them any more.
        unsafe _ = munmap(pages.base, pages.capacity)
    }
}

// Whoever holds the value alone may touch what it points to, on any thread.
extension PagePool.Pages: @unchecked Sendable {}

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

    private let pages: PagePool.Pages
    private let capacity: Int
    private var count = 0

    /// Takes pages for `capacity` bytes; nil when the system has none, or when there is no need for
    /// them.
    init?(capacity: Int) {
        guard capacity >= Self.byteCountMin else { return nil }
        guard let pages = PagePool.take(capacity: capacity) ?? Self.newPages(capacity: capacity)
        else { return nil }
        self.pages = pages
        self.capacity = capacity
    }

    private static func newPages(capacity: Int) -> PagePool.Pages? {
        // A new private mapping: nothing else refers to it.
        let base = unsafe mmap(
            nil,
            capacity,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANON | populate,
            -1,
            0
        )
        guard let base = unsafe base, unsafe base != MAP_FAILED else { return nil }
        return unsafe PagePool.Pages(base: base, capacity: capacity)
    }

    // The pages are this value's own until `finish` gives them away.
    deinit { PagePool.give(pages) }

    /// Adds bytes; those after the capacity are left out.
    mutating func append(_ bytes: [UInt8]) {
        let length = min(bytes.count, capacity - count)
        guard length > 0 else { return }
        // Both ranges hold `length` bytes, and an array never lies in the mapping.
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe (pages.base + count).copyMemory(from: start, byteCount: length)
        }
        count += length
    }

    /// The bytes gathered. The pages now belong to the `Data`.
    consuming func finish() -> Data {
        let pages = pages
        let data = unsafe Data(
            bytesNoCopy: pages.base,
            count: count,
            deallocator: .custom { _, _ in PagePool.give(pages) }
        )
        discard self
        return data
    }
}
