// Leaves that a scan comes to next.
//
// Invariants
// - What it hands out is the child that was asked for, or the error that reading it gave. An error
//   is thrown when the scan gets there, not before.
// - Nothing is read ahead before `NodeStore.passingMin` leaves were read in a row in one direction,
//   nor in a tree that can still change. What is ahead is at most half of what was read before, so
//   that a scan that ends soon has not read much too much.
// - It holds at most `leavesMax` leaves that were not handed out yet; restoring them stops behind
//   `bytesMax`, and what is not restored is asked for again.

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
            guard tree.isPublished, run > NodeStore.passingMin.leaves else {
                return try tree.child(of: parent, at: index)
            }
            let count = min(Self.leavesMax, run / 2)
            let indices =
                isForward
                ? Array(index..<min(parent.count, index + count))
                : Array((max(0, index + 1 - count)...index).reversed())
            leaves = tree.loader.leaves(
                under: parent,
                indices,
                tree: tree.id,
                bytesMax: Self.bytesMax
            ).reversed()
        }
        guard let leaf = leaves.popLast() else {
            preconditionFailure("a leaf that was asked for is there, or its error")
        }
        next = isForward ? index + 1 : index - 1
        return try leaf.get()
    }
}
