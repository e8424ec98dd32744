// FENCE: reading a node by whoever holds a reference: `NodeView`'s searches, checked, and lent
// bytes.
//
// Invariants
// - Every index is compared with the count before a slot is read.
// - Lent bytes are a published node's own, or a copy: a closure could change what it is lent.

internal import VarveBase
internal import VarveFormat

extension TreeNode {
    // MARK: Search and entries: `NodeView`'s, for whoever holds a reference

    /// Index of the first entry whose key is not below `key`, and whether it is equal.
    /// - Complexity: O(log count).
    func lowerBound(_ key: [UInt8]) -> (index: Int, isEqual: Bool) {
        // The array's memory lives for the call; nothing keeps the pointer.
        unsafe key.withUnsafeBytes { raw in unsafe view.lowerBound(raw) }
    }
    /// As above, for a key that stands in `bytes`.
    func lowerBound(
        _ bytes: [UInt8],
        _ key: Range<Int>
    ) -> (index: Int, isEqual: Bool) {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe view.lowerBound(UnsafeRawBufferPointer(rebasing: raw[key]))
        }
    }
    /// Index of the entry whose key is the 8-byte `object`, or where it would stand.
    func lowerBound(object: ObjectID) -> (index: Int, isEqual: Bool) {
        unsafe view.lowerBound(object: object)
    }
    /// Whether an object stands between the first and the last row of this leaf, both included.
    func spans(_ object: ObjectID) -> Bool {
        guard count > 0 else { return false }
        let (first, last) = unsafe (view.head(0), view.head(count - 1))
        // A key that no object has, of fewer bytes, has the head of one after it.
        return first <= object.rawValue
            && (object.rawValue < last || object.rawValue == last && keyCount(count - 1) >= 8)
    }
    /// Lends the row of an entry, without its version, while nobody changes the node. Nil when it
    /// has no version.
    func withRow<R>(
        _ index: Int,
        _ body: (Span<UInt8>) throws(EngineError) -> R
    ) throws(EngineError) -> R? {
        check(index)
        return unsafe try view.withRow(index) { _, bytes throws(EngineError) in
            unsafe try body(bytes.typed.span)
        }
    }
    /// Index of the child that holds `key`: the last one whose lower bound is not above it.
    func childIndex(for key: [UInt8]) -> Int {
        unsafe key.withUnsafeBytes { raw in unsafe view.childIndex(for: raw) }
    }
    /// As above, for a key that stands in `bytes`.
    func childIndex(for bytes: [UInt8], _ key: Range<Int>) -> Int {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe view.childIndex(for: UnsafeRawBufferPointer(rebasing: raw[key]))
        }
    }
    /// Index of the child that holds the 8-byte `object`.
    func childIndex(object: ObjectID) -> Int { unsafe view.childIndex(object: object) }

    /// The key of one entry, copied.
    func key(_ index: Int) -> [UInt8] {
        check(index)
        return unsafe [UInt8](view.keyBytes(index))
    }
    /// The value of one entry, copied.
    func value(_ index: Int) -> [UInt8] {
        check(index)
        return unsafe view.value(index)
    }
    /// Length of one key.
    func keyCount(_ index: Int) -> Int {
        check(index)
        return unsafe view.keyLength(index)
    }
    /// First 8 bytes of one key as a big-endian number, zeros after a shorter key.
    func keyHead(_ index: Int) -> UInt64 {
        check(index)
        return unsafe view.head(index)
    }
    /// Length of one value; not of a row that is packed.
    func valueCount(_ index: Int) -> Int {
        check(index)
        return unsafe view.valueLength(index)
    }
    /// A row entry, copied. Nil when the entry is not a row.
    func row(_ index: Int) -> StoredRow? {
        check(index)
        return unsafe view.storedRow(index)
    }
    /// The last 8 bytes of a key as an object ID; nil when the key is shorter.
    func trailingObjectID(_ index: Int) -> ObjectID? {
        check(index)
        let key = unsafe view.keyBytes(index)
        guard key.count >= 8 else { return nil }
        let raw = unsafe key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self)
        return ObjectID(UInt64(bigEndian: raw))
    }
    /// Orders one entry's key against `other` (memcmp, shorter first): below 0, 0, above 0.
    func compareKey(_ index: Int, with other: [UInt8]) -> Int {
        check(index)
        return unsafe other.withUnsafeBytes { raw in
            unsafe NodeView.compare(view.keyBytes(index), raw)
        }
    }
    /// As above, for a key that stands in `bytes`.
    func compareKey(_ index: Int, with bytes: [UInt8], _ key: Range<Int>) -> Int {
        check(index)
        return unsafe bytes.withUnsafeBytes { raw in
            unsafe NodeView.compare(
                view.keyBytes(index),
                UnsafeRawBufferPointer(rebasing: raw[key])
            )
        }
    }
    /// As above, for the key of an entry of another node.
    func compareKey(_ index: Int, with other: TreeNode, at place: Int) -> Int {
        check(index)
        other.check(place)
        return unsafe NodeView.compare(view.keyBytes(index), other.view.keyBytes(place))
    }
    /// Whether one entry's key begins with `prefix`.
    func keyHasPrefix(_ index: Int, _ prefix: [UInt8]) -> Bool {
        check(index)
        let key = unsafe view.keyBytes(index)
        guard key.count >= prefix.count else { return false }
        return unsafe prefix.withUnsafeBytes { raw in
            unsafe NodeView.compare(
                UnsafeRawBufferPointer(rebasing: key[0..<raw.count]),
                raw
            ) == 0
        }
    }
    /// Appends the object IDs at the ends of the keys from `first` up to `last`. False when a key
    /// is too short for one.
    func appendObjectIDs(from first: Int, to last: Int, into list: inout [ObjectID]) -> Bool {
        precondition(first <= last && last <= count)
        // Most lists end in the leaf that they begin in.
        if list.isEmpty { list.reserveCapacity(last - first) }
        for index in first..<last {
            guard let object = trailingObjectID(index) else { return false }
            list.append(object)
        }
        return true
    }
    /// Entries below the children in front of `index`.
    func rows(before index: Int) -> UInt64 { unsafe view.rows(before: index) }
    /// Index of the child that holds the entry which `position` entries precede, and how many of
    /// that child's entries do.
    func childIndex(position left: inout UInt64) -> Int {
        let last = unsafe view.childCount - 1
        var index = 0
        while index < last {
            let rows = unsafe view.child(index).pointee.rows
            if rows > left { break }
            left -= rows
            index += 1
        }
        return index
    }

    // MARK: Lending. `copies` unless the node is published: `body` could change it otherwise.

    func withKey(_ index: Int, copies: Bool, _ body: (Span<UInt8>) -> Void) {
        check(index)
        if copies {
            let key = key(index)
            body(key.span)
        } else {
            unsafe body(view.keyBytes(index).typed.span)
        }
    }
    func withValue(_ index: Int, copies: Bool, _ body: (Span<UInt8>) -> Void) {
        check(index)
        if copies || hasPackedRows {
            let value = value(index)
            body(value.span)
        } else {
            unsafe body(view.valueBytes(index).typed.span)
        }
    }
    /// False when the entry is not a row.
    func withRow(_ index: Int, copies: Bool, _ body: (CommitNumber, Span<UInt8>) -> Void) -> Bool {
        check(index)
        // Nothing throws in there.
        let found: Void?? = unsafe try? view.withRow(index) { version, bytes in
            if copies {
                let copy = unsafe [UInt8](bytes)
                body(version, copy.span)
            } else {
                unsafe body(version, bytes.typed.span)
            }
        }
        return found.flatMap { $0 } != nil
    }

    enum VisitEnd {
        case atBound
        case enough(Int)
        case damaged(isKey: Bool)
    }

    /// Lends the rows from `first` up to `bound`, or down to it, without it; those of a packed leaf
    /// as `scan` reads them.
    func visitRows(
        from first: Int,
        to bound: Int,
        step: Int,
        copies: Bool,
        _ scan: LeafScan,
        _ many: NumbersBody?,
        _ body: (ObjectID, CommitNumber, Span<UInt8>, Bool) -> Bool
    ) -> VisitEnd {
        var index = first
        while index != bound {
            // A transaction's own leaf may change meanwhile.
            if !copies || isPacked, let packed = unsafe view.packed,
                let row = unsafe view.packedRow(index)
            {
                // As many as lie in the packed leaf one after another, in the same direction.
                let rows = packedRun(from: index, to: bound, step)
                let end = unsafe scan.visit(packed, from: row, to: row + rows * step, many, body)
                switch end {
                case .atBound: index += rows * step
                case .enough(let last): return .enough(index + last - row)
                case .damaged: return end
                }
                continue
            }
            guard let object = trailingObjectID(index) else { return .damaged(isKey: true) }
            var goesOn = false
            let isRow = withRow(index, copies: copies) { version, row in
                goesOn = body(object, version, row, false)
            }
            if !isRow { return .damaged(isKey: false) }
            if !goesOn { return .enough(index) }
            index += step
        }
        return .atBound
    }
    /// How many entries from `first` on, which is a packed row, are rows that lie one after another
    /// in their packed leaf.
    private func packedRun(from first: Int, to bound: Int, _ step: Int) -> Int {
        if isPacked { return abs(bound - first) }
        var (index, rows) = (first, 1)
        while index + step != bound, let row = unsafe view.packedRow(index),
            unsafe view.packedRow(index + step) == row + step
        {
            index += step
            rows += 1
        }
        return rows
    }
    /// Length of what the first and the last key begin with in common.
    func commonPrefixCount() -> Int {
        guard count > 0 else { return 0 }
        let first = unsafe view.keyBytes(0)
        let last = unsafe view.keyBytes(count - 1)
        var length = 0
        while length < first.count && length < last.count {
            guard unsafe first[length] == last[length] else { break }
            length += 1
        }
        return length
    }
}

extension TreeNode {
    // MARK: Invariants

    /// Traps where the node is not what `NodeView` and this file say of every node, whatever the
    /// bytes were that it was made of.
    /// - Complexity: O(bytes of keys + children).
    func check() {
        if isPacked { return checkPacked() }
        precondition(
            unsafe count * Self.slotSize <= heapStart && heapStart <= capacity,
            "slots end before keys and values"
        )
        var bytes = 0
        for index in 0..<count {
            let key = unsafe view.keyBytes(index)
            let isPackedRow = unsafe view.packedRow(index) != nil
            let value =
                unsafe isPackedRow
                ? UnsafeRawBufferPointer(start: nil, count: 0) : view.valueBytes(index)
            let isLong = key.count > Self.slotKeyMax
            precondition(
                unsafe holds(value) && (!isLong || holds(key)),
                "keys and values lie in the node's block"
            )
            bytes += value.count + (isLong ? key.count : 0)
            precondition(
                unsafe view.head(index) == NodeView.head(of: key),
                "a slot begins with its key"
            )
            precondition(
                index == 0 || compareKey(index - 1, with: self, at: index) < 0,
                "keys of a node ascend"
            )
        }
        precondition(unsafe bytes == live, "a node knows the bytes of its keys and values")
        if hasPackedRows { checkEdited() }
        precondition(children.count == (isLeaf ? 0 : count), "an entry of an inner node is a child")
        for child in children {
            precondition(child.node != nil || child.address != nil, "a child is somewhere")
            guard let node = child.node else { continue }
            precondition(node.level == level - 1, "a child is one level below its parent")
            precondition(node.rows == child.rows, "a parent knows the rows below its children")
        }
    }

    private func checkPacked() {
        precondition(isLeaf && stamp == Self.cleanStamp, "only leaves of the file are packed")
        for index in 1..<max(count, 1) {
            precondition(
                unsafe view.head(index - 1) < view.head(index),
                "keys of a node ascend"
            )
        }
    }

    private func checkEdited() {
        precondition(isLeaf && basis?.leaf.isPacked == true, "an edited leaf keeps a packed one")
        var last = -1
        for index in 0..<count {
            precondition(keyCount(index) == Self.slotKeyMax, "keys of an edited leaf are objects")
            guard let row = unsafe view.packedRow(index) else { continue }
            precondition(
                unsafe row > last && row < view.packed?.pointee.count ?? 0
                    && view.packed?.pointee.object(row) == view.head(index),
                "rows that are still packed are those of their keys, in their order"
            )
            last = row
        }
    }

    /// Whether bytes are none, or lie where keys and values do.
    private func holds(_ part: UnsafeRawBufferPointer) -> Bool {
        guard part.count > 0, let first = part.baseAddress else { return true }
        // Not read: what is elsewhere may be nobody's.
        let start = unsafe UnsafeRawPointer(view.base).distance(to: first)
        return unsafe start >= heapStart && start + part.count <= capacity
    }
}
