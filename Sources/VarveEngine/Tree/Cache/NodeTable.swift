// FENCE: from a place in the file to its node in memory. Read without a lock, changed under one.
//
// Invariants
// - An entry is {file offset, node}; a free one is {0, 0}. The table owns one reference to each
//   node in it. A node that leaves the table keeps that reference until no reader can have seen it.
// - A reader compares the node's own place with the one it looks for: the two words of an entry
//   are not read at once, so they may belong to different nodes.
// - A place hashes to two buckets of four entries, one cache line each. It is in one of them or
//   not in the table.
//
// A table does not grow: `NodeCache` makes a larger one, and this one goes the way of the nodes.

internal import Synchronization

@safe struct NodeTable {
    typealias Node = Unmanaged<TreeNode>

    private static let bucketBytes = 64
    private static let perBucket = 4
    /// A header of one line, then the buckets. The header's first word is the shift of the hash.
    private let memory: UnsafeMutableRawPointer

    let buckets: Int
    var capacity: Int { buckets * Self.perBucket }
    /// Bytes of the block.
    var footprint: Int { (buckets + 1) * Self.bucketBytes }
    /// What readers get hold of the table by.
    var address: UInt { unsafe UInt(bitPattern: memory) }

    /// - Parameter buckets: a power of two, at least 2.
    init(buckets: Int) {
        precondition(buckets >= 2 && buckets & (buckets - 1) == 0, "a power of two")
        self.buckets = buckets
        unsafe memory = .allocate(
            byteCount: (buckets + 1) * Self.bucketBytes,
            alignment: Self.bucketBytes
        )
        let shift = UInt64(64 - buckets.trailingZeroBitCount)
        unsafe memory.storeBytes(of: shift, as: UInt64.self)
        for entry in 0..<(buckets * Self.perBucket) {
            // Two words of the entry's own 16 bytes.
            unsafe (memory + Self.bucketBytes + entry * 16)
                .bindMemory(to: Atomic<UInt64>.self, capacity: 1).initialize(to: Atomic(0))
            unsafe (memory + Self.bucketBytes + entry * 16 + 8)
                .bindMemory(to: Atomic<UInt>.self, capacity: 1).initialize(to: Atomic(0))
        }
    }

    /// Frees the block; its nodes are the caller's business.
    func deallocate() { unsafe memory.deallocate() }

    // MARK: Reading

    /// The node of a place. The caller is inside an operation since before it loaded `table`.
    @inline(__always)
    static func find(_ offset: UInt64, in table: UInt) -> Node? {
        guard let memory = unsafe UnsafeMutableRawPointer(bitPattern: table) else { return nil }
        let shift = unsafe memory.load(as: UInt64.self)
        let hash = hash(offset)
        if let node = unsafe find(offset, memory, Int(truncatingIfNeeded: hash &>> shift)) {
            return unsafe node
        }
        return unsafe find(offset, memory, second(hash, shift))
    }

    @inline(__always)
    private static func find(
        _ offset: UInt64,
        _ memory: UnsafeMutableRawPointer,
        _ bucket: Int
    ) -> Node? {
        let line = unsafe memory + (bucket &+ 1) &* bucketBytes
        for entry in 0..<perBucket {
            // Entries of the bucket's own line, initialised with the table.
            let place = unsafe (line + (entry &* 16)).assumingMemoryBound(to: Atomic<UInt64>.self)
            guard unsafe place.pointee.load(ordering: .relaxed) == offset else { continue }
            let word = unsafe (line + (entry &* 16 &+ 8)).assumingMemoryBound(to: Atomic<UInt>.self)
            let bits = unsafe word.pointee.load(ordering: .sequentiallyConsistent)
            guard let pointer = unsafe UnsafeRawPointer(bitPattern: bits) else { continue }
            let node = unsafe Node.fromOpaque(pointer)
            if unsafe node._withUnsafeGuaranteedRef({ $0.place }) == offset { return unsafe node }
        }
        return nil
    }

    /// Offsets are multiples of 8; the product's high bits depend on all of them.
    @inline(__always)
    private static func hash(_ offset: UInt64) -> UInt64 { offset &* 0x9E37_79B9_7F4A_7C15 }
    @inline(__always)
    private static func second(_ hash: UInt64, _ shift: UInt64) -> Int {
        Int(truncatingIfNeeded: (hash &* 0xD6E8_FEB8_6659_FD93) &>> shift)
    }

    // MARK: Changing, under the store's lock

    private func place(_ entry: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(entry >= 0 && entry < capacity)
        return unsafe (memory + Self.bucketBytes + entry * 16)
            .assumingMemoryBound(to: Atomic<UInt64>.self)
    }
    private func word(_ entry: Int) -> UnsafeMutablePointer<Atomic<UInt>> {
        precondition(entry >= 0 && entry < capacity)
        return unsafe (memory + Self.bucketBytes + entry * 16 + 8)
            .assumingMemoryBound(to: Atomic<UInt>.self)
    }

    /// The node in an entry, or nil when it is free.
    func node(at entry: Int) -> Node? {
        let bits = unsafe word(entry).pointee.load(ordering: .relaxed)
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: bits) else { return nil }
        return unsafe Node.fromOpaque(pointer)
    }

    /// Entries of both buckets of a place.
    private func candidates(_ offset: UInt64) -> (first: Int, second: Int) {
        let shift = unsafe memory.load(as: UInt64.self)
        let hash = Self.hash(offset)
        return (
            Int(truncatingIfNeeded: hash >> shift) * Self.perBucket,
            Self.second(hash, shift) * Self.perBucket
        )
    }

    /// Puts a node in, with the reference that the caller hands over; false when both of its
    /// buckets are full.
    func put(_ node: Node, at offset: UInt64) -> Bool {
        let (first, second) = candidates(offset)
        for start in [first, second] {
            for entry in start..<(start + Self.perBucket) where unsafe self.node(at: entry) == nil {
                let bits = unsafe UInt(bitPattern: node.toOpaque())
                unsafe word(entry).pointee.store(bits, ordering: .sequentiallyConsistent)
                unsafe place(entry).pointee.store(offset, ordering: .releasing)
                return true
            }
        }
        return false
    }

    /// Takes out what is in an entry. The reference that the table had is the caller's now.
    func take(at entry: Int) -> Node? {
        guard let node = unsafe node(at: entry) else { return nil }
        unsafe word(entry).pointee.store(0, ordering: .sequentiallyConsistent)
        unsafe place(entry).pointee.store(0, ordering: .releasing)
        return unsafe node
    }

    /// An entry in the way of a place whose buckets are full.
    func entryInTheWay(of offset: UInt64) -> Int { candidates(offset).first }
}
