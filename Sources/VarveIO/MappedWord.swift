// 8 bytes of a file that other processes write, looked at without a system call.
//
// Invariants
// - They lie in the first 4096 bytes, and the file is never shorter than they reach: a page after
//   the end of its file cannot be looked at. Of a store only the lock file is mapped, which nobody
//   cuts; the store's own file never is.
// - The address is mapped as long as this object lives, so a look never meets an end; `detach` puts
//   zeros in the place of the file.
// - What is seen accuses and proves nothing: whoever sees a change reads the file.

internal import CVarve
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// 8 bytes of a file, mapped for reading.
@safe public final class MappedWord: Sendable {
    private static let length = 4096

    // Mapped for reading only, and unmapped when nobody has this object any more.
    private nonisolated(unsafe) let page: UnsafeMutableRawPointer
    private let offset: Int

    /// Maps the file's first 4096 bytes; nil when the system does not.
    init?(_ descriptor: Int32, at offset: Int) {
        precondition(offset >= 0 && offset % 8 == 0 && offset <= Self.length - 8)
        guard
            let page = unsafe mmap(nil, Self.length, PROT_READ, MAP_SHARED, descriptor, 0),
            unsafe page != MAP_FAILED
        else { return nil }
        unsafe self.page = page
        self.offset = offset
    }

    deinit { unsafe _ = munmap(page, Self.length) }

    /// From now on the bytes are zeros, and the file is not held any more.
    public func detach() {
        // In one step: whoever looks meanwhile sees the one or the other. When it fails the file
        // stays mapped, which harms nobody.
        unsafe _ = mmap(
            page,
            Self.length,
            PROT_READ,
            MAP_PRIVATE | MAP_ANON | MAP_FIXED,
            -1,
            0
        )
    }

    /// The bytes now, in the order of the machine.
    public var value: UInt64 {
        unsafe varve_load_word(place)
    }

    fileprivate var place: UnsafeRawPointer { unsafe UnsafeRawPointer(page + offset) }
}

/// A place for a mapped word that many look at, without counting references to it.
@safe public final class WatchedWord: Sendable {
    // Set once, and kept as long as this object: so what `address` says stays mapped.
    private let mapped = AtomicLazyReference<MappedWord>()
    private let address = Atomic<UInt>(0)

    /// Without a word.
    public init() {}

    /// Takes a word, unless there is one.
    public func set(_ word: MappedWord) {
        let kept = mapped.storeIfNil(word)
        unsafe address.store(UInt(bitPattern: kept.place), ordering: .releasing)
    }

    /// The word's bytes now, in the order of the machine; nil before there is one.
    public var value: UInt64? {
        guard let place = unsafe UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring))
        else { return nil }
        // Mapped as long as this object is there, which is until after the look.
        return withExtendedLifetime(self) { unsafe varve_load_word(place) }
    }

    /// From now on the bytes are zeros, and the file is not held any more.
    public func detach() { mapped.load()?.detach() }
}
