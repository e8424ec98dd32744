// FENCE: one node of a B-tree in memory: who owns what, and how it changes. Raw memory.
//
// Invariants
// - The layout is that of `NodeView`, which reads it. This class owns the block, the array of
//   children, and one reference to each child that it names by node.
// - A node may change only in the transaction whose stamp it carries, before that transaction is
//   published. After that it is read by any thread and never changes, but for `used`, an atomic.
// - `place`, `rows` and page of a clean node are set before the node table shows it.
//
// Why raw memory: a lookup touches a few slots of one block and no reference count per entry. Why
// exclusivity is not checked at run time: the second invariant says it, and a check costs more than
// the access. So every function here reads or writes the words at once and calls nobody in between
// but those that are told so (`with...`), and these hand out published nodes' bytes only.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

/// Where a child of an inner node is: in memory (changed since the last checkpoint), in the file,
/// or both.
struct ChildPointer {
    /// The child itself when it was changed since the last checkpoint.
    var node: TreeNode?
    /// Its page in the file; nil while it exists in memory only.
    var address: PageAddress?
    /// Entries of the leaves below it.
    var rows: UInt64
}

@safe final class TreeNode {
    static let slotSize = 24
    /// Keys up to this length stand in their slots.
    static let slotKeyMax = 8
    static let cleanStamp: UInt64 = 0

    // Changed here, in TreeNode+Children.swift and in TreeNode+Edited.swift only.
    @exclusivity(unchecked) var words: NodeView
    /// The place of a clean node that is or was in the node table; else 0.
    @exclusivity(unchecked) private var storedAt: UInt64 = 0
    /// Entries below a settled inner node.
    @exclusivity(unchecked) private var storedRows: UInt64 = 0
    /// What its page is: the hash of its payload, and `storedName`.
    @exclusivity(unchecked) private var storedHash: UInt64 = 0
    @exclusivity(unchecked) private var storedName: UInt64 = 0
    private let used = Atomic<Bool>(false)
    /// The transaction that made this node, or `cleanStamp` for a node decoded from the file.
    let stamp: UInt64
    @exclusivity(unchecked) var capacity: Int
    @exclusivity(unchecked) var heapStart: Int
    /// Bytes of keys and values in the block, without what removed entries left behind.
    @exclusivity(unchecked) var live = 0
    /// Bytes that the values of rows which are packed have once they are unpacked.
    @exclusivity(unchecked) var packedLive = 0
    /// What an edited leaf was made of.
    @exclusivity(unchecked) var storedBasis: LeafBasis?
    @exclusivity(unchecked) var childCapacity = 0
    /// Whether it was a leaf that a compaction filled.
    @exclusivity(unchecked) var storedFilled = false
    /// What the texts of a packed leaf are decoded with; it stays while the leaf does.
    private let symbols: SymbolSet?

    init(stamp: UInt64, level: Int, capacity: Int = 1024) {
        self.stamp = stamp
        symbols = nil
        unsafe self.capacity = capacity
        unsafe heapStart = capacity
        unsafe words = NodeView(
            base: Self.block(capacity),
            children: nil,
            childCount: 0,
            count: 0,
            level: level
        )
    }

    /// A clean node around a block that holds its slots from the front on, and keys and values from
    /// `heapStart` on. The block becomes the node's own, and so does the array of as many children,
    /// none of which is in memory.
    @unsafe init(
        decoded block: UnsafeMutableRawPointer,
        capacity: Int,
        heapStart: Int,
        live: Int,
        count: Int,
        level: Int = 0,
        children: UnsafeMutablePointer<NodePointer>? = nil
    ) {
        stamp = Self.cleanStamp
        symbols = nil
        unsafe self.capacity = capacity
        unsafe self.heapStart = heapStart
        unsafe self.live = live
        let childCount = unsafe children == nil ? 0 : count
        unsafe words = NodeView(
            base: block,
            children: children,
            childCount: childCount,
            count: count,
            level: level
        )
        if level > 0 { unsafe words.lookAtSeparators() }
        unsafe childCapacity = childCount
    }

    /// A packed leaf around a block that begins with its keys. Block, and what `packed` points to,
    /// become the node's own.
    ///
    /// - Parameter first: the first of its objects if their IDs have no gap.
    @unsafe init(
        packed: UnsafePointer<PackedLeaf>,
        denseFrom first: UInt64?,
        _ symbols: SymbolSet?,
        block: UnsafeMutableRawPointer,
        capacity: Int
    ) {
        stamp = Self.cleanStamp
        self.symbols = symbols
        unsafe self.capacity = capacity
        unsafe heapStart = capacity
        unsafe packedLive = packed.pointee.rawBytes
        unsafe words = NodeView(
            base: block,
            children: nil,
            childCount: 0,
            count: packed.pointee.count,
            level: 0,
            stride: Self.slotKeyMax,
            packed: packed,
            denseFirst: first ?? 0,
            denseCount: first == nil ? 0 : UInt64(packed.pointee.count)
        )
    }

    /// A copy that the transaction `stamp` may change, with room for `slack` bytes more.
    ///
    /// What removed entries left behind is copied along while it fits the slack: two moves of bytes
    /// instead of one per entry. A small commit is mostly such copies.
    ///
    /// The copy of a packed or edited leaf is unpacked.
    init(copying other: TreeNode, stamp: UInt64, slack: Int) {
        self.stamp = stamp
        symbols = nil
        if other.hasPackedRows {
            let room = Self.roundedUp(other.count * Self.slotSize + other.liveBytes + slack)
            unsafe capacity = room
            unsafe words = NodeView(
                base: Self.block(room),
                children: nil,
                childCount: 0,
                count: other.count,
                level: 0
            )
            unsafe (heapStart, live) = Self.unpack(other, into: words.base, room)
            return
        }
        let from = unsafe other.words
        let entryBytes = unsafe other.capacity - other.heapStart
        let isPacked = unsafe entryBytes - other.live > slack
        let slotBytes = unsafe from.count * Self.slotSize
        let needed = unsafe slotBytes + (isPacked ? other.live : entryBytes) + slack
        let room = Self.roundedUp(needed)
        unsafe capacity = room
        unsafe heapStart = room
        unsafe words = NodeView(
            base: Self.block(room),
            children: nil,
            childCount: 0,
            count: 0,
            level: from.level
        )
        if isPacked {
            appendEntries(of: other, from: 0, to: unsafe from.count)
        } else {
            unsafe heapStart = room - entryBytes
            unsafe words.count = from.count
            unsafe live = other.live
            // Slots fill the front of both blocks and the rest the back: `needed` has room for
            // both.
            unsafe words.base.copyMemory(from: from.base, byteCount: slotBytes)
            unsafe (words.base + heapStart).copyMemory(
                from: from.base + other.heapStart,
                byteCount: entryBytes
            )
            // What stands at the back keeps its distance from the block's end.
            unsafe shiftOffsets(by: room - other.capacity)
        }
        appendChildren(of: other, from: 0)
    }

    deinit {
        // The block and the children's array were allocated here and are owned by this node alone.
        if let children = unsafe words.children {
            for index in unsafe 0..<words.childCount { unsafe children[index].node?.release() }
            unsafe children.deallocate()
        }
        unsafe Self.free(words.base, capacity)
    }

    /// A node's block: `capacity` bytes, and a word more, since heads of short keys are loaded as
    /// one word.
    static func block(_ capacity: Int) -> UnsafeMutableRawPointer {
        unsafe NodeBlocks.allocate(capacity + MemoryLayout<UInt64>.size)
    }

    /// The least capacity from `bytes` on that leaves nothing of its block unused.
    static func roundedUp(_ bytes: Int) -> Int {
        let word = MemoryLayout<UInt64>.size
        return NodeBlocks.rounded((bytes + word + 255) & ~255) - word
    }

    /// Ends a block of that capacity.
    static func free(_ block: UnsafeMutableRawPointer, _ capacity: Int) {
        unsafe NodeBlocks.deallocate(block, capacity + MemoryLayout<UInt64>.size)
    }

    // MARK: What it is

    /// The words to read. Valid while the caller, or somebody for it, keeps the node.
    @inline(__always) var view: NodeView { unsafe words }
    /// Number of entries.
    @inline(__always) var count: Int { unsafe words.count }
    /// 0 for a leaf, the child's level plus 1 otherwise.
    @inline(__always) var level: Int { unsafe words.level }
    @inline(__always) var isLeaf: Bool { unsafe words.level == 0 }
    /// Whether all its rows are as its page has them.
    @inline(__always) var isPacked: Bool { unsafe words.stride != Self.slotSize }
    /// Whether rows are packed: of a packed leaf all, of an edited one some or none.
    @inline(__always) var hasPackedRows: Bool { unsafe words.packed != nil }
    /// Where a clean node's page is, once the node table knows it; else 0.
    @inline(__always) var place: UInt64 { unsafe storedAt }

    /// Bytes of live keys and values once all are unpacked, slots not counted.
    var liveBytes: Int { unsafe live + packedLive }
    /// What the node weighs against the split threshold, in bytes.
    var weight: Int { unsafe liveBytes + words.count * Self.slotSize }
    /// Bytes of memory after the node.
    var footprint: Int {
        let block = NodeBlocks.rounded(unsafe capacity + MemoryLayout<UInt64>.size)
        let own = unsafe block + childCapacity * MemoryLayout<NodePointer>.stride + 176
        return own + (basis?.leaf.footprint ?? 0)
    }
    /// Entries of all leaves below (of this leaf itself). O(1) for a settled node.
    var rows: UInt64 {
        if isLeaf { return UInt64(count) }
        if place != 0 { return unsafe storedRows }
        return unsafe words.rows(before: words.childCount)
    }

    /// Whether a clean node that the node table shows at the pointer's place is of the page that it
    /// names, in that tree.
    @inline(__always) func isPage(_ pointer: NodePointer, of tree: TreeID) -> Bool {
        unsafe storedHash == pointer.payloadHash
            && storedName == Self.name(tree, pointer.storedLength)
    }

    @inline(__always) private static func name(_ tree: TreeID, _ length: UInt32) -> UInt64 {
        UInt64(tree.rawValue) << 32 | UInt64(length)
    }

    /// Fixes the place of a clean node. Before any other thread sees it.
    func becomeStored(at address: PageAddress, of tree: TreeID) {
        let offset = address.offset.rawValue
        if place == offset { return }
        precondition(place == 0 && stamp == Self.cleanStamp, "a clean node has one place")
        unsafe storedRows = rows
        unsafe storedHash = address.payloadHash
        unsafe storedName = Self.name(tree, address.storedLength)
        unsafe storedAt = offset
    }

    /// Notes that the node was read; written only when it is not noted yet.
    @inline(__always) func markUsed() {
        if !used.load(ordering: .relaxed) { used.store(true, ordering: .relaxed) }
    }
    /// Forgets that; whether it was noted.
    func clearUsed() -> Bool {
        guard used.load(ordering: .relaxed) else { return false }
        used.store(false, ordering: .relaxed)
        return true
    }

    @inline(__always) func check(_ index: Int) {
        precondition(index >= 0 && index < count, "an entry of the node")
    }

    // MARK: Changing entries. Children are the caller's business.

    /// Puts an entry in front of slot `index`. The caller found `index` by `lowerBound`.
    func insert(_ key: [UInt8], _ value: [UInt8], at index: Int) {
        unsafe key.withUnsafeBytes { key in
            unsafe value.withUnsafeBytes { value in unsafe insert(key, value, at: index) }
        }
    }

    /// Puts an entry without a value in front of slot `index`; its key stands in `bytes`.
    func insert(_ bytes: [UInt8], _ key: Range<Int>, at index: Int) {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe insert(
                UnsafeRawBufferPointer(rebasing: raw[key]),
                UnsafeRawBufferPointer(start: nil, count: 0),
                at: index
            )
        }
    }

    /// Neither key nor value may lie in this node's own block.
    func insert(
        _ key: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        at index: Int
    ) {
        let count = self.count
        precondition(index >= 0 && index <= count)
        if hasPackedRows, key.count != Self.slotKeyMax { unfold() }
        let keySize = key.count > Self.slotKeyMax ? key.count : 0
        let size = keySize + value.count
        makeRoom(size + Self.slotSize)
        let base = unsafe words.base
        let keyStart = unsafe heapStart - size
        let valueStart = keyStart + keySize
        if keySize > 0, let source = key.baseAddress {
            unsafe (base + keyStart).copyMemory(from: source, byteCount: keySize)
        }
        if let source = value.baseAddress {
            unsafe (base + valueStart).copyMemory(from: source, byteCount: value.count)
        }
        unsafe heapStart = keyStart
        if index < count {
            // Overlapping move inside the slot area, which makeRoom kept free of the rest.
            unsafe (base + (index + 1) * Self.slotSize).copyMemory(
                from: base + index * Self.slotSize,
                byteCount: (count - index) * Self.slotSize
            )
        }
        unsafe Self.setSlot(
            base + index * Self.slotSize,
            head: NodeView.head(of: key),
            key: (keyStart, key.count),
            value: (valueStart, value.count)
        )
        unsafe words.count = count + 1
        unsafe live += size
    }

    /// Puts a row after the last entry; false when its ID is not above, or when the node would
    /// weigh more than `limit`.
    func appendRow(
        _ object: ObjectID,
        _ version: CommitNumber,
        _ row: [UInt8],
        upTo limit: Int
    ) -> Bool {
        let index = count
        let versionSize = ByteWriter.varintSize(version.rawValue)
        let size = versionSize + row.count
        // The key fills its slot's head.
        guard index > 0, weight + Self.slotKeyMax + size + Self.slotSize <= limit,
            unsafe words.head(index - 1) < object.rawValue
        else { return false }
        makeRoom(size + Self.slotSize)
        let start = unsafe heapStart - size
        // `makeRoom` left `size` bytes free in front of `heapStart`, and a slot before them.
        let target = unsafe words.base + start
        unsafe Self.store(version.rawValue, versionSize, at: target)
        unsafe row.withUnsafeBytes { row in
            if let source = row.baseAddress {
                unsafe (target + versionSize).copyMemory(from: source, byteCount: row.count)
            }
        }
        unsafe heapStart = start
        unsafe Self.setSlot(
            words.base + index * Self.slotSize,
            head: object.rawValue,
            key: (start, Self.slotKeyMax),
            value: (start, size)
        )
        unsafe words.count = index + 1
        unsafe live += size
        return true
    }

    /// Replaces the value of one entry.
    ///
    /// - Parameter known: bytes of the row that was there, without its version, if that is known.
    func setValue(_ value: [UInt8], at index: Int, known: Int? = nil) {
        check(index)
        if let row = unsafe words.packedRow(index) {
            replacePacked(row, by: value, at: index, known: known)
            return
        }
        if unsafe words.valueLength(index) == value.count {
            let target = unsafe UnsafeMutableRawBufferPointer(mutating: words.valueBytes(index))
            unsafe value.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
            return
        }
        let key = key(index)
        remove(at: index)
        insert(key, value, at: index)
    }

    /// Replaces the key of one entry by one that keeps the order (separators only).
    func setKey(_ key: [UInt8], at index: Int) {
        let value = value(index)
        remove(at: index)
        insert(key, value, at: index)
    }

    /// Takes one entry out.
    ///
    /// - Parameter known: as in `setValue`.
    func remove(at index: Int, known: Int? = nil) {
        check(index)
        if let row = unsafe words.packedRow(index) {
            forgetPacked(row, known: known)
        } else {
            let keyLength = unsafe words.keyLength(index)
            unsafe live -= (keyLength > Self.slotKeyMax ? keyLength : 0) + words.valueLength(index)
        }
        closeSlot(index, before: count - index - 1)
        unsafe words.count -= 1
    }

    /// Takes the entries from `index` on out.
    func removeEntries(from index: Int) {
        while count > index { remove(at: count - 1) }
    }

    /// Copies entries of another node after the last one.
    func appendEntries(of other: TreeNode, from first: Int, to last: Int) {
        precondition(first >= 0 && first <= last && last <= other.count && other !== self)
        let other = other.unpacked
        for index in first..<last {
            unsafe insert(other.words.keyBytes(index), other.words.valueBytes(index), at: count)
        }
    }

    /// Makes `size` bytes free between slots and the rest: packs the entries, or takes a new block.
    func makeRoom(_ size: Int) {
        let slotBytes = unsafe words.count * Self.slotSize
        if unsafe heapStart - slotBytes >= size { return }
        let needed = unsafe slotBytes + live + size
        let newCapacity =
            unsafe needed * 4 <= capacity * 3 ? capacity : Self.roundedUp(needed * 3 / 2)
        let old = unsafe words
        let block = unsafe Self.block(newCapacity)
        var top = newCapacity
        for index in unsafe 0..<old.count {
            if unsafe old.packedRow(index) != nil {
                let place = index * Self.slotSize
                unsafe (block + place).copyMemory(from: old.base + place, byteCount: Self.slotSize)
                continue
            }
            let key = unsafe old.keyBytes(index)
            let value = unsafe old.valueBytes(index)
            top -= value.count
            let valueStart = top
            if let source = value.baseAddress {
                unsafe (block + top).copyMemory(from: source, byteCount: value.count)
            }
            if key.count > Self.slotKeyMax, let source = key.baseAddress {
                top -= key.count
                unsafe (block + top).copyMemory(from: source, byteCount: key.count)
            }
            unsafe Self.setSlot(
                block + index * Self.slotSize,
                head: old.head(index),
                key: (top, key.count),
                value: (valueStart, value.count)
            )
        }
        unsafe Self.free(old.base, capacity)
        unsafe words.base = block
        unsafe capacity = newCapacity
        unsafe heapStart = top
    }
}

// Published nodes never change and unpublished ones belong to the single writer (invariants above),
// so a node may be read from any thread.
extension TreeNode: @unchecked Sendable {}
