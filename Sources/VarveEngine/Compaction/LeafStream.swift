// The leaves of one tree of a state in ascending order, past the node cache.
//
// Invariants
// - Nothing is cached: memory is one node a level, and readers keep their cache.
// - Every page is checked as in a lookup, and its keys against those before.
// - Skipping is the caller's wish: then what cannot be read is named, with its range of keys.

public import VarveBase
internal import VarveFormat

/// A part of a tree that could not be read.
public struct DamagedRange: Sendable, Hashable {
    /// Whose entries.
    public let tree: TreeID
    /// No lost key is smaller.
    public let low: [UInt8]
    /// Every lost key is smaller; nil at the right edge.
    public let high: [UInt8]?
    /// How many entries are lost.
    public let entries: UInt64
    /// The frame at fault.
    public let place: FileOffset?
    /// One sentence.
    public let message: String
}

struct LeafStream {
    private struct Step {
        let node: TreeNode
        var next = 0
        let low: [UInt8]
        let high: [UInt8]?
    }

    let tree: TreeID
    let log: LogReader
    let skipsDamage: Bool
    private(set) var damage: [DamagedRange] = []
    private var root: TreeRoot?
    private var path: [Step] = []
    private var lastKey: [UInt8]?

    init(_ tree: TreeID, of state: StoreState, skipsDamage: Bool) {
        self.tree = tree
        self.skipsDamage = skipsDamage
        log = state.generation.log
        root = state.trees[tree]
    }

    /// The next leaf; nil behind the last.
    ///
    /// - Throws: `damaged` unless damage is skipped, `ioFailed`.
    mutating func next() throws(EngineError) -> TreeNode? {
        if let root {
            self.root = nil
            let pointer = ChildPointer(node: root.node, address: root.address, rows: root.rows)
            if root.rows > 0, let leaf = try enter(pointer, root.level, [], nil) { return leaf }
        }
        while let step = path.last {
            let index = step.next
            guard index < step.node.count else {
                path.removeLast()
                continue
            }
            path[path.count - 1].next += 1
            let low = index == 0 ? step.low : step.node.key(index)
            let high = index + 1 < step.node.count ? step.node.key(index + 1) : step.high
            if let leaf = try enter(step.node.children[index], step.node.level - 1, low, high) {
                return leaf
            }
        }
        return nil
    }

    /// A leaf to hand out, or nil for an inner node, which goes on the path, and for damage.
    private mutating func enter(
        _ pointer: ChildPointer,
        _ level: Int,
        _ low: [UInt8],
        _ high: [UInt8]?
    ) throws(EngineError) -> TreeNode? {
        do throws(EngineError) {
            let node = try load(pointer, level)
            guard node.isLeaf else {
                path.append(Step(node: node, low: low, high: high))
                return nil
            }
            if let lastKey, node.compareKey(0, with: lastKey) <= 0 {
                throw .damaged(
                    "keys of neighbouring pages of tree \(tree.rawValue) overlap",
                    place: pointer.address?.offset
                )
            }
            lastKey = node.key(node.count - 1)
            return node
        } catch {
            guard skipsDamage, error.code == .damaged else { throw error }
            damage.append(
                DamagedRange(
                    tree: tree,
                    low: low,
                    high: high,
                    entries: pointer.rows,
                    place: error.place ?? pointer.address?.offset,
                    message: error.message
                )
            )
            return nil
        }
    }

    private func load(_ pointer: ChildPointer, _ level: Int) throws(EngineError) -> TreeNode {
        if let node = pointer.node { return node }
        guard let address = pointer.address else {
            preconditionFailure("a child is in memory or in the file")
        }
        let frame = try log.frame(address, kind: .page)
        let node: TreeNode
        do throws(FormatError) {
            node = try PageCoding.node(frame, tree: tree, level: level)
        } catch {
            throw .damaged(error, place: address.offset)
        }
        guard node.rows == pointer.rows, node.count > 0 else {
            throw .damaged(
                "page \(address.offset.frameName) counts \(node.rows) entries, its parent "
                    + "\(pointer.rows)",
                place: address.offset
            )
        }
        return node
    }
}
