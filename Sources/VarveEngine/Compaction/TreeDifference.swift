// What differs between two trees, ascending by key; what they share is skipped unread.
//
// Invariants
// - Both trees are states of one file: equal addresses, or the same node in memory, mean equal
//   contents.
// - Each step goes down or forward, so the walk ends; memory is one path a side.

internal import VarveBase
internal import VarveFormat

struct TreeDifference {
    struct Change {
        var key: [UInt8]
        /// Nil when the key is new.
        var before: [UInt8]?
        /// Nil when the key is gone.
        var after: [UInt8]?
    }

    private var old: TreeWalk
    private var new: TreeWalk

    init(from old: Tree, to new: Tree) {
        self.old = TreeWalk(old)
        self.new = TreeWalk(new)
    }

    /// The next key whose value is another one; nil when there is none.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(pages that the trees do not share) in all.
    mutating func next() throws(EngineError) -> Change? {
        while true {
            switch (old.head, new.head) {
            case (.end, .end): return nil
            case (.subtree(let left), .subtree(let right)):
                if left.isSame(as: right) {
                    old.skip()
                    new.skip()
                    continue
                }
                let order = ByteReader.compare(left.low, right.low)
                if order < 0 || (order == 0 && left.level >= right.level) { try old.expand() }
                if order > 0 || (order == 0 && right.level >= left.level) { try new.expand() }
            case (.subtree(let left), .entry(let node, let index)):
                if node.compareKey(index, with: left.low) < 0 { return addition() }
                try old.expand()
            case (.entry(let node, let index), .subtree(let right)):
                if node.compareKey(index, with: right.low) < 0 { return removal() }
                try new.expand()
            case (.subtree, .end): try old.expand()
            case (.end, .subtree): try new.expand()
            case (.entry, .end): return removal()
            case (.end, .entry): return addition()
            case (.entry(let left, let at), .entry(let right, let index)):
                let key = right.key(index)
                let order = left.compareKey(at, with: key)
                if order < 0 { return removal() }
                if order > 0 { return addition() }
                let change = Change(key: key, before: left.value(at), after: right.value(index))
                old.skip()
                new.skip()
                if change.before != change.after { return change }
            }
        }
    }

    private mutating func removal() -> Change? {
        guard case .entry(let node, let index) = old.head else { return nil }
        defer { old.skip() }
        return Change(key: node.key(index), before: node.value(index), after: nil)
    }

    private mutating func addition() -> Change? {
        guard case .entry(let node, let index) = new.head else { return nil }
        defer { new.skip() }
        return Change(key: node.key(index), before: nil, after: node.value(index))
    }
}

/// A walk through a tree that can pass over a whole subtree.
struct TreeWalk {
    struct Subtree {
        let pointer: ChildPointer
        let level: Int
        /// No key below it is smaller.
        let low: [UInt8]

        func isSame(as other: Subtree) -> Bool {
            guard level == other.level else { return false }
            if let node = pointer.node, let theirs = other.pointer.node { return node === theirs }
            guard let address = pointer.address, let theirs = other.pointer.address else {
                return false
            }
            return address == theirs
        }
    }
    enum Head {
        case end
        case subtree(Subtree)
        case entry(TreeNode, Int)
    }
    private struct Step {
        let node: TreeNode
        var index = 0
        let low: [UInt8]
    }

    private let tree: Tree
    private var path: [Step] = []
    /// Where the walk is.
    private(set) var head: Head

    init(_ tree: Tree) {
        self.tree = tree
        let root = tree.root
        head =
            root.rows == 0
            ? .end
            : .subtree(
                Subtree(
                    pointer: ChildPointer(
                        node: root.node,
                        address: root.address,
                        rows: root.rows
                    ),
                    level: root.level,
                    low: []
                )
            )
    }

    /// Goes after the entry or the subtree.
    mutating func skip() {
        if path.isEmpty {
            head = .end
            return
        }
        path[path.count - 1].index += 1
        arrive()
    }

    /// Goes into the subtree.
    mutating func expand() throws(EngineError) {
        guard case .subtree(let subtree) = head else { return }
        let node: TreeNode?
        if let step = path.last {
            node = try tree.child(of: step.node, at: step.index)
        } else {
            node = try tree.rootNode()
        }
        guard let node else { preconditionFailure("a tree with entries has a root") }
        path.append(Step(node: node, low: subtree.low))
        arrive()
    }

    private mutating func arrive() {
        while let step = path.last {
            guard step.index < step.node.count else {
                path.removeLast()
                if path.isEmpty { break }
                path[path.count - 1].index += 1
                continue
            }
            if step.node.isLeaf {
                head = .entry(step.node, step.index)
            } else {
                head = .subtree(
                    Subtree(
                        pointer: step.node.children[step.index],
                        level: step.node.level - 1,
                        low: step.index == 0 ? step.low : step.node.key(step.index)
                    )
                )
            }
            return
        }
        head = .end
    }
}
