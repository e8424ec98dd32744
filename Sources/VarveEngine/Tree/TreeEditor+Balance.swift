// Nodes that became too heavy or too light: splits, merges and the root.
//
// Invariants
// - A node is cut so that both parts have an entry; after all others when the last was changed.
// - Two nodes join only when they leave room: a removal behind it does not split them again.
// - Row counts of every parent on the way stay those of its children.

internal import VarveBase
internal import VarveFormat

extension TreeEditor {
    // MARK: Split

    func split(along path: inout ContiguousArray<Step>) throws(EngineError) {
        precondition(appended == 0, "a way is counted before it becomes another one")
        for depth in path.indices.reversed() {
            let (node, index) = (path[depth].node, path[depth].index)
            guard isTooHeavy(node) else { return }
            node.unfold()
            let cut = cut(of: node, changed: index)
            let separator =
                node.isLeaf
                ? TreeNode.separator(left: node.key(cut - 1), right: node.key(cut))
                : node.key(cut)
            // Entries that go after all others will fill a leaf; it is made as large at once.
            let isFilling = node.isLeaf && cut == node.count - 1
            let right = TreeNode(
                stamp: stamp,
                level: node.level,
                capacity: isFilling
                    ? TreeNode.roundedUp(node.weight + node.weight / 16) : max(node.weight / 2, 256)
            )
            countChanged(1)
            divide(node, into: right, at: cut)
            let pointer = ChildPointer(node: right, address: nil, rows: right.rows)
            if depth == 0 {
                try growRoot(left: node, separator: separator, right: pointer)
                return
            }
            let parent = path[depth - 1].node
            let parentIndex = path[depth - 1].index
            parent.addRows(-Int(pointer.rows), at: parentIndex)
            parent.insert(separator, [], at: parentIndex + 1)
            parent.insertChild(pointer, at: parentIndex + 1)
            path[depth - 1].index = parentIndex + 1
        }
    }

    /// Where a node is cut: after everything when the last entry was changed.
    private func cut(of node: TreeNode, changed: Int) -> Int {
        if changed == node.count - 1 { return node.count - 1 }
        var weight = 0
        var index = 0
        while index < node.count - 1 && weight < node.weight / 2 {
            weight += node.keyCount(index) + node.valueCount(index)
            weight += TreeNode.slotSize
            index += 1
        }
        return max(1, index)
    }

    /// Moves the upper part of `node` to `right`.
    private func divide(_ node: TreeNode, into right: TreeNode, at cut: Int) {
        right.appendEntries(of: node, from: cut, to: node.count)
        if !node.isLeaf {
            right.appendChildren(of: node, from: cut)
            node.removeChildren(cut..<node.children.count)
            right.setKey([], at: 0)
        }
        node.removeEntries(from: cut)
    }

    private func growRoot(
        left: TreeNode,
        separator: [UInt8],
        right: ChildPointer
    ) throws(EngineError) {
        let top = TreeNode(stamp: stamp, level: left.level + 1)
        countChanged(1)
        // No tree of ours gets there; one from elsewhere may begin there.
        guard top.level < Tree.depthMax else {
            throw .damaged("tree \(id.rawValue) is deeper than a tree may be")
        }
        top.insert([], [], at: 0)
        top.insert(separator, [], at: 1)
        top.insertChild(
            ChildPointer(node: left, address: nil, rows: root.rows - right.rows),
            at: 0
        )
        top.insertChild(right, at: 1)
        root.node = top
        root.level = top.level
    }

    // MARK: Merge

    /// Mends what a removal left: empty nodes go, small ones join a neighbour.
    func rebalance(_ path: ContiguousArray<Step>) throws(EngineError) {
        for depth in path.indices.dropFirst().reversed() {
            let node = path[depth].node
            let parent = path[depth - 1].node
            let index = path[depth - 1].index
            if node.count == 0 {
                parent.remove(at: index)
                parent.removeChildren(index..<index + 1)
                if index == 0 && parent.count > 0 { parent.setKey([], at: 0) }
            } else if node.weight < weightMax(node) / 4 {
                if index > 0 {
                    try merge(parent, left: index - 1, neighbour: index - 1, path[..<depth])
                } else if parent.count > 1 {
                    try merge(parent, left: index, neighbour: index + 1, path[..<depth])
                }
            }
        }
        try shrinkRoot()
    }

    /// Joins the children `left` and `left + 1` of `parent` when they fit well into one node.
    ///
    /// - Parameter neighbour: the one of them that is not on the path.
    /// - Parameter path: the way to the other one, up to `parent`.
    private func merge(
        _ parent: TreeNode,
        left: Int,
        neighbour: Int,
        _ path: ArraySlice<Step>
    ) throws(EngineError) {
        let second = try tree.child(of: parent, at: left + 1)
        let first = try tree.child(of: parent, at: left)
        guard first.weight + second.weight <= weightMax(first) * 3 / 4 else { return }
        let joined = neighbour == left ? first : second
        if joined.stamp != stamp {
            var path = ContiguousArray(path)
            path[path.count - 1].index = neighbour
            try requireInside(joined, path)
        }
        let target = try changeableChild(of: parent, at: left, [])
        let boundary = target.count
        target.appendEntries(of: second, from: 0, to: second.count)
        if !target.isLeaf {
            target.setKey(parent.key(left + 1), at: boundary)
            target.appendChildren(of: second, from: 0)
        }
        parent.addRows(Int(parent.child(left + 1).rows), at: left)
        parent.remove(at: left + 1)
        parent.removeChildren(left + 1..<left + 2)
    }

    private func shrinkRoot() throws(EngineError) {
        while let node = root.node, !node.isLeaf, node.count <= 1 {
            guard let only = node.children.first else {
                root = .empty
                return
            }
            root.node = only.node
            root.address = only.address
            root.level = node.level - 1
        }
        if let node = root.node, node.isLeaf, node.count == 0 { root = .empty }
    }
}
