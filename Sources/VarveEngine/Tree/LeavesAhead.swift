// Leaves that a scan comes to next.
//
// Invariants
// - What it hands out is the child that was asked for, or the error that reading it gave. An error
//   is thrown when the scan gets there, not before.
// - Nothing is read ahead before `NodeCache.passingMin` leaves were read in a row in one direction,
//   nor in a tree that can still change. What is ahead is at most as much as was read before, so
//   that a scan that ends soon has not read much too much.
// - It holds at most twice `leavesMax` leaves that were not handed out yet, those that others
//   restore meanwhile included; restoring a batch of them stops after `bytesMax`, and what is not
//   restored is asked for again.
// - Others restore only what is under the parent that was asked for last. Who turns, jumps or ends
//   gives that up.

internal import VarveBase
internal import VarveFormat

struct LeavesAhead {
    /// Some 300 microseconds of restoring, beside which a thread costs little.
    private static let leavesMax = 64
    /// Bytes of restored leaves: those of a forged page may be thousands of times its own.
    private static let bytesMax = 1 << 20

    /// Leaves in a row, in one direction.
    private var run = 0
    private var isForward = true
    /// Last comes child `next` of the parent that was asked for last.
    private var leaves: [Result<TreeNode, EngineError>] = []
    private var next = 0
    /// The leaves behind those, from child `index` on.
    private var behind: (parent: TreeNode, index: Int, batch: NodeCache.LeafBatch)?

    /// The leaf that is child `index` of `parent`; the one before was asked for last, if any.
    mutating func leaf(
        of tree: Tree,
        under parent: TreeNode,
        at index: Int,
        isForward: Bool
    ) throws(EngineError) -> TreeNode {
        if isForward != self.isForward {
            self = LeavesAhead()
            self.isForward = isForward
        }
        run += 1
        if leaves.isEmpty || next != index {
            leaves = []
            guard tree.isPublished, run > NodeCache.passingMin.leaves else {
                behind = nil
                return try tree.child(of: parent, at: index)
            }
            leaves = batch(of: tree, under: parent, from: index)
        }
        guard let leaf = leaves.popLast() else {
            preconditionFailure("a leaf that was asked for is there, or its error")
        }
        next = isForward ? index + 1 : index - 1
        return try leaf.get()
    }

    /// Leaves from a child on, the last one first. Others begin with those after them.
    private mutating func batch(
        of tree: Tree,
        under parent: TreeNode,
        from index: Int
    ) -> [Result<TreeNode, EngineError>] {
        var batch: NodeCache.LeafBatch?
        if let behind, behind.parent === parent, behind.index == index { batch = behind.batch }
        behind = nil
        let leaves = tree.loader.restoredLeaves(
            batch ?? find(tree, parent, from: index, restoresNow: false)
        )
        let after = isForward ? index + leaves.count : index - leaves.count
        if after >= 0, after < parent.count {
            behind = (parent, after, find(tree, parent, from: after, restoresNow: true))
        }
        return leaves.reversed()
    }

    private func find(
        _ tree: Tree,
        _ parent: TreeNode,
        from index: Int,
        restoresNow: Bool
    ) -> NodeCache.LeafBatch {
        let count = min(Self.leavesMax, run / 2)
        let indices =
            isForward
            ? Array(index..<min(parent.count, index + count))
            : Array((max(0, index + 1 - count)...index).reversed())
        return tree.loader.findLeaves(
            under: parent,
            indices,
            tree: tree.id,
            bytesMax: Self.bytesMax,
            restoresNow: restoresNow
        )
    }
}
