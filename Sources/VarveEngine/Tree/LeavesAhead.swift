// Leaves that a scan comes to next.
//
// Invariants
// - What it hands out is the child that was asked for, or the error that reading it gave. An error
//   is thrown when the scan gets there, not before.
// - Nothing is read ahead before `NodeStore.passingMin` leaves were read in a row in one direction,
//   nor in a tree that can still change.
// - It holds at most `leavesMax` leaves, of `storedBytesMax` bytes in the file together.

internal import VarveBase
internal import VarveFormat

struct LeavesAhead {
    /// Some 300 microseconds of restoring, beside which a thread costs little.
    private static let leavesMax = 64
    private static let storedBytesMax = 1 << 20

    /// Leaves in a row, in one direction.
    private var run = 0
    private var isForward = true
    /// The first is child `next` of the parent that was asked for last.
    private var leaves: ArraySlice<Result<TreeNode, EngineError>> = []
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
            guard tree.isPublished, run > NodeStore.passingMin.leaves else {
                return try tree.child(of: parent, at: index)
            }
            let indices = Self.indices(under: parent, from: index, isForward: isForward)
            leaves = tree.loader.leaves(under: parent, indices, tree: tree.id)[...]
        }
        guard let leaf = leaves.popFirst() else {
            preconditionFailure("a leaf that was asked for is there, or its error")
        }
        next = isForward ? index + 1 : index - 1
        return try leaf.get()
    }

    /// Children to read together, in the order of the scan.
    private static func indices(
        under parent: TreeNode,
        from index: Int,
        isForward: Bool
    ) -> [Int] {
        var indices: [Int] = []
        var stored = 0
        var index = index
        while index >= 0, index < parent.count, indices.count < leavesMax,
            indices.isEmpty || stored < storedBytesMax
        {
            indices.append(index)
            stored += Int(parent.children[index].address?.storedLength ?? 0)
            index += isForward ? 1 : -1
        }
        return indices
    }
}
