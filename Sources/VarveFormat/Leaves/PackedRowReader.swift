// FENCE: rows of packed leaves, whole or some columns of them, in memory that is used again.
//
// Invariants
// - A row of some columns is a packed row (Format.md, "Rows"): columns that nobody asked for are
//   absent, others are what the whole row has. So whoever reads rows reads these.
// - Memory has room for the tags, 3 bytes for each column and 8 more, and behind them for a row's
//   bodies, its head, and 8 bytes more.
// - `begin` was called with the leaf before its rows are read.

/// Reads rows of packed leaves, one at a time.
@safe public final class PackedRowReader {
    /// What is done with a column of the leaf.
    private struct Step {
        let plan: LeafPlanWord
        /// Columns in front of it that nobody asked for.
        let absent: Int
        /// False: its bytes in the heap are passed over.
        let isRead: Bool
    }

    /// The columns that its rows have.
    public let columns: RowColumns
    private var steps: ContiguousArray<Step> = []
    private var usesHeap = false
    private var headLeast = 0
    private var limit = 0
    private var tagBytes = 0
    private var room = 0
    @unsafe private var memory: UnsafeMutableRawPointer?

    /// A reader of rows that have some columns.
    public init(_ columns: RowColumns) { self.columns = columns }

    deinit {
        // Allocated by `begin`.
        unsafe memory?.deallocate()
    }

    /// Gets ready for the rows of a leaf.
    /// - Complexity: O(columns).
    public func begin(_ leaf: UnsafePointer<PackedLeaf>) {
        let leaf = unsafe leaf.pointee
        steps.removeAll(keepingCapacity: true)
        if let end = columns.end {
            unsafe plan(leaf, min(end, leaf.columnCount))
        } else {
            tagBytes = 0
            unsafe limit = leaf.rowBytesMax
        }
        let needed = unsafe tagBytes + limit + PackedLeaf.padding
        if needed <= room { return }
        unsafe memory?.deallocate()
        // Freed here or by `deinit`.
        unsafe memory = .allocate(byteCount: needed, alignment: 8)
        room = needed
    }

    private func plan(_ leaf: PackedLeaf, _ end: Int) {
        var absent = 0
        var heapEnd = 0
        for column in 0..<end {
            let plan = unsafe leaf.plan(column)
            let isRead = columns.contains(column)
            let usesHeap = plan.usesHeap
            if isRead || usesHeap {
                steps.append(Step(plan: plan, absent: absent, isRead: isRead))
                if isRead { absent = 0 }
                if isRead, usesHeap { heapEnd = steps.count }
            }
            if !isRead { absent += 1 }
        }
        usesHeap = heapEnd > 0
        // Behind the last column that is read, and in front of it where nothing of the heap is.
        while let last = steps.last, !last.isRead { steps.removeLast() }
        if !usesHeap { steps.removeAll { !$0.isRead } }
        headLeast = ByteWriter.varintSize(UInt64(end)) + end
        unsafe limit = headLeast + leaf.rowBytesMax
        tagBytes = 3 * end + 8
    }

    /// A row of the leaf that was begun, until the next call; nil where its bytes are damaged.
    /// - Complexity: O(columns that are read or that lie in front of them in the heap).
    @inline(__always)
    public func row(_ index: Int, of leaf: UnsafePointer<PackedLeaf>) -> UnsafeRawBufferPointer? {
        guard let memory = unsafe memory else { return nil }
        let target = unsafe memory + tagBytes
        let count =
            unsafe columns.isAll
            ? leaf.pointee.unpackRow(index, into: target) : some(index, leaf, memory, target)
        guard let count else { return nil }
        // So many bytes were written.
        return unsafe UnsafeRawBufferPointer(start: target, count: count)
    }

    @inline(never)
    private func some(
        _ index: Int,
        _ leaf: UnsafePointer<PackedLeaf>,
        _ tags: UnsafeMutableRawPointer,
        _ target: UnsafeMutableRawPointer
    ) -> Int? {
        let tuple = unsafe leaf.pointee.tuples &+ index &* leaf.pointee.tupleBits
        var at = 0
        if usesHeap {
            at = unsafe leaf.pointee.heapStart(index, tuple) &+ leaf.pointee.versionBytes(tuple)
        }
        var writer = unsafe LeafRowWriter(target, tags, headLeast, limit)
        for step in steps {
            if !step.isRead {
                unsafe at &+= leaf.pointee.heapBytes(step.plan, tuple)
                continue
            }
            writer.absent(step.absent)
            guard unsafe leaf.pointee.cell(step.plan, tuple, &at, &writer) else { return nil }
        }
        return writer.finish()
    }
}
