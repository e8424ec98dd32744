// FENCE: blocks of memory for nodes, used again and again.
//
// Invariants
// - A block in the pool is nobody's; its first word leads to the next one of its class.
// - A block of class c has `c * step` bytes. A caller that gives one back names the size that it
//   asked for, so that the block returns to its class.
// - The pool holds at most `bytesMax` bytes. For what comes, blocks of all classes go in turn, so
//   those that nobody asks for any more do not stay.
//
// Why: a store larger than its cache takes a block for each page that it reads, and frees the block
// of a page that goes. Blocks of this size are beyond the fast paths of usual allocators, which
// split and join them each time (docs/Performance-history.md, "Blocks of memory").

internal import Synchronization

/// Blocks for all nodes of the process.
enum NodeBlocks {
    private static let pool = Mutex(BlockPool())

    /// Bytes in the pool now.
    static var pooledBytes: Int { pool.withLock { $0.bytes } }

    /// What a block of `byteCount` bytes takes.
    static func rounded(_ byteCount: Int) -> Int {
        BlockPool.holds(byteCount) ? BlockPool.sizeClass(byteCount) * BlockPool.step : byteCount
    }

    /// A block of at least `byteCount` bytes, aligned to 16.
    static func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
        if BlockPool.holds(byteCount) {
            // Nobody waits for a block: the allocator has others.
            let found = pool.withLockIfAvailable { $0.take(BlockPool.sizeClass(byteCount)) }
            if let found, let block = unsafe UnsafeMutableRawPointer(bitPattern: found) {
                return unsafe block
            }
        }
        return .allocate(byteCount: rounded(byteCount), alignment: 16)
    }

    /// Takes back a block that `allocate` gave for `byteCount` bytes.
    static func deallocate(_ block: UnsafeMutableRawPointer, _ byteCount: Int) {
        guard BlockPool.holds(byteCount) else { return unsafe block.deallocate() }
        let address = UInt(bitPattern: block)
        let surplus = pool.withLockIfAvailable {
            $0.give(address, BlockPool.sizeClass(byteCount))
        }
        guard let surplus else { return unsafe block.deallocate() }
        BlockPool.free(surplus)
    }
}

/// Free blocks by their size. Addresses stand for blocks, 0 for none.
@safe struct BlockPool: ~Copyable {
    /// Sizes are rounded up to a multiple of this.
    static let step = 512
    /// Blocks of fewer bytes are the allocator's: it has a fast path for them.
    static let bytesMin = 1 << 10
    /// Blocks of more bytes are rare.
    static let bytesOfBlockMax = 32 << 10
    /// Bytes of all blocks in the pool: the nodes that go with the state before a commit of some
    /// hundred rows in random order.
    static let bytesMax = 4 << 20

    /// The first block of each class.
    private var first = [UInt](repeating: 0, count: bytesOfBlockMax / step + 1)
    /// The class that gives way next.
    private var hand = 0
    private(set) var bytes = 0

    deinit { for block in first { Self.free(block) } }

    /// Whether blocks of that size are pooled. None are under the address sanitizer, which then
    /// sees what is used after its end, or after its time.
    static func holds(_ byteCount: Int) -> Bool {
        #if VARVE_ADDRESS_SANITIZER
        false
        #else
        byteCount >= bytesMin && byteCount <= bytesOfBlockMax
        #endif
    }

    /// A new block of a class, aligned to 16.
    static func make(_ sizeClass: Int) -> UInt {
        let block = UnsafeMutableRawPointer.allocate(byteCount: sizeClass * step, alignment: 16)
        return UInt(bitPattern: block)
    }

    static func sizeClass(_ byteCount: Int) -> Int { (byteCount + step - 1) / step }

    /// Takes a block of a class out; it leads nowhere then. - Complexity: O(1).
    mutating func take(_ sizeClass: Int) -> UInt {
        let block = first[sizeClass]
        if block == 0 { return 0 }
        first[sizeClass] = Self.next(block)
        Self.link(block, to: 0)
        bytes -= sizeClass * Self.step
        return block
    }

    /// Puts a block in.
    /// - Returns: blocks that have to go for it, to be freed outside of the lock.
    /// - Complexity: O(1) on average.
    mutating func give(_ block: UInt, _ sizeClass: Int) -> UInt {
        Self.link(block, to: first[sizeClass])
        first[sizeClass] = block
        bytes += sizeClass * Self.step
        var surplus: UInt = 0
        while bytes > Self.bytesMax {
            hand = hand + 1 < first.count ? hand + 1 : 0
            let gone = take(hand)
            if gone != 0 {
                Self.link(gone, to: surplus)
                surplus = gone
            }
        }
        return surplus
    }

    /// Gives a chain of blocks back to the system.
    static func free(_ chain: UInt) {
        var block = chain
        while block != 0 {
            let gone = block
            block = next(block)
            // A block of the pool is nobody's.
            unsafe UnsafeMutableRawPointer(bitPattern: gone)?.deallocate()
        }
    }

    private static func next(_ block: UInt) -> UInt {
        // Blocks in a chain begin with the address of the next.
        unsafe UnsafeRawPointer(bitPattern: block)?.load(as: UInt.self) ?? 0
    }

    private static func link(_ block: UInt, to next: UInt) {
        // A block has room for a word, and is nobody's.
        unsafe UnsafeMutableRawPointer(bitPattern: block)?.storeBytes(of: next, as: UInt.self)
    }
}
