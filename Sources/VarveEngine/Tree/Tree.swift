// FENCE: a B-tree as one commit sees it, and lookups in it, without references on the way down.
//
// Invariants
// - A tree is an immutable value: changing it makes a new root that shares what did not change.
// - All leaves are at the same depth; a child's level is its parent's minus 1; depth <= 16.
// - `rows` of a root and of every child pointer is the number of leaf entries below.
// - A descent is one operation of the node store, under a root that the caller holds: `NodeCache`
//   says why its nodes stay meanwhile. What outlives the operation is copied or has a reference.
// - Bytes are lent (`withRow` and the like) from published nodes only: nobody can change those. A
//   transaction's own nodes lend them to itself, to code that changes no node (`changeRow`).

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

/// A root as plain words. Valid while somebody holds the state or the editor that it is from.
@unsafe struct RootPointer {
    let id: TreeID
    let level: Int
    let child: NodePointer

    @inline(__always)
    init(_ id: TreeID, _ root: TreeRoot) {
        unsafe self.id = id
        unsafe level = root.level
        unsafe child = NodePointer(
            ChildPointer(node: root.node, address: root.address, rows: root.rows)
        )
    }

    @inline(__always) var isEmpty: Bool { unsafe child.node == nil && child.offset == 0 }
}

/// What a look at one row found.
enum RowVisit {
    case found
    case absent
    /// Its leaf would have to be read.
    case notInMemory
}

extension NodeCache {
    /// The node that a parent or a root names. Inside an operation only.
    @inline(__always)
    func node(
        _ pointer: NodePointer,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> Node {
        if let node = unsafe pointer.node { return unsafe node }
        return unsafe try borrow(pointer, tree: tree, level: level)
    }

    /// Leaves in a row, or IDs of one list, from which on what is read passes.
    static let passingMin = (leaves: 16, objects: 1024)

    /// The leaf that holds the row `object` if the tree has it; the tree is not empty. Inside an
    /// operation only. Nil, with `reads` false, when that would need a page that is not in memory.
    @inline(__always)
    func leaf(
        _ root: RootPointer,
        object: ObjectID,
        reads: Bool = true
    ) throws(EngineError) -> NodeView? {
        var end = UInt64.max
        return unsafe try leaf(root, object: object, reads: reads, passes: false, &end)
    }

    /// The same.
    ///
    /// - Parameters:
    ///   - passes: as in `borrow`.
    ///   - end: becomes the first object that is not below the separator after the leaf, if that
    ///     is lower.
    @inline(__always)
    func leaf(
        _ root: RootPointer,
        object: ObjectID,
        reads: Bool = true,
        passes: Bool,
        _ end: inout UInt64
    ) throws(EngineError) -> NodeView? {
        let id = unsafe root.id
        var level = unsafe root.level
        var pointer = unsafe root.child
        while true {
            let node: Node
            if let changed = unsafe pointer.node {
                unsafe node = changed
            } else {
                if let here = unsafe try findFitting(pointer, tree: id, level: level) {
                    unsafe node = here
                } else if reads {
                    unsafe node = try read(pointer, tree: id, level: level, passes: passes)
                } else {
                    return nil
                }
            }
            let view = unsafe node._withUnsafeGuaranteedRef { unsafe $0.view }
            if unsafe view.level == 0 { return unsafe view }
            let index = unsafe view.childIndex(object: object)
            // Of a separator the head says it all, as in `childIndex`.
            if unsafe index + 1 < view.count { end = unsafe min(end, view.head(index + 1)) }
            unsafe pointer = view.child(index).pointee
            level = unsafe view.level &- 1
        }
    }

    /// The leaf where `key` stands or would stand. As above.
    func leaf(_ root: RootPointer, key: UnsafeRawBufferPointer) throws(EngineError) -> NodeView {
        let id = unsafe root.id
        var level = unsafe root.level
        var pointer = unsafe root.child
        while true {
            let node = unsafe try node(pointer, tree: id, level: level)
            let view = unsafe node._withUnsafeGuaranteedRef { unsafe $0.view }
            if unsafe view.level == 0 { return unsafe view }
            unsafe pointer = view.child(view.childIndex(for: key)).pointee
            level = unsafe view.level &- 1
        }
    }

    /// Number of entries below `key`, through the row counts of inner nodes.
    func position(_ root: RootPointer, of key: [UInt8]) throws(EngineError) -> UInt64 {
        if unsafe root.isEmpty { return 0 }
        let found = unsafe key.withUnsafeBytes { key in
            Result { () throws(EngineError) -> UInt64 in
                try operation { () throws(EngineError) in
                    let id = unsafe root.id
                    var level = unsafe root.level
                    var pointer = unsafe root.child
                    var before: UInt64 = 0
                    while true {
                        let node = unsafe try node(pointer, tree: id, level: level)
                        let view = unsafe node._withUnsafeGuaranteedRef { unsafe $0.view }
                        if unsafe view.level == 0 {
                            return unsafe before &+ UInt64(view.lowerBound(key).index)
                        }
                        let index = unsafe view.childIndex(for: key)
                        before &+= unsafe view.rows(before: index, of: pointer.rows)
                        unsafe pointer = view.child(index).pointee
                        level = unsafe view.level &- 1
                    }
                }
            }
        }
        return try found.get()
    }

    /// Lends one row to `body`. The tree is published.
    @inline(__always)
    func visit(
        _ root: RootPointer,
        _ object: ObjectID,
        reads: Bool,
        _ body: (CommitNumber, Span<UInt8>) -> Void
    ) throws(EngineError) -> RowVisit {
        if unsafe root.isEmpty { return .absent }
        return try operation { () throws(EngineError) in
            guard let leaf = unsafe try leaf(root, object: object, reads: reads) else {
                return .notInMemory
            }
            let (index, isEqual) = unsafe leaf.lowerBound(object: object)
            guard isEqual else { return .absent }
            let found: Void? = unsafe try leaf.withRow(index) { version, bytes in
                unsafe body(version, bytes.typed.span)
            }
            guard found != nil else { throw unsafe Tree.noVersion(root.id) }
            return .found
        }
    }

    /// Lends the rows of ascending object IDs to `body`, with their positions in `objects`, until
    /// it says false. One operation per leaf.
    ///
    /// - Parameter passes: whether the list is one of many IDs, or a part of one.
    func visit(
        _ root: RootPointer,
        _ objects: [ObjectID],
        passes: Bool,
        _ body: (Int, CommitNumber, Span<UInt8>) -> Bool
    ) throws(EngineError) {
        if unsafe root.isEmpty { return }
        var position = 0
        while position < objects.count {
            let next = try operation { () throws(EngineError) -> Int in
                let object = objects[position]
                var end = UInt64.max
                guard let leaf = unsafe try leaf(root, object: object, passes: passes, &end) else {
                    preconditionFailure("a leaf was asked for")
                }
                return unsafe try visit(leaf, objects, from: position, end, root.id, body)
            }
            guard next > position else { return }
            position = next
        }
    }

    /// The part of `objects` that belongs into this leaf, which is what is below `end`; returns the
    /// first position after it, or `from` when `body` has had enough.
    private func visit(
        _ leaf: NodeView,
        _ objects: [ObjectID],
        from: Int,
        _ end: UInt64,
        _ id: TreeID,
        _ body: (Int, CommitNumber, Span<UInt8>) -> Bool
    ) throws(EngineError) -> Int {
        let count = unsafe leaf.count
        let last = unsafe leaf.lastObject
        var position = from
        var expected = 0
        repeat {
            let object = objects[position]
            if position > from {
                precondition(objects[position - 1] <= object, "object IDs must ascend")
                if object.rawValue > last {
                    if object.rawValue >= end { break }
                    // There is none, here or elsewhere: going down again would lead here.
                    position += 1
                    continue
                }
            }
            // Neighbours in the list are often neighbours in the leaf.
            let isExpected =
                unsafe expected < count && leaf.head(expected) == object.rawValue
                && leaf.keyLength(expected) == 8
            let (index, isEqual) =
                isExpected ? (expected, true) : unsafe leaf.lowerBound(object: object)
            if isEqual {
                let goesOn = unsafe try leaf.withRow(index) { version, bytes in
                    unsafe body(position, version, bytes.typed.span)
                }
                guard let goesOn else { throw Tree.noVersion(id) }
                guard goesOn else { return from }
                expected = index + 1
            }
            position += 1
        } while position < objects.count
        return position
    }
}

extension TreeTable {
    /// Lends one row of a published state to `body`.
    @inline(__always)
    func visit(
        _ tree: TreeID,
        _ object: ObjectID,
        _ nodes: NodeCache,
        reads: Bool,
        _ body: (CommitNumber, Span<UInt8>) -> Void
    ) throws(EngineError) -> RowVisit {
        guard let root = unsafe pointer(tree) else { return .absent }
        return unsafe try nodes.visit(root, object, reads: reads, body)
    }

    /// Number of entries of a published state's tree below `key`.
    func position(
        _ tree: TreeID,
        of key: [UInt8],
        _ nodes: NodeCache
    ) throws(EngineError) -> UInt64 {
        guard let root = unsafe pointer(tree) else { return 0 }
        return unsafe try nodes.position(root, of: key)
    }

    /// Asks the system for the pages of a short list of rows. What fails here fails whoever reads.
    func foresee(_ tree: TreeID, _ objects: [ObjectID], _ nodes: NodeCache) {
        guard let root = unsafe pointer(tree) else { return }
        unsafe try? nodes.foresee(root, objects)
    }

    /// Lends rows of a published state to `body`.
    func visit(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ nodes: NodeCache,
        passes: Bool,
        _ body: (Int, CommitNumber, Span<UInt8>) -> Bool
    ) throws(EngineError) {
        guard let root = unsafe pointer(tree) else { return }
        unsafe try nodes.visit(root, objects, passes: passes, body)
    }
}

/// One tree with the means to read it. Holds its root.
struct Tree: Sendable {
    static let depthMax = 16

    let id: TreeID
    let root: TreeRoot
    let loader: NodeCache
    /// Whether its nodes can never change: those of a snapshot.
    let isPublished: Bool

    init(id: TreeID, root: TreeRoot, loader: NodeCache, isPublished: Bool = false) {
        self.id = id
        self.root = root
        self.loader = loader
        self.isPublished = isPublished
    }

    private var pointer: RootPointer { unsafe RootPointer(id, root) }

    static func noVersion(_ id: TreeID) -> EngineError {
        .damaged("an entry of tree \(id.rawValue) has no row version")
    }

    // MARK: Nodes, with references

    func rootNode() throws(EngineError) -> TreeNode? {
        if let node = root.node { return node }
        guard let address = root.address else { return nil }
        return try loader.load(address, tree: id, level: root.level, rows: root.rows)
    }

    func child(of node: TreeNode, at index: Int) throws(EngineError) -> TreeNode {
        let pointer = unsafe node.view.child(index).pointee
        // The parent is held: a changed child is, too.
        if let child = unsafe pointer.node { return unsafe child.takeUnretainedValue() }
        return try loader.operation { () throws(EngineError) in
            unsafe try loader.borrow(pointer, tree: id, level: node.level - 1)
                .takeUnretainedValue()
        }
    }

    // MARK: Lookups

    /// The value of `key`, or nil.
    /// - Complexity: O(log n).
    func value(_ key: [UInt8]) throws(EngineError) -> [UInt8]? {
        let pointer = unsafe pointer
        if unsafe pointer.isEmpty { return nil }
        let found = unsafe key.withUnsafeBytes { key in
            Result { () throws(EngineError) -> [UInt8]? in
                try loader.operation { () throws(EngineError) in
                    let leaf = unsafe try loader.leaf(pointer, key: key)
                    let (index, isEqual) = unsafe leaf.lowerBound(key)
                    return isEqual ? unsafe leaf.value(index) : nil
                }
            }
        }
        return try found.get()
    }

    /// One row, copied, or nil.
    /// - Complexity: O(log n).
    func row(_ object: ObjectID) throws(EngineError) -> StoredRow? {
        var found: StoredRow?
        _ = unsafe try loader.visit(pointer, object, reads: true) { version, row in
            found = StoredRow(version: version, bytes: ByteReader.copy(row, 0..<row.count))
        }
        return found
    }

    /// Brings the leaf of an object into memory. Its last object; nil where there is none.
    func restoreLeaf(of object: ObjectID) throws(EngineError) -> ObjectID? {
        let pointer = unsafe pointer
        if unsafe pointer.isEmpty { return nil }
        return try loader.operation { () throws(EngineError) in
            guard let leaf = unsafe try loader.leaf(pointer, object: object),
                unsafe leaf.count > 0
            else { return nil }
            return unsafe ObjectID(leaf.head(leaf.count - 1))
        }
    }

    /// Brings the leaf of the entry at `index` into memory. The first entry after it that belongs
    /// into another leaf, as far as the leaf itself says.
    func restoreLeaf(of index: Int, _ sorted: PendingEntries) throws(EngineError) -> Int {
        let pointer = unsafe pointer
        if unsafe pointer.isEmpty { return sorted.count }
        let found = unsafe sorted.keyBytes.withUnsafeBytes { keys in
            Result { () throws(EngineError) -> Int in
                try loader.operation { () throws(EngineError) in
                    let key = unsafe UnsafeRawBufferPointer(rebasing: keys[sorted.keyRange(index)])
                    let leaf = unsafe try loader.leaf(pointer, key: key)
                    var next = index + 1
                    guard unsafe leaf.count > 0 else { return next }
                    let last = unsafe leaf.keyBytes(leaf.count - 1)
                    while next < sorted.count {
                        let key = unsafe UnsafeRawBufferPointer(
                            rebasing: keys[sorted.keyRange(next)]
                        )
                        if unsafe NodeView.compare(last, key) < 0 { break }
                        next += 1
                    }
                    return next
                }
            }
        }
        return try found.get()
    }

    /// Whether there is a row.
    /// - Complexity: O(log n).
    func contains(_ object: ObjectID) throws(EngineError) -> Bool {
        let pointer = unsafe pointer
        if unsafe pointer.isEmpty { return false }
        return try loader.operation { () throws(EngineError) in
            guard let leaf = unsafe try loader.leaf(pointer, object: object) else { return false }
            return unsafe leaf.lowerBound(object: object).isEqual
        }
    }

    /// Rows of ascending object IDs, copied, in one pass: IDs of one leaf share its descent.
    /// Positions without a row are left out. `body` changes no node.
    ///
    /// - Complexity: O(ids + leaves touched x depth).
    func rows(
        _ objects: [ObjectID],
        _ body: (Int, StoredRow) -> Void
    ) throws(EngineError) {
        unsafe try loader.visit(pointer, objects, passes: false) { position, version, row in
            body(
                position,
                StoredRow(version: version, bytes: ByteReader.copy(row, 0..<row.count))
            )
            return true
        }
    }

    /// Number of entries whose key is below `key`.
    /// - Complexity: O(log n), through the row counts of inner nodes.
    func position(of key: [UInt8]) throws(EngineError) -> UInt64 {
        unsafe try loader.position(pointer, of: key)
    }
}
