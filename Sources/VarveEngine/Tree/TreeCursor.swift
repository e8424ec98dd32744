// A place in a tree that can move to its neighbours.
//
// Invariants
// - A cursor reads one state of one tree; nothing that happens later changes what it sees.
// - It stands on an entry or nowhere. After an error it stands nowhere for ever.

public import VarveBase

/// A place in one tree of one commit. Entries ascend by key (memcmp, shorter first).
public struct TreeCursor {
    private struct Step {
        var node: TreeNode
        var index: Int
    }

    private let tree: Tree
    private var path: ContiguousArray<Step> = []
    private var isOnEntry = false
    private var failure: EngineError?

    init(_ tree: Tree) {
        self.tree = tree
        path.reserveCapacity(4)
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
        let last = path.count - 1
        path[last].index = path[last].node.lowerBound(key).index
        return try settleForward()
    }

    /// Goes to the last entry whose key is below `key`; false when there is none.
    /// - Complexity: O(log n).
    public mutating func seek(before key: [UInt8]) throws(EngineError) -> Bool {
        guard try descend({ node in node.childIndex(for: key) }) else { return false }
        let last = path.count - 1
        path[last].index = path[last].node.lowerBound(key).index - 1
        return try settleBackward()
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
            var index = 0
            while index < node.children.count - 1 && node.children[index].rows <= left {
                left -= node.children[index].rows
                index += 1
            }
            return index
        })
        guard found else { return false }
        let last = path.count - 1
        guard left < UInt64(path[last].node.count) else {
            throw fail(.damaged("row counts of tree \(tree.id.rawValue) do not add up"))
        }
        path[last].index = Int(left)
        isOnEntry = true
        return true
    }

    /// Goes to the first entry; false when the tree is empty.
    public mutating func first() throws(EngineError) -> Bool {
        guard try descend({ _ in 0 }) else { return false }
        path[path.count - 1].index = 0
        return try settleForward()
    }

    /// Goes to the last entry; false when the tree is empty.
    public mutating func last() throws(EngineError) -> Bool {
        guard try descend({ node in node.count - 1 }) else { return false }
        path[path.count - 1].index = path[path.count - 1].node.count - 1
        return try settleBackward()
    }

    /// Goes to the next entry; false, and nowhere, behind the last one.
    /// - Complexity: O(1) amortised.
    public mutating func next() throws(EngineError) -> Bool {
        guard isOnEntry else { return false }
        path[path.count - 1].index += 1
        return try settleForward()
    }

    /// Goes to the entry before; false, and nowhere, in front of the first one.
    /// - Complexity: O(1) amortised.
    public mutating func previous() throws(EngineError) -> Bool {
        guard isOnEntry else { return false }
        path[path.count - 1].index -= 1
        return try settleBackward()
    }

    // MARK: The entry

    /// The entry's key, copied. The cursor must stand on an entry.
    public var key: [UInt8] { current.node.key(current.index) }
    /// The entry's value, copied. The cursor must stand on an entry.
    public var value: [UInt8] { current.node.value(current.index) }

    /// The entry's row with its version; only in an entity's tree.
    public func row() throws(EngineError) -> StoredRow {
        guard let row = current.node.row(current.index) else {
            throw .damaged("an entry of tree \(tree.id.rawValue) has no row version")
        }
        return row
    }

    /// The last 8 bytes of the key as an object ID.
    public func trailingObjectID() throws(EngineError) -> ObjectID {
        guard let object = current.node.trailingObjectID(current.index) else {
            throw .damaged("a key of tree \(tree.id.rawValue) is too short for an object ID")
        }
        return object
    }

    /// Orders the entry's key against `other`: below 0, 0, above 0.
    public func compareKey(with other: [UInt8]) -> Int {
        current.node.compareKey(current.index, with: other)
    }

    /// Whether the entry's key begins with `prefix`.
    public func keyHasPrefix(_ prefix: [UInt8]) -> Bool {
        current.node.keyHasPrefix(current.index, prefix)
    }

    /// Number of entries before this one.
    /// - Complexity: O(depth x fan-out).
    public var position: UInt64 {
        precondition(isOnEntry, "the cursor stands on no entry")
        var before: UInt64 = 0
        for step in path {
            if step.node.isLeaf {
                before += UInt64(step.index)
            } else {
                for left in 0..<step.index { before += step.node.children[left].rows }
            }
        }
        return before
    }

    /// Appends the object IDs at the ends of up to `limit` keys from here on (`isForward`) or from
    /// here back, and goes behind them. Stops early in front of a key that reaches `end`:
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
            let step = path[path.count - 1]
            let node = step.node
            if isForward {
                let full = step.index + min(node.count - step.index, limit - taken)
                var stop = full
                if let end, stop > step.index, node.compareKey(stop - 1, with: end) >= 0 {
                    stop = max(step.index, node.lowerBound(end).index)
                }
                let reachedEnd = stop < full
                guard node.appendObjectIDs(from: step.index, to: stop, into: &list) else {
                    throw fail(.damaged("a key of tree \(tree.id.rawValue) is too short"))
                }
                taken += stop - step.index
                path[path.count - 1].index = stop
                if reachedEnd {
                    isOnEntry = false
                    return taken
                }
                _ = try settleForward()
            } else {
                if let end, node.compareKey(step.index, with: end) < 0 {
                    isOnEntry = false
                    return taken
                }
                guard let object = node.trailingObjectID(step.index) else {
                    throw fail(.damaged("a key of tree \(tree.id.rawValue) is too short"))
                }
                list.append(object)
                taken += 1
                path[path.count - 1].index -= 1
                _ = try settleBackward()
            }
        }
        return taken
    }

    // MARK: Path

    private var current: Step {
        precondition(isOnEntry, "the cursor stands on no entry")
        return path[path.count - 1]
    }

    private mutating func clear() {
        path.removeAll(keepingCapacity: true)
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
            while !node.isLeaf {
                let index = choose(node)
                path.append(Step(node: node, index: index))
                node = try tree.child(of: node, at: index)
            }
            path.append(Step(node: node, index: 0))
            return true
        } catch {
            throw fail(error)
        }
    }

    /// Makes an index behind the leaf's last entry the first entry of the next leaf.
    private mutating func settleForward() throws(EngineError) -> Bool {
        while let step = path.last, step.index >= step.node.count {
            path.removeLast()
            guard !path.isEmpty else { break }
            path[path.count - 1].index += 1
        }
        return try descendEdge(first: true)
    }

    /// Makes an index in front of the leaf's first entry the last entry of the leaf before.
    private mutating func settleBackward() throws(EngineError) -> Bool {
        while let step = path.last, step.index < 0 {
            path.removeLast()
            guard !path.isEmpty else { break }
            path[path.count - 1].index -= 1
        }
        return try descendEdge(first: false)
    }

    private mutating func descendEdge(first: Bool) throws(EngineError) -> Bool {
        do throws(EngineError) {
            while let step = path.last, !step.node.isLeaf {
                let child = try tree.child(of: step.node, at: step.index)
                path.append(Step(node: child, index: first ? 0 : child.count - 1))
            }
        } catch {
            throw fail(error)
        }
        isOnEntry = !path.isEmpty
        if let leaf = path.last, leaf.index < 0 || leaf.index >= leaf.node.count {
            throw fail(.damaged("an empty leaf in tree \(tree.id.rawValue)"))
        }
        return isOnEntry
    }
}
