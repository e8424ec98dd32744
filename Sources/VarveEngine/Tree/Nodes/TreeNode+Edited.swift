// FENCE: leaves of which few rows were changed: the others stay packed where they are.
//
// Invariants
// - An edited leaf keeps the packed one that it was made of, which never changes. However often it
//   is changed, that is the same one: no row is looked for through several leaves.
// - What it says of its bytes is what they are once all rows are unpacked: splits and merges come
//   where they would come otherwise.
// - With more bytes of its own than are packed a copy is unpacked as a whole.
//
// Why: a save changes one row of a leaf, mostly. Unpacking all others for it was most of the save.

internal import VarveBase
internal import VarveFormat

/// What an edited leaf was made of.
final class LeafBasis: Sendable {
    /// A packed leaf.
    let leaf: TreeNode
    /// Its page; nil where that is not known: then the edited leaf is written as a whole.
    let address: PageAddress?

    init(leaf: TreeNode, address: PageAddress?) {
        precondition(leaf.isPacked, "an edited leaf is made of a packed one")
        (self.leaf, self.address) = (leaf, address)
    }
}

extension TreeNode {
    /// What an edited leaf was made of; nil for every other node.
    var basis: LeafBasis? {
        get { unsafe storedBasis }
        set { unsafe storedBasis = newValue }
    }

    /// About what a leaf's page has before it is compressed, in bytes.
    var pageBytes: Int {
        // Longer keys are among the live bytes.
        let isShort = count > 0 && keyCount(0) <= Self.slotKeyMax
        return liveBytes + count * ((isShort ? Self.slotKeyMax : 0) + Self.lengthBytes)
    }
    /// Whether the copy of a leaf that a compaction filled is to be split later than others.
    var isFilled: Bool {
        get { unsafe storedFilled }
        set { unsafe storedFilled = newValue }
    }

    /// Where the basis of an edited leaf is, if the leaf is to be written as its changes: while
    /// they are at most a fifth of its bytes, and it has at least half of what the basis has.
    var writableBasis: PageAddress? {
        guard let basis, let address = basis.address else { return nil }
        let isSmall = unsafe 4 * live <= packedLive
        let isMost = unsafe 2 * packedLive >= basis.leaf.packedLive
        return isSmall && isMost && count <= Int(UInt16.max) ? address : nil
    }

    /// Whether a copy that is to be changed should leave rows packed.
    var isWorthEditing: Bool { unsafe hasPackedRows && live <= packedLive }

    /// A copy that the transaction `stamp` may change, with room for `slack` bytes more, of a leaf
    /// with packed rows.
    /// - Complexity: O(entries + bytes of rows that are not packed).
    ///
    /// - Parameter address: where the page of `other` is, if it is packed.
    convenience init(
        editing other: TreeNode,
        at address: PageAddress?,
        stamp: UInt64,
        slack: Int
    ) {
        precondition(other.hasPackedRows, "rows that can stay packed")
        // What removed values left behind is copied along while it fits the slack.
        var heapBytes = unsafe other.isPacked ? 0 : other.capacity - other.heapStart
        let isTidied = unsafe heapBytes - other.live > slack
        if isTidied { unsafe heapBytes = other.live }
        let slotBytes = other.count * Self.slotSize
        self.init(
            stamp: stamp,
            level: 0,
            capacity: Self.roundedUp(slotBytes + heapBytes + slack)
        )
        let from = unsafe other.words
        if other.isPacked {
            basis = LeafBasis(leaf: other, address: address)
            for index in 0..<other.count {
                unsafe Self.setSlot(
                    words.base + index * Self.slotSize,
                    head: from.head(index),
                    key: (0, Self.slotKeyMax),
                    value: (index, Int(NodeView.packedValue))
                )
            }
        } else {
            basis = other.basis
            // Room for both was asked for: slots at the front, the rest at the back.
            unsafe words.base.copyMemory(from: from.base, byteCount: slotBytes)
            if !isTidied {
                unsafe heapStart = capacity - heapBytes
                unsafe (words.base + heapStart).copyMemory(
                    from: from.base + other.heapStart,
                    byteCount: heapBytes
                )
            }
        }
        unsafe words.packed = from.packed
        unsafe words.count = other.count
        unsafe live = other.live
        unsafe packedLive = other.packedLive
        if isTidied {
            unsafe takeValues(of: from)
        } else if !other.isPacked {
            // What stands at the back keeps its distance from the block's end.
            unsafe shiftOffsets(by: capacity - other.capacity)
        }
    }

    /// Copies the values that an edited leaf has itself, for slots that name them there.
    private func takeValues(of other: NodeView) {
        for index in 0..<count where unsafe other.packedRow(index) == nil {
            let value = unsafe other.valueBytes(index)
            // As many bytes as all of them have were asked for.
            unsafe heapStart -= value.count
            unsafe UnsafeMutableRawBufferPointer(start: words.base + heapStart, count: value.count)
                .copyMemory(from: value)
            unsafe Self.setSlot(
                words.base + index * Self.slotSize,
                head: other.head(index),
                key: (heapStart, Self.slotKeyMax),
                value: (heapStart, value.count)
            )
        }
    }

    /// Bytes that the value of a packed row has once it is unpacked.
    private func packedBytes(_ row: Int) -> Int {
        guard let leaf = unsafe words.packed else { return 0 }
        let room = unsafe leaf.pointee.rowBytesMax + PackedLeaf.padding
        return unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { memory in
            guard let start = memory.baseAddress,
                let count = unsafe leaf.pointee.unpackRow(row, into: start)
            else { return 0 }
            return unsafe ByteWriter.varintSize(leaf.pointee.version(row)) + count
        }
    }

    /// A row that was packed goes. A leaf from elsewhere may say less of its rows than they are.
    ///
    /// - Parameter known: bytes of the row without its version, of a row that was just read.
    func forgetPacked(_ row: Int, known: Int? = nil) {
        var bytes = 0
        if let known, let leaf = unsafe words.packed {
            bytes = unsafe ByteWriter.varintSize(leaf.pointee.version(row)) + known
        } else {
            bytes = packedBytes(row)
        }
        unsafe packedLive = max(0, packedLive - bytes)
    }

    /// Gives the entry of a packed row a value of its own.
    func replacePacked(_ row: Int, by value: [UInt8], at index: Int, known: Int? = nil) {
        forgetPacked(row, known: known)
        makeRoom(value.count)
        let start = unsafe heapStart - value.count
        // `makeRoom` left as many bytes free in front of `heapStart`.
        unsafe value.withUnsafeBytes { value in
            unsafe UnsafeMutableRawBufferPointer(start: words.base + start, count: value.count)
                .copyMemory(from: value)
        }
        unsafe Self.setSlot(
            words.base + index * Self.slotSize,
            head: words.head(index),
            key: (start, Self.slotKeyMax),
            value: (start, value.count)
        )
        unsafe heapStart = start
        unsafe live += value.count
    }

    /// Unpacks all rows.
    func unfold() {
        guard hasPackedRows else { return }
        precondition(!isPacked, "a packed leaf never changes")
        let whole = TreeNode(copying: self, stamp: Self.cleanStamp, slack: 0)
        // It ends with the block that was this node's.
        unsafe swap(&words, &whole.words)
        unsafe swap(&capacity, &whole.capacity)
        unsafe heapStart = whole.heapStart
        unsafe live = whole.live
        unsafe packedLive = 0
        basis = nil
    }

    // MARK: Pages

    /// The body of the page that an edited leaf is written as.
    ///
    /// - Parameter basis: the page that it changes.
    func editedBody(_ basis: PageAddress) -> [UInt8] {
        precondition(hasPackedRows && !isPacked, "a leaf with a basis")
        var gone: [Int] = []
        var objects: [UInt64] = []
        var lengths: [Int] = []
        var next = 0
        for index in 0..<count {
            if let row = unsafe view.packedRow(index) {
                gone.append(contentsOf: next..<row)
                next = row + 1
            } else {
                objects.append(unsafe view.head(index))
                lengths.append(unsafe view.valueLength(index))
            }
        }
        gone.append(contentsOf: next..<(self.basis?.leaf.count ?? next))
        var writer = unsafe ByteWriter(capacity: live + 8 * objects.count + 2 * gone.count + 16)
        unsafe EditedLeaf.append(
            basis: basis,
            keptBytes: packedLive,
            gone: gone,
            objects: objects,
            valueLengths: lengths,
            to: &writer
        )
        for index in 0..<count where unsafe view.packedRow(index) == nil {
            unsafe writer.bytes.append(contentsOf: view.valueBytes(index))
        }
        return writer.bytes
    }

    /// The node of a page of layout 2.
    ///
    /// - Parameters:
    ///   - changes: what the page says, its values lying in `bytes`.
    ///   - count: rows of the leaf.
    /// - Throws: `FormatError` where the changes do not fit the basis.
    /// - Complexity: O(rows + bytes of its own).
    static func edited(
        _ changes: EditedLeaf,
        _ bytes: [UInt8],
        count: Int,
        _ basis: LeafBasis,
        _ place: FormatPlace
    ) throws(FormatError) -> TreeNode {
        let leaf = basis.leaf
        let rows = leaf.count - changes.gone.count + changes.objects.count
        guard rows == count, changes.gone.last ?? 0 < leaf.count else {
            throw FormatError(
                place: place,
                field: "rows",
                found: "\(changes.gone.count) of \(leaf.count) gone, \(changes.objects.count) more",
                expected: "\(count) rows"
            )
        }
        guard unsafe changes.keptBytes <= leaf.packedLive else {
            throw FormatError(
                place: place,
                field: "kept bytes",
                found: "\(changes.keptBytes)",
                expected: "at most the \(leaf.liveBytes) of the basis"
            )
        }
        let own = changes.values.reduce(0) { $0 + $1.count }
        let node = TreeNode(
            stamp: cleanStamp,
            level: 0,
            capacity: roundedUp(count * slotSize + own)
        )
        unsafe node.words.packed = leaf.words.packed
        node.basis = basis
        unsafe node.packedLive = changes.keptBytes
        try node.merge(changes, bytes, place)
        return node
    }

    /// Fills the slots of a node that has room for them: rows of the basis and own ones, in order.
    private func merge(
        _ changes: EditedLeaf,
        _ bytes: [UInt8],
        _ place: FormatPlace
    ) throws(FormatError) {
        guard let leaf = basis?.leaf else { return }
        var (row, gone, own) = (0, 0, 0)
        while true {
            while gone < changes.gone.count, changes.gone[gone] == row {
                gone += 1
                row += 1
            }
            let isOwn = own < changes.objects.count
            if !isOwn, row == leaf.count { return }
            let slot = unsafe words.base + words.count * Self.slotSize
            let head = row < leaf.count ? unsafe leaf.words.head(row) : nil
            if isOwn, head.map({ changes.objects[own] < $0 }) ?? true {
                let value = changes.values[own]
                let start = unsafe heapStart - value.count
                // `own` values and a slot for each entry were asked for; ranges lie in `bytes`.
                unsafe bytes.withUnsafeBytes { raw in
                    unsafe UnsafeMutableRawBufferPointer(
                        start: words.base + start,
                        count: value.count
                    ).copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[value]))
                }
                unsafe Self.setSlot(
                    slot,
                    head: changes.objects[own],
                    key: (start, Self.slotKeyMax),
                    value: (start, value.count)
                )
                unsafe heapStart = start
                unsafe live += value.count
                own += 1
            } else if let head {
                guard !isOwn || changes.objects[own] != head else {
                    throw FormatError(
                        place: place,
                        field: "object",
                        found: "\(head) twice",
                        expected: "a row of the basis that is gone, or no other one"
                    )
                }
                unsafe Self.setSlot(
                    slot,
                    head: head,
                    key: (0, Self.slotKeyMax),
                    value: (row, Int(NodeView.packedValue))
                )
                row += 1
            }
            unsafe words.count += 1
        }
    }
}
