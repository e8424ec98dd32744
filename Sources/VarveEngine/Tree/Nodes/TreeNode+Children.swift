// FENCE: the children of an inner node: how they change, and a collection of them. Raw memory.
//
// Invariants
// - The node owns the array of children, and one reference to each child that it names by node.
// - It changes in the transaction whose stamp it carries only, as `TreeNode` says.

internal import VarveBase
internal import VarveFormat

extension TreeNode {
    /// Opens a gap of `gap` children at `index`, which the caller fills.
    private func openChildren(at index: Int, _ gap: Int) -> UnsafeMutablePointer<NodePointer> {
        let count = unsafe words.childCount
        precondition(index >= 0 && index <= count && gap >= 0, "a place among the children")
        let old = unsafe words.children
        var target = unsafe old
        if unsafe old == nil || count + gap > childCapacity {
            let capacity = max(4, count + gap, count + gap > 8 ? count * 5 / 4 : 8)
            unsafe target = .allocate(capacity: capacity)
            unsafe childCapacity = capacity
            if let old = unsafe old { unsafe target?.update(from: old, count: index) }
        }
        guard let target = unsafe target else { preconditionFailure("just allocated") }
        if let old = unsafe old {
            // After the gap; inside one block the move overlaps, which `update` allows.
            unsafe (target + index + gap).update(from: old + index, count: count - index)
            if unsafe old != target { unsafe old.deallocate() }
        }
        unsafe words.children = target
        unsafe words.childCount = count + gap
        return unsafe target + index
    }

    /// Puts a child in front of the one at `index`.
    func insertChild(_ child: ChildPointer, at index: Int) {
        let place = unsafe openChildren(at: index, 1)
        unsafe place.pointee = NodePointer(child)
        _ = unsafe place.pointee.node?.retain()
    }

    /// Appends the children of another node from `first` on.
    func appendChildren(of other: TreeNode, from first: Int) {
        guard let source = unsafe other.words.children else { return }
        let gap = unsafe other.words.childCount - first
        let place = unsafe openChildren(at: words.childCount, gap)
        unsafe place.update(from: source + first, count: gap)
        for index in 0..<gap { _ = unsafe place[index].node?.retain() }
    }

    /// Takes the children of a range out.
    func removeChildren(_ range: Range<Int>) {
        let count = unsafe words.childCount
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        guard let children = unsafe words.children else { return }
        let dead = unsafe range.compactMap { unsafe children[$0].node }
        unsafe (children + range.lowerBound).update(
            from: children + range.upperBound,
            count: count - range.upperBound
        )
        unsafe words.childCount = count - range.count
        for index in unsafe dead.indices { unsafe dead[index].release() }
    }

    /// Adds to the rows below a child.
    func addRows(_ count: Int, at index: Int) {
        let child = unsafe words.child(index)
        unsafe child.pointee.rows = child.pointee.rows &+ UInt64(bitPattern: Int64(count))
    }

    /// One child, with a reference.
    func child(_ index: Int) -> ChildPointer { unsafe words.child(index).pointee.child }

    fileprivate func setChild(_ child: ChildPointer, at index: Int) {
        let place = unsafe words.child(index)
        let old = unsafe place.pointee.node
        let new = unsafe NodePointer(child)
        _ = unsafe new.node?.retain()
        unsafe place.pointee = new
        unsafe old?.release()
    }

    /// Makes `node` the child at `index`, in memory only; its rows stay as they are.
    func setChild(_ node: TreeNode, at index: Int) {
        unsafe setChild(
            ChildPointer(node: node, address: nil, rows: words.child(index).pointee.rows),
            at: index
        )
    }
}

/// The children of a node, with references: for whoever writes or checks whole trees.
struct NodeChildren: RandomAccessCollection {
    fileprivate let node: TreeNode

    var startIndex: Int { 0 }
    var endIndex: Int { unsafe node.view.childCount }
    subscript(index: Int) -> ChildPointer {
        get { node.child(index) }
        nonmutating set { node.setChild(newValue, at: index) }
    }
}

extension TreeNode {
    /// One per entry of an inner node; empty in a leaf.
    var children: NodeChildren { NodeChildren(node: self) }
}
