// Changed nodes become pages: for checkpoints, TREE commits and settles.
//
// Invariants
// - Children are written before their parents, so every address points down the file.
// - A node changed by many commits is written once.
// - Leaves are encoded by several threads where there are many; the bytes are those of one.
// - The clean state has the same contents as the one it was made from; the two share nothing that
//   changes.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct PageWriter {
    let commit: CommitNumber
    let nodes: NodeCache
    let flushBytes: Int
    /// Pages at or above this place are written again although they are in the file: a settle.
    let rewriteFrom: FileOffset?
    /// Changed nodes that are in the file already.
    let known: [ObjectIdentifier: PageAddress]
    /// Whether the nodes are for the node cache. What a large transaction writes on its way is not.
    let keepsNodes: Bool
    /// Threads that encode leaves.
    let threads: Int
    /// Prepared bytes that have to be left on a full disk; nil: what saves leave.
    let reserve: UInt64?
    /// What may go into the node cache once the batch is safely written.
    private(set) var written: [(PageAddress, TreeID, TreeNode)] = []
    /// What was written while nodes are not kept.
    private(set) var leaves = WrittenLeaves()
    /// Stored bytes of the pages that were written, now or before, and of those that they change.
    private(set) var pageBytes: UInt64 = 0

    init(
        commit: CommitNumber,
        nodes: NodeCache,
        flushBytes: Int,
        rewriteFrom: FileOffset? = nil,
        known: [ObjectIdentifier: PageAddress] = [:],
        keepsNodes: Bool = true,
        threads: Int = 1,
        reserve: UInt64? = nil
    ) {
        self.commit = commit
        self.nodes = nodes
        self.flushBytes = flushBytes
        self.rewriteFrom = rewriteFrom
        self.known = known
        self.keepsNodes = keepsNodes
        self.threads = threads
        self.reserve = reserve
    }

    /// Writes what is in memory only, and returns the state with addresses instead of nodes.
    mutating func write(
        _ state: StoreState,
        to log: inout LogWriter
    ) throws(EngineError) -> StoreState {
        var clean = state
        // Ascending by tree, so that equal states give equal files.
        for id in state.trees.keys.sorted() {
            guard let root = state.trees[id] else { continue }
            clean.trees[id] = try write(root, of: id, to: &log)
        }
        return clean
    }

    /// The roots of a clean state, for TREE and CKPT frames.
    static func roots(of state: StoreState) -> [StoredRoot] {
        state.trees.keys.sorted().map { id in
            guard let root = state.trees[id], let address = root.address else {
                preconditionFailure("a clean tree has an address")
            }
            return StoredRoot(
                tree: id,
                level: UInt8(root.level),
                address: address,
                rows: root.rows
            )
        }
    }

    private mutating func write(
        _ root: TreeRoot,
        of tree: TreeID,
        to log: inout LogWriter
    ) throws(EngineError) -> TreeRoot {
        let pointer = ChildPointer(node: root.node, address: root.address, rows: root.rows)
        let address = try write(pointer, of: tree, level: root.level, to: &log)
        return TreeRoot(node: nil, address: address, level: root.level, rows: root.rows)
    }

    /// The page of a child, written if it is in memory only, with everything below it.
    mutating func write(
        _ pointer: ChildPointer,
        of tree: TreeID,
        level: Int,
        to log: inout LogWriter
    ) throws(EngineError) -> PageAddress {
        let node: TreeNode
        if let changed = pointer.node {
            if let address = known[ObjectIdentifier(changed)] {
                pageBytes += knownBytes(changed)
                return address
            }
            node = changed
        } else {
            guard let address = pointer.address else {
                preconditionFailure("a child is in memory or in the file")
            }
            // Children lie below their parents: an old page has old pages only.
            guard let limit = rewriteFrom, address.offset >= limit else { return address }
            node = try nodes.load(address, tree: tree, level: level, rows: pointer.rows)
        }
        let encoding = encoding(tree, log.seed)
        if node.isLeaf { return try append(encoding.leaf(node), to: &log) }
        // Here with its changed children; its page names them by their places.
        if Invariants.areChecked { node.check() }
        let clean = TreeNode(copying: node, stamp: TreeNode.cleanStamp, slack: 0)
        var leaves = level == 1 ? encodeChangedLeaves(of: node, encoding)[...] : []
        for index in clean.children.indices {
            let child = node.children[index]
            let address: PageAddress
            if let leaf = leaves.first, leaf.source === child.node {
                leaves = leaves.dropFirst()
                address = try append(leaf, to: &log)
            } else {
                address = try write(child, of: tree, level: level - 1, to: &log)
            }
            clean.children[index] = ChildPointer(node: nil, address: address, rows: child.rows)
        }
        return try append(encoding.page(clean, of: node), to: &log)
    }

    // MARK: Encoding

    /// A page that has no place yet.
    private struct EncodedPage: Sendable {
        let tree: TreeID
        /// The node that was changed.
        let source: TreeNode
        /// The same, to stay in the node cache.
        let clean: TreeNode
        let frame: Frame.Prepared
        /// Of the page that it changes; 0: none.
        let basisBytes: UInt64
    }

    /// What makes pages of nodes: the costly part, without the log.
    private struct Encoding: Sendable {
        let tree: TreeID
        let commit: CommitNumber
        let seed: UInt64
        let keepsNodes: Bool
        let edits: Bool

        func leaf(_ node: TreeNode) -> EncodedPage {
            if node.stamp == TreeNode.cleanStamp || !keepsNodes { return page(node, of: node) }
            let stamp = TreeNode.cleanStamp
            let clean =
                edits && node.writableBasis != nil
                ? TreeNode(editing: node, at: nil, stamp: stamp, slack: 0)
                : TreeNode(copying: node, stamp: stamp, slack: 0)
            return page(clean, of: node)
        }

        func page(_ clean: TreeNode, of source: TreeNode) -> EncodedPage {
            let frame = PageCoding.frame(
                of: clean,
                tree: tree,
                commit: commit,
                seed: seed,
                edits: edits
            )
            let basis = edits ? clean.writableBasis : nil
            return EncodedPage(
                tree: tree,
                source: source,
                clean: clean,
                frame: frame,
                basisBytes: basis?.frameLength ?? 0
            )
        }
    }

    private func encoding(_ tree: TreeID, _ seed: UInt64) -> Encoding {
        Encoding(tree: tree, commit: commit, seed: seed, keepsNodes: keepsNodes, edits: edits)
    }

    /// Not in a settle: what a page changes may have to be written again, too.
    private var edits: Bool { nodes.writesEdits && rewriteFrom == nil }

    /// Fewer leaves than these are not worth a thread.
    private static let parallelLeavesMin = 32

    /// The changed leaves below a node, in their order, when there are many; else none. They fit
    /// into memory: one node names them all.
    private func encodeChangedLeaves(
        of node: TreeNode,
        _ encoding: Encoding
    ) -> [EncodedPage] {
        if threads < 2 || node.count < Self.parallelLeavesMin { return [] }
        let changed = node.children.compactMap { child in
            child.node.flatMap { known[ObjectIdentifier($0)] == nil ? $0 : nil }
        }
        if changed.count < Self.parallelLeavesMin { return [] }
        return BackgroundThread.map(changed, threads: threads) { encoding.leaf($0) }
    }

    /// Gives a page its place.
    private mutating func append(
        _ page: EncodedPage,
        to log: inout LogWriter
    ) throws(EngineError) -> PageAddress {
        let address = log.appendBody(page.frame)
        pageBytes += address.frameLength + page.basisBytes
        if keepsNodes {
            written.append((address, page.tree, page.clean))
        } else {
            leaves.first = min(leaves.first, address.offset)
            if page.basisBytes > 0 { leaves.edited.append((address.offset, page.basisBytes)) }
        }
        if log.bufferedBytes > flushBytes {
            try flush(&log)
        }
        return address
    }

    /// Bytes of a changed node that was written before, and of those below it.
    private func knownBytes(_ node: TreeNode) -> UInt64 {
        var bytes = known[ObjectIdentifier(node)]?.frameLength ?? 0
        if edits, let basis = node.writableBasis { bytes += basis.frameLength }
        for child in node.children {
            if let changed = child.node { bytes += knownBytes(changed) }
        }
        return bytes
    }

    /// Hands everything written so far to the system, and the nodes to the cache.
    private mutating func flush(_ log: inout LogWriter) throws(EngineError) {
        try log.makeRoom(leaving: reserve ?? log.options.tailReserve)
        do throws(IOError) { try log.flush() } catch { throw .io(error) }
        keepNodes()
        written.removeAll(keepingCapacity: true)
    }

    /// Gives the written nodes to the cache. To be called after a successful flush: a page must be
    /// readable before the cache may forget its node.
    func keepNodes() {
        for (address, tree, node) in written { nodes.insert(node, of: tree, at: address) }
    }
}
