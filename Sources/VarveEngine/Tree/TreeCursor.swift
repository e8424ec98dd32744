// A place in a tree that can move to its neighbours.
//
// Invariants
// - A cursor reads one state of one tree; nothing that happens later changes what it sees.
// - It stands on an entry or nowhere. After an error it stands nowhere for ever.
// - Keys ascend from leaf to leaf as they do inside one, whatever the pages say.
// - It holds its leaf and the inner nodes above it by references, taken when it gets there: inside
//   a leaf it moves by counting. After many leaves in a row it holds some that come next, too
//   (`LeavesAhead`).
// - Bytes are lent to a closure from published nodes only. Those of a transaction are copied for
//   it: the closure could change them.

public import VarveBase
internal import VarveFormat

/// A place in one tree of one commit. Entries ascend by key (memcmp, shorter first).
public struct TreeCursor {
    private struct Step {
        var node: TreeNode
        var index: Int
    }

    private let tree: Tree
    /// The inner nodes above the leaf and the children taken.
    private var path: ContiguousArray<Step> = []
    private var leaf: TreeNode?
    private var ahead = LeavesAhead()
    private var index = 0
    private var isOnEntry = false
    private var failure: EngineError?

    init(_ tree: Tree) {
        self.tree = tree
    }

    /// Whether the cursor stands on an entry.
    public var isValid: Bool { isOnEntry }

    /// Number of entries in the tree. - Complexity: O(1).
    public var count: UInt64 { tree.root.rows }

    // MARK: Seeking

    /// Goes to the first entry whose key is not below `key`; false when there is none.
    /// - Complexity: O(log n).
    public mutating func seek(atOrAfter key: [UInt8]) throws(EngineError) -> Bool {
        guard try descend({ node in node.childIndex(for: key) }) else { return false }
        index = leaf?.lowerBound(key).index ?? 0
        return try landForward()
    }

    /// Goes to the last entry whose key is below `key`; false when there is none.
    /// - Complexity: O(log n).
    public mutating func seek(before key: [UInt8]) throws(EngineError) -> Bool {
        guard try descend({ node in node.childIndex(for: key) }) else { return false }
        index = (leaf?.lowerBound(key).index ?? 0) - 1
        return try landBackward()
    }

    /// Goes to the entry that `position` entries precede; false when there are not that many.
    /// - Complexity: O(log n), through the row counts of inner nodes.
    public mutating func seek(position: UInt64) throws(EngineError) -> Bool {
        guard position < tree.root.rows else {
            clear()
            return false
        }
        var left = position
        let found = try descend({ node in
            node.childIndex(position: &left)
        })
        guard found, let leaf else { return false }
        guard left < UInt64(leaf.count) else {
            throw fail(.damaged("row counts of tree \(tree.id.rawValue) do not add up"))
        }
        index = Int(left)
        isOnEntry = true
        return true
    }

    /// Goes to the first entry; false when the tree is empty.
    public mutating func first() throws(EngineError) -> Bool {
        guard try descend({ _ in 0 }) else { return false }
        index = 0
        return try landForward()
    }

    /// Goes to the last entry; false when the tree is empty.
    public mutating func last() throws(EngineError) -> Bool {
        guard try descend({ node in node.count - 1 }) else { return false }
        index = (leaf?.count ?? 0) - 1
        return try landBackward()
    }

    /// Goes to the next entry; false, and nowhere, after the last one.
    /// - Complexity: O(1) amortised.
    public mutating func next() throws(EngineError) -> Bool {
        guard isOnEntry, let leaf else { return false }
        index += 1
        if index < leaf.count { return true }
        return try landForward()
    }

    /// Goes to the entry before; false, and nowhere, in front of the first one.
    /// - Complexity: O(1) amortised.
    public mutating func previous() throws(EngineError) -> Bool {
        guard isOnEntry else { return false }
        index -= 1
        if index >= 0 { return true }
        return try landBackward()
    }

    // MARK: The entry

    /// The entry's key, copied. The cursor must stand on an entry.
    public var key: [UInt8] { current.key(index) }
    /// The entry's value, copied. The cursor must stand on an entry.
    public var value: [UInt8] { current.value(index) }

    /// The entry's row with its version, copied; only in an entity's tree.
    public func row() throws(EngineError) -> StoredRow {
        guard let row = current.row(index) else { throw Tree.noVersion(tree.id) }
        return row
    }

    /// Lends the entry's key. - Complexity: O(1).
    public func withKey(_ body: (Span<UInt8>) -> Void) {
        current.withKey(index, copies: !tree.isPublished, body)
    }

    /// Lends the entry's value. - Complexity: O(1).
    public func withValue(_ body: (Span<UInt8>) -> Void) {
        current.withValue(index, copies: !tree.isPublished, body)
    }

    /// Lends the entry's row with its version; only in an entity's tree. - Complexity: O(1).
    public func withRow(_ body: (CommitNumber, Span<UInt8>) -> Void) throws(EngineError) {
        guard current.withRow(index, copies: !tree.isPublished, body) else {
            throw Tree.noVersion(tree.id)
        }
    }

    /// The last 8 bytes of the key as an object ID.
    public func trailingObjectID() throws(EngineError) -> ObjectID {
        guard let object = current.trailingObjectID(index) else { throw shortKey }
        return object
    }

    private var shortKey: EngineError {
        .damaged("a key of tree \(tree.id.rawValue) is too short for an object ID")
    }

    /// Orders the entry's key against `other`: below 0, 0, above 0.
    public func compareKey(with other: [UInt8]) -> Int {
        current.compareKey(index, with: other)
    }

    /// Whether the entry's key begins with `prefix`.
    public func keyHasPrefix(_ prefix: [UInt8]) -> Bool {
        current.keyHasPrefix(index, prefix)
    }

    /// Number of entries before this one.
    /// - Complexity: O(depth x fan-out).
    public var position: UInt64 {
        precondition(isOnEntry, "the cursor stands on no entry")
        var before = UInt64(index)
        for step in path { before &+= step.node.rows(before: step.index) }
        return before
    }

    /// Stored bytes and rows of the page of the leaf, with that which it changes; nil where there
    /// is none above it that says so, or the leaf is not in the file.
    var leafPage: (bytes: Int, rows: Int)? {
        guard isOnEntry, let step = path.last,
            let address = step.node.child(step.index).address
        else { return nil }
        let basis = current.basis?.address?.storedLength ?? 0
        return (Int(address.storedLength) + Int(basis), current.count)
    }

    /// Appends the object IDs at the ends of up to `limit` keys from here on (`isForward`) or from
    /// here back, and goes after them. Stops early in front of a key that reaches `end`:
    /// forward, a key not below `end`; backward, a key below `end`.
    ///
    /// A leaf at a time, with no allocation but the list's: the way to read an index.
    ///
    /// - Complexity: O(number of IDs).
    /// - Returns: how many IDs were appended.
    public mutating func takeObjectIDs(
        limit: Int,
        isForward: Bool,
        end: [UInt8]?,
        into list: inout [ObjectID]
    ) throws(EngineError) -> Int {
        var taken = 0
        while isOnEntry && taken < limit {
            let node = current
            if isForward {
                let full = index + min(node.count - index, limit - taken)
                var stop = full
                if let end, stop > index, node.compareKey(stop - 1, with: end) >= 0 {
                    stop = max(index, node.lowerBound(end).index)
                }
                let reachedEnd = stop < full
                guard node.appendObjectIDs(from: index, to: stop, into: &list) else {
                    throw fail(shortKey)
                }
                taken += stop - index
                index = stop
                if reachedEnd {
                    isOnEntry = false
                    return taken
                }
                _ = try landForward()
            } else {
                if let end, node.compareKey(index, with: end) < 0 {
                    isOnEntry = false
                    return taken
                }
                guard let object = node.trailingObjectID(index) else { throw fail(shortKey) }
                list.append(object)
                taken += 1
                index -= 1
                _ = try landBackward()
            }
        }
        return taken
    }

    /// Lends the rows of an entity's tree to `body`, from here on (`isForward`) or from here back,
    /// until it says false, or in front of a key that reaches `end` as in `takeObjectIDs`. The
    /// cursor then stands on the row at which it stopped, or nowhere.
    ///
    /// A leaf at a time, with neither an allocation nor a reference per row: the way to scan.
    ///
    /// - Complexity: O(number of rows).
    public mutating func visitRows(
        isForward: Bool = true,
        end: [UInt8]? = nil,
        _ body: (ObjectID, CommitNumber, Span<UInt8>) -> Bool
    ) throws(EngineError) {
        var rows = 0
        try visitRows(.whole, isForward: isForward, end: end, &rows) { id, version, row, _ in
            body(id, version, row)
        }
    }

    /// The same for a scan that reads some columns: leaves out rows that do not pass its filter
    /// where a leaf can tell, and tells `body` which rows are known to pass it.
    ///
    /// - Parameters:
    ///   - rows: so many rows were looked at are added, those that were left out among them.
    ///   - numbers: gets the column `reading.numbers` of many rows at once where a leaf can and all
    ///     of them are known to pass; `body` does not get these rows.
    public mutating func visitRows(
        _ reading: RowReading,
        isForward: Bool = true,
        end: [UInt8]? = nil,
        _ rows: inout Int,
        numbers: NumbersBody? = nil,
        _ body: (ObjectID, CommitNumber, Span<UInt8>, Bool) -> Bool
    ) throws(EngineError) {
        let scan = LeafScan(reading)
        while isOnEntry {
            let node = current
            // Entries of this leaf on this side of the end.
            var bound = isForward ? node.count : -1
            if let end, isForward, node.compareKey(node.count - 1, with: end) >= 0 {
                bound = max(index, node.lowerBound(end).index)
            } else if let end, !isForward, node.compareKey(0, with: end) < 0 {
                bound = min(index, node.lowerBound(end).index - 1)
            }
            let stop = node.visitRows(
                from: index,
                to: bound,
                step: isForward ? 1 : -1,
                copies: !tree.isPublished,
                scan,
                numbers,
                body
            )
            switch stop {
            case .damaged(let isKey): throw fail(isKey ? shortKey : Tree.noVersion(tree.id))
            case .enough(let place):
                rows += abs(place - index) + 1
                index = place
                return
            case .atBound:
                rows += abs(bound - index)
                index = bound
            }
            if bound != (isForward ? node.count : -1) {
                isOnEntry = false
                return
            }
            _ = try isForward ? landForward() : landBackward()
        }
    }

    // MARK: Path

    private var current: TreeNode {
        guard isOnEntry, let leaf else { preconditionFailure("the cursor stands on no entry") }
        return leaf
    }

    private mutating func clear() {
        path.removeAll(keepingCapacity: true)
        leaf = nil
        ahead = LeavesAhead()
        isOnEntry = false
    }

    private mutating func fail(_ error: EngineError) -> EngineError {
        clear()
        failure = error
        return error
    }

    /// Walks from the root to a leaf; false for an empty tree.
    private mutating func descend(
        _ choose: (TreeNode) -> Int
    ) throws(EngineError) -> Bool {
        if let failure { throw failure }
        clear()
        do throws(EngineError) {
            guard var node = try tree.rootNode() else { return false }
            path.reserveCapacity(node.level)
            while !node.isLeaf {
                let index = choose(node)
                path.append(Step(node: node, index: index))
                node = try tree.child(of: node, at: index)
            }
            leaf = node
            return true
        } catch {
            throw fail(error)
        }
    }

    /// Makes an index after the leaf's last entry the first entry of the next leaf.
    private mutating func landForward() throws(EngineError) -> Bool {
        guard let leaf else { return false }
        if index < leaf.count {
            isOnEntry = true
            return true
        }
        while let step = path.last {
            path[path.count - 1].index += 1
            if step.index + 1 < step.node.count { return try descendEdge(first: true) }
            path.removeLast()
        }
        clear()
        return false
    }

    /// Makes an index in front of the leaf's first entry the last entry of the leaf before.
    private mutating func landBackward() throws(EngineError) -> Bool {
        guard leaf != nil else { return false }
        if index >= 0 {
            isOnEntry = true
            return true
        }
        while let step = path.last {
            path[path.count - 1].index -= 1
            if step.index > 0 { return try descendEdge(first: false) }
            path.removeLast()
        }
        clear()
        return false
    }

    /// Pages are checked one by one, so only here it shows that neighbours overlap, or that one
    /// page hangs in a tree twice: entries ascend, so a scan comes to its end.
    private func checkOrder(
        _ from: TreeNode,
        _ to: TreeNode,
        isForward: Bool
    ) throws(EngineError) {
        let (left, right) = isForward ? (from, to) : (to, from)
        // An empty leaf is told by the caller.
        guard left.count > 0, right.count > 0,
            left.compareKey(left.count - 1, with: right, at: 0) >= 0
        else { return }
        throw .damaged("keys of neighbouring pages of tree \(tree.id.rawValue) overlap")
    }

    /// From the innermost step of the path down to its first or last entry.
    private mutating func descendEdge(first: Bool) throws(EngineError) -> Bool {
        do throws(EngineError) {
            while let step = path.last {
                let child =
                    step.node.level == 1
                    ? try ahead.leaf(of: tree, under: step.node, at: step.index, isForward: first)
                    : try tree.child(of: step.node, at: step.index)
                if child.isLeaf {
                    if let leaf { try checkOrder(leaf, child, isForward: first) }
                    leaf = child
                    index = first ? 0 : child.count - 1
                    guard child.count > 0 else {
                        throw .damaged("an empty leaf in tree \(tree.id.rawValue)")
                    }
                    isOnEntry = true
                    return true
                }
                path.append(Step(node: child, index: first ? 0 : child.count - 1))
            }
        } catch {
            throw fail(error)
        }
        return false
    }
}
