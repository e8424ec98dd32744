// A B-tree as one commit sees it, and lookups in it.
//
// Invariants
// - A tree is an immutable value: changing it makes a new root that shares what did not change.
// - All leaves are at the same depth; a child's level is its parent's minus 1; depth <= 16.
// - `rows` of a root and of every child pointer is the number of leaf entries below.

internal import VarveBase
internal import VarveFormat

/// Root of one tree in one state of the store.
struct TreeRoot: Sendable {
    /// The root node when it was changed since the last checkpoint.
    var node: TreeNode?
    /// The root's page; nil for an empty tree and for a root in memory only.
    var address: PageAddress?
    /// Level of the root node; 0 when it is a leaf or the tree is empty.
    var level: Int
    /// Entries in the tree.
    var rows: UInt64

    static let empty = TreeRoot(node: nil, address: nil, level: 0, rows: 0)
}

/// Brings pages into memory. Implemented by `NodeStore`.
protocol NodeLoading: AnyObject, Sendable {
    /// The node of a page with `rows` entries below it, from the cache or the file.
    ///
    /// - Throws: `damaged` when the page is not what its parent says, `ioFailed`.
    func load(
        _ address: PageAddress,
        tree: TreeID,
        level: Int,
        rows: UInt64
    ) throws(EngineError) -> TreeNode
}

/// One tree with the means to read it.
struct Tree: Sendable {
    static let depthMax = 16

    let id: TreeID
    let root: TreeRoot
    let loader: any NodeLoading

    func rootNode() throws(EngineError) -> TreeNode? {
        if let node = root.node { return node }
        guard let address = root.address else { return nil }
        return try loader.load(address, tree: id, level: root.level, rows: root.rows)
    }

    func child(of node: TreeNode, at index: Int) throws(EngineError) -> TreeNode {
        let pointer = node.children[index]
        if let child = pointer.node { return child }
        guard let address = pointer.address else {
            preconditionFailure("a child is in memory or in the file")
        }
        return try loader.load(address, tree: id, level: node.level - 1, rows: pointer.rows)
    }

    /// The leaf that holds the row `object` if the tree has it.
    /// - Complexity: O(log n) comparisons, at most depth page reads.
    func leaf(object: ObjectID) throws(EngineError) -> TreeNode? {
        guard var node = try rootNode() else { return nil }
        while !node.isLeaf {
            node = try child(of: node, at: node.childIndex(object: object))
        }
        return node
    }

    /// The leaf where `key` stands or would stand.
    func leaf(key: [UInt8]) throws(EngineError) -> TreeNode? {
        guard var node = try rootNode() else { return nil }
        while !node.isLeaf {
            node = try child(of: node, at: node.childIndex(for: key))
        }
        return node
    }

    /// The value of `key`, or nil.
    /// - Complexity: O(log n).
    func value(_ key: [UInt8]) throws(EngineError) -> [UInt8]? {
        guard let leaf = try leaf(key: key) else { return nil }
        let (index, isEqual) = leaf.lowerBound(key)
        return isEqual ? leaf.value(index) : nil
    }

    /// One row, or nil.
    /// - Complexity: O(log n).
    func row(_ object: ObjectID) throws(EngineError) -> StoredRow? {
        guard let leaf = try leaf(object: object) else { return nil }
        return try row(object, in: leaf)
    }

    private func row(_ object: ObjectID, in leaf: TreeNode) throws(EngineError) -> StoredRow? {
        let (index, isEqual) = leaf.lowerBound(object: object)
        guard isEqual else { return nil }
        guard let row = leaf.row(index) else {
            throw .damaged("row \(object.rawValue) of tree \(id.rawValue) has no version")
        }
        return row
    }

    /// Rows of ascending object IDs in one pass: IDs of one leaf share its descent.
    ///
    /// - Complexity: O(ids + leaves touched x depth).
    func rows(
        _ objects: [ObjectID],
        _ body: (Int, StoredRow?) -> Void
    ) throws(EngineError) {
        var leaf: TreeNode?
        var lastOfLeaf: ObjectID?
        for (position, object) in objects.enumerated() {
            if position > 0 {
                precondition(objects[position - 1] <= object, "object IDs must ascend")
            }
            if leaf == nil || lastOfLeaf.map({ object > $0 }) ?? true {
                leaf = try self.leaf(object: object)
                lastOfLeaf = leaf.flatMap { node in
                    node.count == 0 ? nil : node.trailingObjectID(node.count - 1)
                }
            }
            body(
                position,
                try leaf.map { node throws(EngineError) in try row(object, in: node) } ?? nil
            )
        }
    }

    /// Number of entries whose key is below `key`.
    /// - Complexity: O(log n), through the row counts of inner nodes.
    func position(of key: [UInt8]) throws(EngineError) -> UInt64 {
        guard var node = try rootNode() else { return 0 }
        var before: UInt64 = 0
        while !node.isLeaf {
            let index = node.childIndex(for: key)
            for left in 0..<index { before += node.children[left].rows }
            node = try child(of: node, at: index)
        }
        return before + UInt64(node.lowerBound(key).index)
    }
}
