// FENCE: reading one node: plain words, no reference count, no check of exclusivity.
//
// Invariants
// - A view is valid while somebody keeps its node alive (`NodeCache` says who) and the node is not
//   changed. Nobody keeps a view longer than the call that got it.
// - Slots of 24 bytes grow from the front of the block, keys and values from the back.
//   slot = first 8 key bytes, key offset (4), key length (4), value offset (4), value length (4)
// - A key of up to 8 bytes stands in its slot alone, zeros after it; a longer one also as a whole
//   at its offset. So object IDs need no search beyond the slots.
// - Slots are strictly ascending by key (memcmp, shorter first).
// - A packed leaf (layout 1) has slots of 8 bytes: the key alone, which is an object ID. Its rows
//   stay in their page's bytes, and one that is read is unpacked for whoever reads it.
// - An edited leaf is a packed one of which some rows were changed: slots of 24 bytes, all keys of
//   8. A slot whose value length is `packedValue` names a row of the packed leaf; its value offset
//   is the row's index there. Such rows keep their order.
// - An inner node has one child per slot. Slot i's key is a lower bound of child i's keys and an
//   upper bound (exclusive) of child i-1's; slot 0's key is empty.

internal import VarveBase
internal import VarveFormat

/// A child as an inner node keeps it: plain words. A changed child's reference belongs to the node.
@unsafe struct NodePointer {
    /// The child when it was changed since the last checkpoint.
    var node: Unmanaged<TreeNode>?
    /// Its page's place in the file; 0 while it exists in memory only.
    var offset: UInt64
    var payloadHash: UInt64
    var storedLength: UInt32
    /// Entries of the leaves below it.
    var rows: UInt64

    /// The page in the file.
    var address: PageAddress? {
        if unsafe offset == 0 { return nil }
        return unsafe PageAddress(
            offset: FileOffset(offset),
            storedLength: storedLength,
            payloadHash: payloadHash
        )
    }

    /// Without a reference of its own: the caller keeps `pointer.node` alive.
    init(_ pointer: ChildPointer) {
        unsafe node = pointer.node.map { unsafe Unmanaged.passUnretained($0) }
        unsafe offset = pointer.address?.offset.rawValue ?? 0
        unsafe payloadHash = pointer.address?.payloadHash ?? 0
        unsafe storedLength = pointer.address?.storedLength ?? 0
        unsafe rows = pointer.rows
    }

    /// With references.
    var child: ChildPointer {
        unsafe ChildPointer(node: node?.takeUnretainedValue(), address: address, rows: rows)
    }
}

/// The words of a node that reading needs.
@unsafe struct NodeView {
    /// The block of slots, keys and values.
    var base: UnsafeMutableRawPointer
    /// One per entry in an inner node, none in a leaf.
    var children: UnsafeMutablePointer<NodePointer>?
    /// Number of children.
    var childCount: Int
    /// Number of entries.
    var count: Int
    /// 0 for a leaf, the child's level plus 1 otherwise.
    var level: Int
    /// Bytes from slot to slot.
    var stride = TreeNode.slotSize
    /// The rows of a packed leaf, or those that an edited one still has; nil where all slots name
    /// values.
    var packed: UnsafePointer<PackedLeaf>?
    /// The first key of a packed leaf whose objects have IDs without a gap, and their number; 0
    /// elsewhere. Then the place follows from the ID: no slot has to be read.
    var denseFirst: UInt64 = 0
    var denseCount: UInt64 = 0
    /// Of an inner node from the file: children for each step of the ID from its first separator
    /// on, which `denseFirst` is. 0 elsewhere.
    var slope = 0.0

    /// Value length of a slot whose row is still packed.
    static let packedValue = UInt32.max

    // MARK: Slots. Callers check `index` against `count`; everything inside a slot is our own.

    @inline(__always) func head(_ index: Int) -> UInt64 {
        UInt64(bigEndian: unsafe base.load(fromByteOffset: index &* stride, as: UInt64.self))
    }
    @inline(__always) func keyLength(_ index: Int) -> Int {
        if unsafe packed != nil { return TreeNode.slotKeyMax }
        return Int(unsafe base.load(fromByteOffset: index &* 24 &+ 12, as: UInt32.self))
    }
    /// The row's index in `packed`; nil where the slot names a value.
    @inline(__always) func packedRow(_ index: Int) -> Int? {
        if unsafe packed == nil { return nil }
        if unsafe stride == TreeNode.slotKeyMax { return index }
        let slot = unsafe base + index &* 24
        guard unsafe slot.load(fromByteOffset: 20, as: UInt32.self) == Self.packedValue else {
            return nil
        }
        return Int(unsafe slot.load(fromByteOffset: 16, as: UInt32.self))
    }
    /// Not of a row that is packed, as `valueBytes`.
    @inline(__always) func valueLength(_ index: Int) -> Int {
        precondition(unsafe packedRow(index) == nil, "packed rows are unpacked, one by one")
        return Int(unsafe base.load(fromByteOffset: index &* 24 &+ 20, as: UInt32.self))
    }
    @inline(__always) func keyBytes(_ index: Int) -> UnsafeRawBufferPointer {
        if unsafe packed != nil {
            let key = unsafe base + index &* stride
            return unsafe UnsafeRawBufferPointer(start: key, count: TreeNode.slotKeyMax)
        }
        let length = unsafe keyLength(index)
        let offset = unsafe base.load(fromByteOffset: index &* 24 &+ 8, as: UInt32.self)
        let start = length <= TreeNode.slotKeyMax ? index &* 24 : Int(offset)
        return unsafe UnsafeRawBufferPointer(start: base + start, count: length)
    }
    @inline(__always) func valueBytes(_ index: Int) -> UnsafeRawBufferPointer {
        let offset = unsafe base.load(fromByteOffset: index &* 24 &+ 16, as: UInt32.self)
        return unsafe UnsafeRawBufferPointer(start: base + Int(offset), count: valueLength(index))
    }

    // MARK: Keys

    /// First 8 bytes of a key as a big-endian number, zeros after a shorter key.
    @inline(__always) static func head(of key: UnsafeRawBufferPointer) -> UInt64 {
        if key.count >= 8 {
            return UInt64(bigEndian: unsafe key.loadUnaligned(as: UInt64.self))
        }
        var result: UInt64 = 0
        for index in 0..<key.count { result |= UInt64(unsafe key[index]) << UInt64(56 - 8 * index) }
        return result
    }

    /// memcmp order, shorter first.
    @inline(__always) static func compare(
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
    func lowerBound(_ key: UnsafeRawBufferPointer) -> (index: Int, isEqual: Bool) {
        unsafe lowerBound(key, head: Self.head(of: key), in: 0..<count)
    }

    /// The same among some slots, for a key whose first 8 bytes are known.
    @inline(__always)
    func lowerBound(
        _ key: UnsafeRawBufferPointer,
        head wanted: UInt64,
        in slots: Range<Int>
    ) -> (index: Int, isEqual: Bool) {
        var low = unsafe firstSlot(notBelow: wanted, in: slots)
        // Only entries with the same first 8 bytes are left to tell apart.
        var high = low
        let end = slots.upperBound
        if unsafe low < end && head(low) == wanted {
            unsafe high = wanted == .max ? end : firstSlot(notBelow: wanted + 1, in: low..<end)
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
    @inline(__always) func firstSlot(notBelow wanted: UInt64) -> Int {
        unsafe firstSlot(notBelow: wanted, in: 0..<count)
    }

    @inline(__always)
    private func firstSlot(notBelow wanted: UInt64, in slots: Range<Int>) -> Int {
        var first = slots.lowerBound
        var length = slots.count
        while length > 0 {
            let half = length / 2
            let isBelow = unsafe head(first &+ half) < wanted
            first = isBelow ? first &+ half &+ 1 : first
            length = isBelow ? length &- half &- 1 : half
        }
        return first
    }

    /// Index of the entry whose key is the 8-byte `object`, or where it would stand.
    @inline(__always)
    func lowerBound(object: ObjectID) -> (index: Int, isEqual: Bool) {
        let wanted = object.rawValue
        let dense = unsafe wanted &- denseFirst
        if unsafe dense < denseCount { return (Int(truncatingIfNeeded: dense), true) }
        guard unsafe count > 0 else { return (0, false) }
        // IDs given out in a row: the place follows from the first one.
        let guess = wanted &- (unsafe head(0))
        if unsafe guess < UInt64(count), unsafe head(Int(guess)) == wanted {
            let index = Int(guess)
            // Keys that are not 8 bytes long stand in front of, or after, an equal head.
            if unsafe keyLength(index) == 8 { return (index, true) }
        }
        var index = unsafe firstSlot(notBelow: wanted)
        while unsafe index < count && head(index) == wanted && keyLength(index) < 8 { index += 1 }
        return (index, unsafe index < count && head(index) == wanted && keyLength(index) == 8)
    }

    /// The last object of a leaf of rows, 0 where there is none.
    @inline(__always) var lastObject: UInt64 {
        if unsafe denseCount > 0 { return unsafe denseFirst &+ denseCount &- 1 }
        return unsafe count == 0 ? 0 : head(count - 1)
    }

    /// Index of the child that holds `key`: the last one whose lower bound is not above it.
    func childIndex(for key: UnsafeRawBufferPointer) -> Int {
        let (index, isEqual) = unsafe lowerBound(key)
        return isEqual ? index : max(index - 1, 0)
    }

    /// Index of the child that holds the 8-byte `object`: the last one whose head is not above it.
    /// Of a separator of at most 8 bytes the head says it all.
    @inline(__always)
    func childIndex(object: ObjectID) -> Int {
        let wanted = object.rawValue
        if unsafe slope > 0 {
            if unsafe wanted < denseFirst { return 0 }
            let last = unsafe count &- 1
            let distance = unsafe Double(Int64(bitPattern: wanted &- denseFirst))
            var index = unsafe 1 &+ Int(min(max(distance * slope, 0), Double(last &- 1)))
            for _ in unsafe 0..<Self.guessSteps {
                if unsafe head(index) > wanted {
                    index &-= 1
                } else if unsafe index < last && head(index &+ 1) <= wanted {
                    index &+= 1
                } else {
                    return index
                }
            }
        }
        return unsafe max((wanted == .max ? count : firstSlot(notBelow: wanted + 1)) - 1, 0)
    }

    /// Steps from a wrong guess. In a tree of other IDs they are in vain.
    private static let guessSteps = 3

    /// Sees how the separators of a node that stays as it is lie: IDs given out in a row fill
    /// leaves evenly, so that the place among the children follows from the ID, or nearly.
    mutating func lookAtSeparators() {
        guard unsafe count >= Self.guessedMin else { return }
        let (low, high) = unsafe (head(1), head(count &- 1))
        guard low < high else { return }
        unsafe denseFirst = low
        unsafe slope = Double(count &- 2) / Double(high &- low)
    }

    /// Children from which on a place among them is guessed.
    private static let guessedMin = 8

    /// The child at `index` of an inner node: the node's own words, to be read at once.
    @inline(__always)
    func child(_ index: Int) -> UnsafeMutablePointer<NodePointer> {
        precondition(unsafe index >= 0 && index < childCount, "a child of the node")
        guard let children = unsafe children else { preconditionFailure("a leaf has no children") }
        return unsafe children + index
    }

    /// Entries below the children in front of `index`.
    func rows(before index: Int) -> UInt64 {
        precondition(unsafe index >= 0 && index <= childCount, "children of the node")
        guard let children = unsafe children else { return 0 }
        var sum: UInt64 = 0
        var left = 0
        while left < index {
            unsafe sum &+= children[left].rows
            left &+= 1
        }
        return sum
    }

    /// The same, of a node with `all` entries below it: counted from the nearer end.
    @inline(__always)
    func rows(before index: Int, of all: UInt64) -> UInt64 {
        guard unsafe index &* 2 > childCount, let children = unsafe children else {
            return unsafe rows(before: index)
        }
        var left = all
        var place = unsafe childCount
        while place > index {
            place &-= 1
            unsafe left &-= children[place].rows
        }
        return left
    }

    // MARK: Rows

    /// Lends a row entry: the commit that wrote the row and the row's bytes. Nil when the entry is
    /// not a row, or cannot be unpacked.
    @inline(__always)
    func withRow<R>(
        _ index: Int,
        _ body: (CommitNumber, UnsafeRawBufferPointer) throws(EngineError) -> R
    ) throws(EngineError) -> R? {
        if let packed = unsafe packed {
            precondition(unsafe index >= 0 && index < count, "an entry of the node")
            if let place = unsafe packedRow(index) {
                return unsafe try Self.withRow(place, of: packed, body)
            }
        }
        guard let (version, bytes) = unsafe row(index) else { return nil }
        return unsafe try body(version, bytes)
    }

    /// The row is unpacked into memory of this call: on the stack if it is short.
    @inline(never)
    private static func withRow<R>(
        _ index: Int,
        of packed: UnsafePointer<PackedLeaf>,
        _ body: (CommitNumber, UnsafeRawBufferPointer) throws(EngineError) -> R
    ) throws(EngineError) -> R? {
        unsafe packed.pointee.foresee(index)
        let room = unsafe packed.pointee.rowBytesMax + PackedLeaf.padding
        let version = CommitNumber(unsafe packed.pointee.version(index))
        let result = unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { memory in
            Result<R?, EngineError> { () throws(EngineError) in
                guard let start = memory.baseAddress,
                    let count = unsafe packed.pointee.unpackRow(index, into: start)
                else { return nil }
                return unsafe try body(
                    version,
                    UnsafeRawBufferPointer(start: start, count: count)
                )
            }
        }
        return try result.get()
    }

    /// A row, copied. As `withRow`.
    func storedRow(_ index: Int) -> StoredRow? {
        // Copying throws nothing.
        let row: StoredRow?? = unsafe try? withRow(index) { version, bytes in
            unsafe StoredRow(version: version, bytes: [UInt8](bytes))
        }
        return row ?? nil
    }

    /// An entry's value, copied. A row that cannot be unpacked is an empty value, which no row is.
    func value(_ index: Int) -> [UInt8] {
        guard unsafe packedRow(index) != nil else { return unsafe [UInt8](valueBytes(index)) }
        guard let row = unsafe storedRow(index) else { return [] }
        return EngineKeys.rowValue(row.version, row.bytes)
    }

    /// Whether each entry has a value; not of a leaf with packed rows.
    var hasValues: Bool { unsafe (0..<count).allSatisfy { unsafe valueLength($0) > 0 } }

    /// A row entry that is not packed: the commit that wrote the row (LEB128 in front)
    /// and the row's bytes. Nil when the entry is not a row.
    @inline(__always)
    private func row(_ index: Int) -> (version: CommitNumber, bytes: UnsafeRawBufferPointer)? {
        precondition(unsafe index >= 0 && index < count, "an entry of the node")
        let bytes = unsafe valueBytes(index)
        var version: UInt64 = 0
        var position = 0
        while position < bytes.count && position < 10 {
            let byte = unsafe bytes[position]
            if position == 9 && byte > 1 { return nil }
            version |= UInt64(byte & 0x7f) << UInt64(7 * position)
            position += 1
            if byte & 0x80 == 0 {
                return unsafe (
                    CommitNumber(version), UnsafeRawBufferPointer(rebasing: bytes[position...])
                )
            }
        }
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// As bytes, whose `span` can be lent: a block is raw memory, so bytes are bytes.
    @inline(__always) var typed: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(
            start: baseAddress?.assumingMemoryBound(to: UInt8.self),
            count: count
        )
    }
}
