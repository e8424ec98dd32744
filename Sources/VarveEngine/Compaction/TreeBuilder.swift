// A B-tree from entries in ascending order, bottom-up: full pages that go straight into a log.
//
// Invariants
// - Keys ascend. A page is written when it is full and never looked at again, so memory is one node
//   a level, and full leaves until there are enough for several threads to encode.
// - The bytes are the same however many threads there are.
// - Children are written before their parents, so every address points down the file.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct TreeBuilder {
    let tree: TreeID
    /// The commit that its pages name.
    let commit: CommitNumber
    /// Bytes of entries in a full leaf.
    let leafBytes: Int
    /// Weight of a full inner node.
    let innerWeight: Int
    /// The same for an inner node of few children (`TreeEditor.childrenMin`).
    let heavyWeight: Int

    private var leaf: TreeNode
    /// Bytes of its entries.
    private var leafSize = 0
    /// No key of the leaf being filled is below this, and every key before it is.
    private var leafLow: [UInt8] = []
    /// The inner node being filled on each level from 1 on, with the same bound.
    private var inner: [(node: TreeNode, low: [UInt8])] = []
    private(set) var rows: UInt64 = 0
    /// Full leaves that are not encoded yet, with their bounds.
    private var full: [(leaf: TreeNode, low: [UInt8])] = []
    /// Threads that encode leaves.
    let threads: Int
    /// How leaves of rows are packed; nil: they are not.
    let packing: LeafPacking?

    static let entriesMax = Int(UInt16.max)
    /// Leaves that several threads encode together.
    private static let leavesTogether = 32

    init(
        tree: TreeID,
        commit: CommitNumber,
        leafBytes: Int,
        innerWeight: Int,
        heavyWeight: Int? = nil,
        threads: Int = 1,
        packing: LeafPacking? = nil
    ) {
        self.threads = threads
        self.packing = packing
        self.tree = tree
        self.commit = commit
        self.leafBytes = leafBytes
        self.innerWeight = innerWeight
        self.heavyWeight = heavyWeight ?? innerWeight
        leaf = Self.emptyLeaf(leafBytes)
    }

    private static func emptyLeaf(_ bytes: Int) -> TreeNode {
        TreeNode(stamp: TreeNode.cleanStamp, level: 0, capacity: bytes + bytes / 2)
    }

    // MARK: Entries

    /// Appends every entry of a leaf of another tree.
    mutating func append(_ source: TreeNode, to log: inout LogWriter) {
        var first = 0
        while first < source.count {
            var last = first
            var bytes = leafSize
            while last < source.count, fits(bytes, source.entryBytes(last), last - first) {
                bytes += source.entryBytes(last)
                last += 1
            }
            if last == first {
                endLeaf(before: source.key(first), &log)
                continue
            }
            leaf.appendEntries(of: source, from: first, to: last)
            leafSize = bytes
            rows += UInt64(last - first)
            first = last
        }
    }

    /// Appends one entry.
    mutating func append(_ key: [UInt8], _ value: [UInt8], to log: inout LogWriter) {
        let size = key.count + value.count + TreeNode.lengthBytes
        if !fits(leafSize, size, 0) { endLeaf(before: key, &log) }
        leaf.insert(key, value, at: leaf.count)
        leafSize += size
        rows += 1
    }

    private func fits(_ bytes: Int, _ size: Int, _ more: Int) -> Bool {
        let count = leaf.count + more
        return count == 0 || (bytes + size <= leafBytes && count < Self.entriesMax)
    }

    /// Writes what is left; the root of the whole tree.
    mutating func finish(_ log: inout LogWriter) -> TreeRoot {
        if rows == 0 { return .empty }
        writeFull(&log)
        if inner.isEmpty {
            let address = write(leaf, &log)
            return TreeRoot(node: nil, address: address, level: 0, rows: rows)
        }
        push(ChildPointer(written: write(leaf, &log), rows: leaf.rows), leafLow, 1, &log)
        var level = 1
        while true {
            let (node, low) = inner[level - 1]
            if level == inner.count, node.count == 1 {
                let only = node.children[0]
                return TreeRoot(node: nil, address: only.address, level: level - 1, rows: rows)
            }
            push(ChildPointer(written: write(node, &log), rows: node.rows), low, level + 1, &log)
            level += 1
        }
    }

    // MARK: Pages

    private mutating func endLeaf(before next: [UInt8], _ log: inout LogWriter) {
        let last = leaf.key(leaf.count - 1)
        full.append((leaf, leafLow))
        leafLow = TreeNode.separator(left: last, right: next)
        leaf = Self.emptyLeaf(leafBytes)
        leafSize = 0
        if threads == 1 || full.count == Self.leavesTogether { writeFull(&log) }
    }

    /// Encodes and writes the leaves that are full.
    private mutating func writeFull(_ log: inout LogWriter) {
        let (tree, commit, seed, packing) = (tree, commit, log.seed, packing)
        let frames = BackgroundThread.map(
            full.map(\.leaf),
            threads: full.count < Self.leavesTogether ? 1 : threads
        ) { Self.frame(of: $0, tree, commit, seed, packing) }
        for ((leaf, low), frame) in zip(full, frames) {
            push(ChildPointer(written: log.appendBody(frame), rows: leaf.rows), low, 1, &log)
        }
        full.removeAll(keepingCapacity: true)
    }

    private mutating func push(
        _ child: ChildPointer,
        _ low: [UInt8],
        _ level: Int,
        _ log: inout LogWriter
    ) {
        if inner.count < level { inner.append((Self.emptyInner(level), low)) }
        let (full, fullLow) = inner[level - 1]
        let size = low.count + TreeNode.slotSize
        let weight = full.weight + size
        let isFull =
            full.count > TreeEditor.childrenMin ? weight > innerWeight : weight > heavyWeight
        if full.count > 3, isFull {
            let pointer = ChildPointer(written: write(full, &log), rows: full.rows)
            push(pointer, fullLow, level + 1, &log)
            inner[level - 1] = (Self.emptyInner(level), low)
        }
        let node = inner[level - 1].node
        node.insert(node.count == 0 ? [] : low, [], at: node.count)
        node.insertChild(child, at: node.children.count)
    }

    private static func emptyInner(_ level: Int) -> TreeNode {
        TreeNode(stamp: TreeNode.cleanStamp, level: level)
    }

    private func write(_ node: TreeNode, _ log: inout LogWriter) -> PageAddress {
        log.appendBody(Self.frame(of: node, tree, commit, log.seed, packing))
    }

    private static func frame(
        of node: TreeNode,
        _ tree: TreeID,
        _ commit: CommitNumber,
        _ seed: UInt64,
        _ packing: LeafPacking?
    ) -> Frame.Prepared {
        if let packed = packing?.frame(of: node, tree: tree, commit: commit, seed: seed) {
            return packed
        }
        return PageCoding.frame(of: node, tree: tree, commit: commit, seed: seed, edits: false)
    }
}

extension ChildPointer {
    fileprivate init(written address: PageAddress, rows: UInt64) {
        self.init(node: nil, address: address, rows: rows)
    }
}

extension TreeNode {
    /// What a page spends on the lengths of an entry.
    static let lengthBytes = 2

    fileprivate func entryBytes(_ index: Int) -> Int {
        keyCount(index) + valueCount(index) + Self.lengthBytes
    }
}
