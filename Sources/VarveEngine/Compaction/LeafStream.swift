// The leaves of one tree of a state in ascending order, past the node cache.
//
// Invariants
// - Nothing is cached: memory is one node a level and the leaves that are decoded together, and
//   readers keep their cache.
// - One thread reads, in the order of the keys; what it read is checked and decoded by several.
// - Every page is checked as in a lookup, and its keys against those before.
// - Skipping is the caller's wish: then what cannot be read is named, with its range of keys.

public import VarveBase
internal import VarveFormat
internal import VarveIO

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
        /// The children in front of `next`'s, and from there on some that were read with it.
        var ahead: ArraySlice<Result<TreeNode, EngineError>> = []
        let low: [UInt8]
        let high: [UInt8]?
    }

    let tree: TreeID
    let log: LogReader
    let skipsDamage: Bool
    /// Threads that decode leaves.
    let threads: Int
    private(set) var damage: [DamagedRange] = []
    private var root: TreeRoot?
    private var path: [Step] = []
    private var lastKey: [UInt8]?

    /// Leaves that several threads decode together.
    private static let leavesAhead = 32

    init(_ tree: TreeID, of state: StoreState, skipsDamage: Bool, threads: Int = 1) {
        self.tree = tree
        self.skipsDamage = skipsDamage
        self.threads = threads
        log = state.generation.log
        root = state.trees[tree]
    }

    /// The next leaf; nil after the last.
    ///
    /// - Throws: `damaged` unless damage is skipped, `ioFailed`.
    mutating func next() throws(EngineError) -> TreeNode? {
        if let root {
            self.root = nil
            let pointer = ChildPointer(node: root.node, address: root.address, rows: root.rows)
            if root.rows > 0 {
                let node = Self.unpacked(UndecodedPage(pointer, log), log, tree, root.level)
                if let leaf = try enter(pointer, node, [], nil) { return leaf }
            }
        }
        while let step = path.last {
            let index = step.next
            guard index < step.node.count else {
                path.removeLast()
                continue
            }
            if step.ahead.isEmpty {
                path[path.count - 1].ahead = children(of: step.node, from: index)
            }
            guard let node = path[path.count - 1].ahead.popFirst() else {
                preconditionFailure("a child that is there was read")
            }
            path[path.count - 1].next += 1
            let low = index == 0 ? step.low : step.node.key(index)
            let high = index + 1 < step.node.count ? step.node.key(index + 1) : step.high
            if let leaf = try enter(step.node.children[index], node, low, high) {
                return leaf
            }
        }
        return nil
    }

    /// A leaf to hand out, or nil for an inner node, which goes on the path, and for damage.
    private mutating func enter(
        _ pointer: ChildPointer,
        _ decoded: Result<TreeNode, EngineError>,
        _ low: [UInt8],
        _ high: [UInt8]?
    ) throws(EngineError) -> TreeNode? {
        do throws(EngineError) {
            let node = try decoded.get()
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

    /// The child at a place and, of leaves, some behind it.
    private func children(
        of node: TreeNode,
        from index: Int
    ) -> ArraySlice<Result<TreeNode, EngineError>> {
        let (log, tree, level) = (log, tree, node.level - 1)
        let ahead = threads > 1 && level == 0 ? Self.leavesAhead : 1
        let found = (index..<min(node.count, index + ahead)).map {
            UndecodedPage(node.children[$0], log)
        }
        if found.count < Self.leavesAhead {
            return found.map { Self.unpacked($0, log, tree, level) }[...]
        }
        return BackgroundThread.map(found, threads: threads) {
            Self.unpacked($0, log, tree, level)
        }[...]
    }

    /// Whoever goes through all leaves wants all rows; of a leaf that lost one, none is handed on.
    private static func unpacked(
        _ page: UndecodedPage,
        _ log: LogReader,
        _ tree: TreeID,
        _ level: Int
    ) -> Result<TreeNode, EngineError> {
        page.decoded(log, tree, level).flatMap { node in
            do throws(FormatError) {
                return .success(try node.wholeUnpacked("page"))
            } catch {
                return .failure(.damaged(error))
            }
        }
    }
}
