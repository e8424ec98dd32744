// FENCE: blocks of memory for nodes, used again and again.
//
// Invariants
// - A block in the pool is nobody's; its first word leads to the next one of its class.
// - A block of class c has `c * step` bytes; who gives one back names the size that he asked for,
//   so that it comes back to its class.
// - The pool holds at most `bytesMax` bytes; what is more goes back to the system.
//
// Why: a store larger than its cache takes a block for each page that it reads, and frees the block
// of a page that goes. Blocks of this size are beyond the fast paths of usual allocators, which
// split and join them each time: a tenth of the time of a random read (docs/Performance.md).

internal import Synchronization

enum NodeBlocks {
    /// Sizes are rounded up to a multiple of this.
    static let step = 512
    /// Blocks of fewer bytes are the allocator's: it has a fast path for them.
    static let bytesMin = 1 << 10
    /// Blocks of more bytes are rare.
    static let bytesOfBlockMax = 32 << 10
    /// Bytes of all blocks in the pool: the nodes that an eviction frees at once, and some more.
    static let bytesMax = 1 << 20

    @safe private struct Pool: ~Copyable {
        /// Addresses of the first block of each class; 0: none.
        var first = [UInt](repeating: 0, count: bytesOfBlockMax / step + 1)
        var bytes = 0
    }

    private static let pool = Mutex(Pool())

    /// Bytes in the pool now.
    static var pooledBytes: Int { pool.withLock { $0.bytes } }

    /// What a block of `byteCount` bytes takes.
    static func rounded(_ byteCount: Int) -> Int {
        isPooled(byteCount) ? (byteCount + step - 1) / step * step : byteCount
    }

    private static func isPooled(_ byteCount: Int) -> Bool {
        byteCount >= bytesMin && byteCount <= bytesOfBlockMax
    }

    /// A block of at least `byteCount` bytes, aligned to 16.
    static func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
        guard isPooled(byteCount) else {
            return .allocate(byteCount: byteCount, alignment: 16)
        }
        let sizeClass = (byteCount + step - 1) / step
        // Nobody waits for a block: the allocator has others.
        let found = pool.withLockIfAvailable { pool in
            guard let block = unsafe UnsafeMutableRawPointer(bitPattern: pool.first[sizeClass])
            else {
                return UInt(0)
            }
            pool.first[sizeClass] = unsafe block.load(as: UInt.self)
            pool.bytes -= sizeClass * step
            return UInt(bitPattern: block)
        }
        if let found, let block = unsafe UnsafeMutableRawPointer(bitPattern: found) {
            return unsafe block
        }
        return .allocate(byteCount: sizeClass * step, alignment: 16)
    }

    /// Takes back a block that `allocate` gave for `byteCount` bytes.
    static func deallocate(_ block: UnsafeMutableRawPointer, _ byteCount: Int) {
        if isPooled(byteCount) {
            let sizeClass = (byteCount + step - 1) / step
            let address = UInt(bitPattern: block)
            let isKept = pool.withLockIfAvailable { pool in
                guard pool.bytes + sizeClass * step <= bytesMax else { return false }
                // The block has more than a word, and is nobody's.
                unsafe UnsafeMutableRawPointer(bitPattern: address)?
                    .storeBytes(of: pool.first[sizeClass], as: UInt.self)
                pool.first[sizeClass] = address
                pool.bytes += sizeClass * step
                return true
            }
            if isKept == true { return }
        }
        unsafe block.deallocate()
    }
}
