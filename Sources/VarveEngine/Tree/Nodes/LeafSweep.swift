// FENCE: many changes to one leaf, in the order of its keys. Raw memory.
//
// Invariants
// - Slots in front of `front` are done. Those from `back` up to `end` are as they were, and lie
//   behind all that was sought. What is between them is a gap that nothing names.
// - Until `finish` nobody reads the leaf's entries. Its count and its weight are right all the
//   time.
// - No row of the leaf is packed.
//
// Why: an entry that goes, or comes, moves all slots behind it. A large transaction changes dozens
// of entries of a leaf; here what goes leaves room for what comes, and a slot is moved down once.

internal import VarveBase
internal import VarveFormat

struct LeafSweep {
    private let leaf: TreeNode
    /// Where the next entry goes.
    private(set) var front = 0
    private var back = 0
    private var end: Int

    /// Slots that are opened at once where nothing went before.
    private static let opened = 8

    /// An index has no packed rows; a forged page of one may, and they are unpacked.
    init(_ leaf: TreeNode) {
        precondition(leaf.isLeaf, "a sweep is over a leaf")
        leaf.unfold()
        self.leaf = leaf
        end = leaf.count
    }

    /// Goes on to a key above those before; whether the leaf has it.
    /// - Complexity: O(log(entries behind it)), and a move of those on the way.
    ///
    /// - Parameter head: the key's first 8 bytes, as `PendingEntries` has them.
    mutating func seek(_ bytes: [UInt8], _ key: Range<Int>, head: UInt64) -> Bool {
        if back == end { return false }
        let (index, isEqual) = unsafe bytes.withUnsafeBytes { raw in
            unsafe leaf.words.lowerBound(
                UnsafeRawBufferPointer(rebasing: raw[key]),
                head: head,
                in: back..<end
            )
        }
        moveDown(index - back)
        return isEqual
    }

    /// Takes out the entry that was sought and found.
    mutating func remove() {
        precondition(back < end, "an entry that was found")
        let key = unsafe leaf.words.keyLength(back)
        let value = unsafe leaf.words.valueLength(back)
        unsafe leaf.live -= (key > TreeNode.slotKeyMax ? key : 0) + value
        unsafe leaf.words.count -= 1
        back += 1
    }

    /// Puts a key in, without a value, where it was sought and not found.
    mutating func insert(_ bytes: [UInt8], _ key: Range<Int>, head: UInt64) {
        let size = key.count > TreeNode.slotKeyMax ? key.count : 0
        makeGap(size)
        let start = unsafe leaf.heapStart - size
        if size > 0 {
            unsafe bytes.withUnsafeBytes { raw in
                guard let source = raw.baseAddress else { return }
                // `makeGap` left as much free in front of `heapStart`.
                unsafe (leaf.words.base + start).copyMemory(
                    from: source + key.lowerBound,
                    byteCount: size
                )
            }
        }
        unsafe leaf.heapStart = start
        unsafe TreeNode.setSlot(
            leaf.words.base + front * TreeNode.slotSize,
            head: head,
            key: (start, key.count),
            value: (start, 0)
        )
        unsafe leaf.live += size
        unsafe leaf.words.count += 1
        front += 1
    }

    /// Closes the gap: the leaf is whole.
    mutating func finish() {
        moveDown(end - back)
        (back, end) = (front, front)
    }

    /// Brings so many slots behind the gap in front of it.
    private mutating func moveDown(_ count: Int) {
        if front != back, count > 0 {
            // In pieces, as `closeSlot` says.
            let piece = 80
            var left = count
            var target = unsafe leaf.words.base + front * TreeNode.slotSize
            let distance = (back - front) * TreeNode.slotSize
            while left > 0 {
                let bytes = min(left, piece) * TreeNode.slotSize
                unsafe target.copyMemory(from: target + distance, byteCount: bytes)
                unsafe target += bytes
                left -= piece
            }
        }
        front += count
        back += count
    }

    /// Makes room for one slot at `front`, and `size` bytes in front of `heapStart`.
    private mutating func makeGap(_ size: Int) {
        let needed = size + (front == back ? TreeNode.slotSize : 0)
        if unsafe leaf.heapStart - end * TreeNode.slotSize < needed {
            let place = front
            finish()
            leaf.makeRoom(size + TreeNode.slotSize)
            (front, back, end) = (place, place, leaf.count)
        }
        guard front == back else { return }
        let free = unsafe (leaf.heapStart - size) / TreeNode.slotSize - end
        let count = min(free, Self.opened)
        // Slots end in front of the heap, with `size` bytes between.
        let source = unsafe leaf.words.base + back * TreeNode.slotSize
        unsafe (source + count * TreeNode.slotSize).copyMemory(
            from: source,
            byteCount: (end - back) * TreeNode.slotSize
        )
        back += count
        end += count
    }
}
