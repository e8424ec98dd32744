// FENCE: one node of a B-tree in memory. Raw memory stays inside this file.
//
// Invariants
// - A node is one block: slots of 16 bytes grow from the front, entries grow from the back.
//   slot  = first 8 key bytes as a big-endian number, entry offset (4), key length (4)
//   entry = value length (4), key, value
// - Slots are strictly ascending by key (memcmp, shorter first).
// - An inner node has one child per slot. Slot i's key is a lower bound of child i's keys and an
//   upper bound (exclusive) of child i-1's; slot 0's key is empty.
// - A node may change only in the transaction whose stamp it carries, before that transaction is
//   published. After that it is read by any thread and never changes.
//
// Why raw memory: a lookup touches a few slots of one block and no reference count per entry.

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
    static let slotSize = 16
    static let entryOverhead = 4

    /// The transaction that made this node, or `cleanStamp` for a node decoded from the file.
    let stamp: UInt64
    /// 0 for a leaf, the child's level plus 1 otherwise.
    let level: Int
    /// Number of entries.
    private(set) var count = 0
    /// Children, one per entry; empty in a leaf.
    var children: ContiguousArray<ChildPointer> = []
    /// Bytes of live entries, slots not counted.
    private(set) var liveBytes = 0

    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private var heapStart: Int

    static let cleanStamp: UInt64 = 0

    init(stamp: UInt64, level: Int, capacity: Int = 1024) {
        self.stamp = stamp
        self.level = level
        self.capacity = capacity
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
        heapStart = capacity
    }

    /// A copy that the transaction `stamp` may change, with room for `slack` bytes more.
    ///
    /// What removed entries left behind is copied along while it fits the slack: two moves of bytes
    /// instead of one per entry. A small commit is mostly such copies.
    init(copying other: TreeNode, stamp: UInt64, slack: Int) {
        self.stamp = stamp
        level = other.level
        children = other.children
        let entryBytes = other.capacity - other.heapStart
        let isPacked = entryBytes - other.liveBytes > slack
        let needed =
            other.count * Self.slotSize + (isPacked ? other.liveBytes : entryBytes) + slack
        capacity = (needed + 255) & ~255
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
        heapStart = capacity
        if isPacked {
            appendEntries(of: other, from: 0, to: other.count)
            return
        }
        heapStart = capacity - entryBytes
        count = other.count
        liveBytes = other.liveBytes
        // Slots fill the front of both blocks and entries the back: `needed` has room for both.
        unsafe base.copyMemory(from: other.base, byteCount: count * Self.slotSize)
        unsafe (base + heapStart).copyMemory(
            from: other.base + other.heapStart,
            byteCount: entryBytes
        )
        // Entries keep their distance from the block's end.
        let shift = capacity - other.capacity
        if shift == 0 { return }
        for index in 0..<count {
            unsafe base.storeBytes(
                of: UInt32(truncatingIfNeeded: entryOffset(index) + shift),
                toByteOffset: index * 16 + 8,
                as: UInt32.self
            )
        }
    }

    deinit {
        // The block was allocated in init or grow and is owned by this node alone.
        unsafe base.deallocate()
    }

    var isLeaf: Bool { level == 0 }

    /// What the node weighs against the split threshold and the cache budget, in bytes.
    var weight: Int { liveBytes + count * Self.slotSize }
    /// Bytes of memory behind the node.
    var footprint: Int {
        capacity + children.count * MemoryLayout<ChildPointer>.stride + 96
    }
    /// Entries of all leaves below (of this leaf itself).
    var rows: UInt64 {
        if isLeaf { return UInt64(count) }
        var sum: UInt64 = 0
        for child in children { sum += child.rows }
        return sum
    }

    // MARK: Slots

    @inline(__always) private func head(_ index: Int) -> UInt64 {
        // Slots 0..<count lie inside the block (checked by every caller's index precondition).
        unsafe base.load(fromByteOffset: index * 16, as: UInt64.self)
    }
    @inline(__always) private func entryOffset(_ index: Int) -> Int {
        Int(unsafe base.load(fromByteOffset: index * 16 + 8, as: UInt32.self))
    }
    @inline(__always) private func keyLength(_ index: Int) -> Int {
        Int(unsafe base.load(fromByteOffset: index * 16 + 12, as: UInt32.self))
    }
    @inline(__always) private func valueLength(_ index: Int) -> Int {
        Int(unsafe base.loadUnaligned(fromByteOffset: entryOffset(index), as: UInt32.self))
    }
    @inline(__always) private func keyBytes(_ index: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: base + entryOffset(index) + 4, count: keyLength(index))
    }
    @inline(__always) private func valueBytes(_ index: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: base + entryOffset(index) + 4 + keyLength(index),
            count: valueLength(index)
        )
    }
    private func setSlot(_ index: Int, head: UInt64, offset: Int, keyLength: Int) {
        unsafe base.storeBytes(of: head, toByteOffset: index * 16, as: UInt64.self)
        unsafe base.storeBytes(
            of: UInt32(truncatingIfNeeded: offset),
            toByteOffset: index * 16 + 8,
            as: UInt32.self
        )
        unsafe base.storeBytes(
            of: UInt32(truncatingIfNeeded: keyLength),
            toByteOffset: index * 16 + 12,
            as: UInt32.self
        )
    }

    /// First 8 bytes of a key as a big-endian number, zeros behind a shorter key.
    @inline(__always) private static func head(of key: UnsafeRawBufferPointer) -> UInt64 {
        if key.count >= 8 {
            return UInt64(bigEndian: unsafe key.loadUnaligned(as: UInt64.self))
        }
        var result: UInt64 = 0
        for index in 0..<key.count { result |= UInt64(unsafe key[index]) << UInt64(56 - 8 * index) }
        return result
    }

    /// memcmp order, shorter first.
    @inline(__always) private static func compare(
        _ left: UnsafeRawBufferPointer,
        _ right: UnsafeRawBufferPointer
    ) -> Int {
        let common = min(left.count, right.count)
        var index = 0
        while index + 8 <= common {
            let a = UInt64(
                bigEndian: unsafe left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            )
            let b = UInt64(
                bigEndian: unsafe right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            )
            if a != b { return a < b ? -1 : 1 }
            index += 8
        }
        while index < common {
            let a = unsafe left[index]
            let b = unsafe right[index]
            if a != b { return a < b ? -1 : 1 }
            index += 1
        }
        return left.count == right.count ? 0 : (left.count < right.count ? -1 : 1)
    }

    // MARK: Search

    /// Index of the first entry whose key is not below `key`, and whether it is equal.
    /// - Complexity: O(log count).
    func lowerBound(_ key: [UInt8]) -> (index: Int, isEqual: Bool) {
        // The array's memory lives for the call; nothing keeps the pointer.
        unsafe key.withUnsafeBytes { raw in unsafe lowerBound(raw) }
    }

    private func lowerBound(_ key: UnsafeRawBufferPointer) -> (index: Int, isEqual: Bool) {
        let wanted = unsafe Self.head(of: key)
        var low = firstSlot(notBelow: wanted)
        // Only entries with the same first 8 bytes are left to tell apart.
        var high = low
        if low < count && head(low) == wanted {
            high = wanted == .max ? count : firstSlot(notBelow: wanted + 1)
        }
        while low < high {
            let middle = (low + high) / 2
            let order = unsafe Self.compare(keyBytes(middle), key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    /// Binary search over the heads alone; the loop's only branch is its count.
    @inline(__always) private func firstSlot(notBelow wanted: UInt64) -> Int {
        var first = 0
        var length = count
        while length > 0 {
            let half = length / 2
            let isBelow = head(first + half) < wanted
            first = isBelow ? first + half + 1 : first
            length = isBelow ? length - half - 1 : half
        }
        return first
    }

    /// Index of the entry whose key is the 8-byte `object`, or where it would stand.
    func lowerBound(object: ObjectID) -> (index: Int, isEqual: Bool) {
        let index = firstSlot(notBelow: object.rawValue)
        return (index, index < count && head(index) == object.rawValue && keyLength(index) == 8)
    }

    /// Index of the child that holds `key`: the last one whose lower bound is not above it.
    func childIndex(for key: [UInt8]) -> Int {
        let (index, isEqual) = lowerBound(key)
        return isEqual ? index : max(index - 1, 0)
    }

    /// Index of the child that holds the 8-byte `object`.
    func childIndex(object: ObjectID) -> Int {
        // A separator of at most 8 bytes is not above the object exactly when its head is not.
        let after =
            object.rawValue == .max ? count : firstSlot(notBelow: object.rawValue + 1)
        return max(after - 1, 0)
    }

    // MARK: Entries

    /// The key of one entry, copied.
    func key(_ index: Int) -> [UInt8] {
        precondition(index < count)
        return unsafe [UInt8](keyBytes(index))
    }

    /// The value of one entry, copied.
    func value(_ index: Int) -> [UInt8] {
        precondition(index < count)
        return unsafe [UInt8](valueBytes(index))
    }

    /// Length of one entry's value.
    func valueCount(_ index: Int) -> Int {
        precondition(index < count)
        return valueLength(index)
    }

    /// A row entry: the commit that wrote the row (LEB128 in front) and the row's bytes, copied.
    /// Nil when the entry is not a row.
    func row(_ index: Int) -> StoredRow? {
        precondition(index < count)
        let bytes = unsafe valueBytes(index)
        var version: UInt64 = 0
        var position = 0
        while position < bytes.count && position < 10 {
            let byte = unsafe bytes[position]
            if position == 9 && byte > 1 { return nil }
            version |= UInt64(byte & 0x7f) << UInt64(7 * position)
            position += 1
            if byte & 0x80 == 0 {
                let row = unsafe [UInt8](UnsafeRawBufferPointer(rebasing: bytes[position...]))
                return StoredRow(version: CommitNumber(version), bytes: row)
            }
        }
        return nil
    }

    /// The last 8 bytes of a key as an object ID; nil when the key is shorter.
    func trailingObjectID(_ index: Int) -> ObjectID? {
        precondition(index < count)
        let key = unsafe keyBytes(index)
        guard key.count >= 8 else { return nil }
        let raw = unsafe key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self)
        return ObjectID(UInt64(bigEndian: raw))
    }

    /// Orders one entry's key against `other` (memcmp, shorter first): below 0, 0, above 0.
    func compareKey(_ index: Int, with other: [UInt8]) -> Int {
        precondition(index < count)
        return unsafe other.withUnsafeBytes { raw in unsafe Self.compare(keyBytes(index), raw) }
    }

    /// Whether one entry's key begins with `prefix`.
    func keyHasPrefix(_ index: Int, _ prefix: [UInt8]) -> Bool {
        precondition(index < count)
        let key = unsafe keyBytes(index)
        guard key.count >= prefix.count else { return false }
        return unsafe prefix.withUnsafeBytes { raw in
            unsafe Self.compare(
                UnsafeRawBufferPointer(rebasing: key[0..<raw.count]),
                raw
            ) == 0
        }
    }

    /// Calls `body` with the object IDs at the ends of the keys from `first` up to `last`.
    /// False when a key is too short for one.
    func appendObjectIDs(from first: Int, to last: Int, into list: inout [ObjectID]) -> Bool {
        precondition(first <= last && last <= count)
        for index in first..<last {
            guard let object = trailingObjectID(index) else { return false }
            list.append(object)
        }
        return true
    }

    // MARK: Change

    /// Puts an entry in front of slot `index`. The caller found `index` by `lowerBound`.
    func insert(_ key: [UInt8], _ value: [UInt8], at index: Int) {
        precondition(index <= count)
        unsafe key.withUnsafeBytes { key in
            unsafe value.withUnsafeBytes { value in unsafe insert(key, value, at: index) }
        }
    }

    private func insert(
        _ key: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        at index: Int
    ) {
        let size = 4 + key.count + value.count
        makeRoom(size + Self.slotSize)
        let offset = heapStart - size
        unsafe base.storeBytes(
            of: UInt32(truncatingIfNeeded: value.count),
            toByteOffset: offset,
            as: UInt32.self
        )
        if let source = key.baseAddress {
            unsafe (base + offset + 4).copyMemory(from: source, byteCount: key.count)
        }
        if let source = value.baseAddress {
            unsafe (base + offset + 4 + key.count).copyMemory(
                from: source,
                byteCount: value.count
            )
        }
        heapStart = offset
        if index < count {
            // Overlapping move inside the slot area, which makeRoom kept free of entries.
            unsafe (base + (index + 1) * 16).copyMemory(
                from: base + index * 16,
                byteCount: (count - index) * 16
            )
        }
        setSlot(
            index,
            head: unsafe Self.head(of: key),
            offset: offset,
            keyLength: key.count
        )
        count += 1
        liveBytes += size
    }

    /// Replaces the value of one entry.
    func setValue(_ value: [UInt8], at index: Int) {
        precondition(index < count)
        if valueLength(index) == value.count {
            let start = entryOffset(index) + 4 + keyLength(index)
            unsafe value.withUnsafeBytes { source in
                guard let address = source.baseAddress else { return }
                unsafe (base + start).copyMemory(from: address, byteCount: source.count)
            }
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

    /// Takes one entry out. Children are the caller's business.
    func remove(at index: Int) {
        precondition(index < count)
        liveBytes -= 4 + keyLength(index) + valueLength(index)
        if index + 1 < count {
            unsafe (base + index * 16).copyMemory(
                from: base + (index + 1) * 16,
                byteCount: (count - index - 1) * 16
            )
        }
        count -= 1
    }

    /// Copies entries of another node behind the last one. Children are the caller's business.
    func appendEntries(of other: TreeNode, from first: Int, to last: Int) {
        precondition(first <= last && last <= other.count)
        for index in first..<last {
            unsafe insert(other.keyBytes(index), other.valueBytes(index), at: count)
        }
    }

    /// Appends an entry whose key is `prefix` followed by a range of `source`; false unless the key
    /// is above the last one. For decoding a page.
    func append(
        prefix: Range<Int>,
        suffix: Range<Int>,
        value: Range<Int>,
        of source: [UInt8]
    ) -> Bool {
        precondition(prefix.upperBound <= source.count && suffix.upperBound <= source.count)
        precondition(value.upperBound <= source.count)
        let keyCount = prefix.count + suffix.count
        let size = 4 + keyCount + value.count
        makeRoom(size + Self.slotSize)
        let offset = heapStart - size
        let keyHead = unsafe source.withUnsafeBytes { raw in
            unsafe base.storeBytes(
                of: UInt32(truncatingIfNeeded: value.count),
                toByteOffset: offset,
                as: UInt32.self
            )
            guard let from = raw.baseAddress else { return UInt64(0) }
            let target = unsafe base + offset + 4
            unsafe target.copyMemory(from: from + prefix.lowerBound, byteCount: prefix.count)
            unsafe (target + prefix.count).copyMemory(
                from: from + suffix.lowerBound,
                byteCount: suffix.count
            )
            unsafe (target + keyCount).copyMemory(
                from: from + value.lowerBound,
                byteCount: value.count
            )
            return unsafe Self.head(of: UnsafeRawBufferPointer(start: target, count: keyCount))
        }
        heapStart = offset
        setSlot(count, head: keyHead, offset: offset, keyLength: keyCount)
        count += 1
        liveBytes += size
        if count >= 2 {
            return unsafe Self.compare(keyBytes(count - 2), keyBytes(count - 1)) < 0
        }
        return true
    }

    /// Length of what the first and the last key begin with in common.
    func commonPrefixCount() -> Int {
        guard count > 0 else { return 0 }
        let first = unsafe keyBytes(0)
        let last = unsafe keyBytes(count - 1)
        var length = 0
        while length < first.count && length < last.count {
            guard unsafe first[length] == last[length] else { break }
            length += 1
        }
        return length
    }

    /// Appends parts of every entry to `bytes`: what `LeafPage` and `InnerPage` are made of.
    func appendKeySuffixes(skipping prefix: Int, to bytes: inout [UInt8]) {
        for index in 0..<count {
            unsafe bytes.append(contentsOf: keyBytes(index)[prefix...])
        }
    }
    /// Appends every value in order.
    func appendValues(to bytes: inout [UInt8]) {
        for index in 0..<count { unsafe bytes.append(contentsOf: valueBytes(index)) }
    }
    /// Length of one key.
    func keyCount(_ index: Int) -> Int {
        precondition(index < count)
        return keyLength(index)
    }

    /// Makes `size` bytes free between slots and entries: packs the entries, or takes a new block.
    private func makeRoom(_ size: Int) {
        if heapStart - count * Self.slotSize >= size { return }
        let needed = count * Self.slotSize + liveBytes + size
        let newCapacity = needed * 4 <= capacity * 3 ? capacity : (needed * 3 / 2 + 255) & ~255
        let block = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 16)
        var top = newCapacity
        for index in 0..<count {
            let length = 4 + keyLength(index) + valueLength(index)
            top -= length
            unsafe (block + top).copyMemory(from: base + entryOffset(index), byteCount: length)
            unsafe block.storeBytes(of: head(index), toByteOffset: index * 16, as: UInt64.self)
            unsafe block.storeBytes(
                of: UInt32(truncatingIfNeeded: top),
                toByteOffset: index * 16 + 8,
                as: UInt32.self
            )
            unsafe block.storeBytes(
                of: UInt32(truncatingIfNeeded: keyLength(index)),
                toByteOffset: index * 16 + 12,
                as: UInt32.self
            )
        }
        unsafe base.deallocate()
        unsafe base = block
        capacity = newCapacity
        heapStart = top
    }
}

extension TreeNode {
    /// The shortest key that is above every key of `left` and not above any key of `right`.
    static func separator(left: [UInt8], right: [UInt8]) -> [UInt8] {
        var length = 0
        while length < left.count && length < right.count && left[length] == right[length] {
            length += 1
        }
        precondition(length < right.count, "keys of a node must ascend")
        return [UInt8](right[0...length])
    }
}

// Published nodes never change and unpublished ones belong to the single writer (invariants above),
// so a node may be read from any thread.
extension TreeNode: @unchecked Sendable {}
