// How many stored bytes a state needs, kept exact from checkpoint to checkpoint.
//
// Invariants
// - Live bytes of a state are the frames of its pages, of pages that its leaves change, of large
//   values and small blobs.
// - Only what two states do not share is looked at: the cost is that of the pages that changed.

internal import VarveBase
internal import VarveFormat

extension StoreState {
    /// Stored bytes that this state will need when what is in memory only is written, as pages of
    /// `pageBytes`.
    ///
    /// - Parameter known: what the transaction that made it knows of leaves.
    /// - Complexity: O(pages that changed since the newest TREE or CKPT).
    func liveBytes(withPages pageBytes: UInt64, _ known: TransactionNodes? = nil) -> UInt64 {
        var base = self
        base.trees = baseTrees
        // An old page that cannot be read fails whoever needs it, not the counting.
        let change = (try? SpaceUse.change(from: base, to: self, known)) ?? 0
        return SpaceUse.add(change + Int64(clamping: pageBytes), to: liveBytes)
    }

    /// About as many stored bytes as the pages will have that are in memory only: LZ4 halves a
    /// leaf of rows.
    ///
    /// - Complexity: O(changed pages).
    var changedPageBytes: UInt64 {
        func bytes(_ node: TreeNode) -> UInt64 {
            if node.isLeaf { return UInt64(node.weight) / 2 }
            return node.children.reduce(UInt64(node.weight)) { sum, child in
                sum + (child.node.map(bytes) ?? 0)
            }
        }
        return trees.values.reduce(0) { sum, root in sum + (root.node.map(bytes) ?? 0) }
    }

    /// Entries of all trees.
    var entries: UInt64 { trees.values.reduce(0) { $0 + $1.rows } }

    /// Everything is in pages, as a TREE or CKPT at `frame` says.
    mutating func becomeBase(at frame: FileOffset, liveBytes: UInt64) {
        self.frame = frame
        baseFrame = frame
        baseTrees = trees
        self.liveBytes = liveBytes
    }

    /// Bytes in front of the newest TREE or CKPT that its state does not need.
    var deadBytes: UInt64 {
        let used = FileHeader.logStart.rawValue + liveBytes
        return baseFrame.rawValue - min(baseFrame.rawValue, used)
    }
}

enum SpaceUse {
    /// How the bytes that are in the file and needed change from one state to a later one. Pages
    /// that are in memory only are not counted: whoever writes them adds them.
    ///
    /// - Complexity: O(pages that the states do not share).
    static func change(
        from old: StoreState,
        to new: StoreState,
        _ known: TransactionNodes? = nil
    ) throws(EngineError) -> Int64 {
        var change: Int64 = 0
        for id in Set(old.trees.keys).union(new.trees.keys) {
            change += try pages(old.tree(id), new.tree(id), new.generation.nodes, known)
        }
        for id in [TreeID.largeValues, .blobs] {
            var difference = TreeDifference(from: old.tree(id), to: new.tree(id))
            while let entry = try difference.next() {
                if let after = entry.after { change += try stored(after, id) }
                if let before = entry.before { change -= try stored(before, id) }
            }
        }
        return change
    }

    /// `bytes` after a change, never below zero, and never more than a record can say: a forged
    /// store may begin there.
    static func add(_ change: Int64, to bytes: UInt64) -> UInt64 {
        let sum = UInt64(max(0, Int64(clamping: bytes) + change))
        return min(sum, CommitRecord.countersEnd - 1)
    }

    /// Bytes of the frame that an entry of `largeValues` or `blobs` names.
    private static func stored(_ value: [UInt8], _ tree: TreeID) throws(EngineError) -> Int64 {
        do throws(FormatError) {
            if tree == .blobs {
                guard case .frame(let place) = try BlobEntry(decoding: value).place else {
                    return 0
                }
                return Int64(place.address.frameLength)
            }
            return Int64(try ValuePlace(decoding: value).address.frameLength)
        } catch {
            throw .damaged(error)
        }
    }

    /// A page that both have is passed over on both sides or counted on both, so the sum is exact
    /// wherever the walks meet.
    ///
    /// - Parameter nodes: knows what leaves are made of.
    private static func pages(
        _ old: Tree,
        _ new: Tree,
        _ nodes: NodeCache,
        _ known: TransactionNodes?
    ) throws(EngineError) -> Int64 {
        var sum: Int64 = 0
        var left = TreeWalk(old)
        var right = TreeWalk(new)
        while true {
            switch (left.head, right.head) {
            case (.subtree(let before), .subtree(let after)):
                if before.isSame(as: after) {
                    left.skip()
                    right.skip()
                    continue
                }
                let order = ByteReader.compare(before.low, after.low)
                if order < 0 || (order == 0 && before.level >= after.level) {
                    sum -= try count(before, &left, old.id, nodes, known)
                }
                if order > 0 || (order == 0 && after.level >= before.level) {
                    sum += try count(after, &right, new.id, nodes, known)
                }
            case (.subtree(let before), _): sum -= try count(before, &left, old.id, nodes, known)
            case (_, .subtree(let after)): sum += try count(after, &right, new.id, nodes, known)
            default: return sum
            }
        }
    }

    private static func count(
        _ subtree: TreeWalk.Subtree,
        _ walk: inout TreeWalk,
        _ tree: TreeID,
        _ nodes: NodeCache,
        _ known: TransactionNodes?
    ) throws(EngineError) -> Int64 {
        // Leaves are counted by what their parents say, and what they themselves change.
        if subtree.level == 0 { walk.skip() } else { try walk.expand() }
        guard let address = subtree.pointer.address else { return 0 }
        guard subtree.level == 0, tree >= .firstFree else { return Int64(address.frameLength) }
        // A leaf that cannot be read is counted without.
        let basis =
            known?.basisBytes(address.offset)
            ?? (try? nodes.basisBytes(of: address, tree: tree)) ?? 0
        return Int64(address.frameLength) + Int64(basis)
    }
}
