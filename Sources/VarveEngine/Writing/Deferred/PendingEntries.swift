// Index entries of one tree that wait to be put in place, in the order of their keys.
//
// Invariants
// - What is added later counts more: of several entries with one key the last one stands.
// - Keys lie in one block, in the order in which they came; an entry's start is its age.
//
// Why they wait: the keys of an index come in any order, and each would go down the tree alone and
// change another leaf. Sorted, all that belongs into one leaf gets there in one descent.

internal import VarveBase
internal import VarveFormat

struct PendingEntries {
    /// 16 bytes an entry.
    private struct Entry {
        /// The key's first 8 bytes, big-endian, zeros after a shorter one.
        var head: UInt64
        var start: UInt32
        var length: UInt16
        var removes: Bool
    }

    private var keys: [UInt8] = []
    private var entries: [Entry] = []
    private var isSorted = true

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Bytes of memory in use.
    var bytes: Int { keys.count + entries.count * Self.entryBytes }
    /// Bytes of memory that are held, used or not.
    var heldBytes: Int { keys.capacity + entries.capacity * Self.entryBytes }
    /// Bytes of an entry without its key.
    static var entryBytes: Int { MemoryLayout<Entry>.stride }

    /// Keeps no more memory than what waits needs, where that is little of it.
    mutating func endMemory() {
        if bytes >= heldBytes / 16 { return }
        // A copy of an array, or of all of a slice, would be the same memory.
        var (fewKeys, fewEntries): ([UInt8], [Entry]) = ([], [])
        fewKeys.append(contentsOf: keys)
        fewEntries.append(contentsOf: entries)
        (keys, entries) = (fewKeys, fewEntries)
    }

    /// Adds an entry that is to be put, or taken out.
    /// - Complexity: O(length of the key), amortised.
    mutating func add(_ key: [UInt8], removes: Bool) { add(key, key.indices, removes: removes) }

    /// The same, of a key that stands in `bytes`.
    mutating func add(_ bytes: [UInt8], _ key: Range<Int>, removes: Bool) {
        precondition(key.count <= Int(UInt16.max) && keys.count <= Int(UInt32.max) - key.count)
        let entry = Entry(
            head: ByteReader.keyHead(bytes, key),
            start: UInt32(keys.count),
            length: UInt16(key.count),
            removes: removes
        )
        ByteWriter.append(bytes, key, to: &keys)
        if isSorted, let last = entries.last { isSorted = isBelow(last, entry) }
        entries.append(entry)
    }

    /// Brings the entries into the order of their keys, equal keys by age.
    /// - Complexity: O(1) when they came in order; O(n) when those of one head did, as entries of
    ///   relationships do, or are few, or differ in the next 8 bytes; else O(n log n) for entries
    ///   that share 16.
    mutating func sort() {
        if isSorted { return }
        var sorted = entries
        entries = []
        if sorted.count < DigitSort.countMin {
            sorted.sort { isBelow($0, $1) }
        } else {
            DigitSort.sort(&sorted) { $0.head }
            sortRuns(&sorted)
        }
        entries = sorted
        isSorted = true
    }

    /// Sorts entries that have one head, where they are not in order yet.
    private func sortRuns(_ entries: inout [Entry]) {
        var start = 0
        while start < entries.count {
            var end = start + 1
            var isInOrder = true
            while end < entries.count, entries[end].head == entries[start].head {
                if !isBelow(entries[end - 1], entries[end]) { isInOrder = false }
                end += 1
            }
            if !isInOrder {
                if end - start < DigitSort.countMin {
                    entries[start..<end].sort { isBelow($0, $1) }
                } else {
                    sortBehindHead(&entries, start..<end)
                }
            }
            start = end
        }
    }

    /// Sorts entries that have one head by the 8 bytes behind it, then by the next 8: small
    /// integers, and texts that begin alike, are told apart there.
    private func sortBehindHead(_ entries: inout [Entry], _ range: Range<Int>) {
        let head = entries[range.lowerBound].head
        var part = Array(entries[range])
        for place in part.indices { part[place].head = number(of: part[place], behind: 8) }
        DigitSort.sort(&part) { $0.head }
        var start = 0
        while start < part.count {
            let behind = part[start].head
            var end = start + 1
            while end < part.count, part[end].head == behind { end += 1 }
            if end - start > 1 {
                // Two numbers are compared sooner than two keys.
                for place in start..<end { part[place].head = number(of: part[place], behind: 16) }
                part[start..<end].sort { isBelow($0, $1) }
            }
            start = end
        }
        for place in part.indices { part[place].head = head }
        entries.replaceSubrange(range, with: part)
    }

    /// 8 bytes of a key behind others, as a head is its first ones.
    private func number(of entry: Entry, behind count: Int) -> UInt64 {
        let start = min(count, Int(entry.length))
        return ByteReader.keyHead(keys, Int(entry.start) + start..<range(entry).upperBound)
    }

    /// Forgets all; keeps the memory when it is little.
    mutating func removeAll(keepsAll: Bool = false) {
        keys.removeAll(keepingCapacity: keepsAll || keys.count < 64 << 10)
        entries.removeAll(keepingCapacity: keepsAll || entries.count < 4 << 10)
        isSorted = true
    }

    @inline(__always) private func range(_ entry: Entry) -> Range<Int> {
        Int(entry.start)..<Int(entry.start) + Int(entry.length)
    }

    @inline(__always) private func isBelow(_ left: Entry, _ right: Entry) -> Bool {
        if left.head != right.head { return left.head < right.head }
        let order = ByteReader.compare(keys, range(left), keys, range(right))
        return order == 0 ? left.start < right.start : order < 0
    }

    // MARK: Sorted entries

    /// Whether the entry at `index` is to be taken out.
    func removes(_ index: Int) -> Bool { entries[index].removes }

    /// The first 8 bytes of the key at `index`, big-endian, zeros after a shorter one: where heads
    /// differ, keys are in their order.
    func head(_ index: Int) -> UInt64 { entries[index].head }

    /// Where the key at `index` stands in `bytes`.
    func keyRange(_ index: Int) -> Range<Int> { range(entries[index]) }

    /// All keys.
    var keyBytes: [UInt8] { keys }

    /// Whether a later entry has the same key.
    func isSuperseded(_ index: Int) -> Bool {
        guard index + 1 < entries.count, entries[index].head == entries[index + 1].head else {
            return false
        }
        return ByteReader.compare(keys, keyRange(index), keys, keyRange(index + 1)) == 0
    }
}

/// Pending entries of all indexes of a transaction.
struct PendingIndexes {
    private var lists: [(tree: TreeID, entries: PendingEntries)] = []
    /// Where the entry before went: rows give their entries in the same order each time.
    private var last = 0
    /// Bytes of memory that hold entries.
    private(set) var bytes = 0

    /// Trees with entries that wait, in the order in which they were met.
    var trees: [TreeID] { lists.filter { !$0.entries.isEmpty }.map(\.tree) }

    /// Bytes of those of one tree.
    func bytes(of tree: TreeID) -> Int {
        lists.first { $0.tree == tree }?.entries.bytes ?? 0
    }

    /// Adds derived keys, but for those that are among `others` as well.
    mutating func add(
        _ keys: borrowing EntryKeys,
        _ entries: Range<Int>,
        notIn others: Range<Int> = 0..<0,
        removes: Bool
    ) {
        for index in entries where !keys.contains(index, in: others) {
            let (place, key) = (place(of: keys.tree(index)), keys.key(index))
            last = place
            lists[place].entries.add(keys.bytes, key, removes: removes)
            bytes += key.count + PendingEntries.entryBytes
        }
    }

    private mutating func place(of tree: TreeID) -> Int {
        let next = last + 1 < lists.count ? last + 1 : 0
        if next < lists.count, lists[next].tree == tree { return next }
        if let place = lists.firstIndex(where: { $0.tree == tree }) { return place }
        lists.append((tree, PendingEntries()))
        return lists.count - 1
    }

    /// Takes what waits for one tree; nil when there is nothing.
    mutating func take(_ tree: TreeID) -> PendingEntries? {
        guard bytes > 0, let place = lists.firstIndex(where: { $0.tree == tree }),
            !lists[place].entries.isEmpty
        else { return nil }
        var taken = PendingEntries()
        swap(&taken, &lists[place].entries)
        bytes -= taken.bytes
        return taken
    }

    /// Memory to be used again.
    ///
    /// - Parameter keepsAll: whether as many entries are likely to come again; else much goes.
    mutating func giveBack(
        _ used: consuming PendingEntries,
        _ tree: TreeID,
        keepsAll: Bool = false
    ) {
        guard let place = lists.firstIndex(where: { $0.tree == tree }) else { return }
        used.removeAll(keepsAll: keepsAll)
        lists[place].entries = used
    }

    /// Ends what was kept where nothing waits, or little: nothing much came since the memory was
    /// given back.
    mutating func endMemory() {
        for place in lists.indices { lists[place].entries.endMemory() }
    }

    /// Bytes of memory that are held, used or not.
    var heldBytes: Int { lists.reduce(0) { $0 + $1.entries.heldBytes } }
}
