// Changes to one tree inside one transaction: copy on write.
//
// Invariants
// - A node is changed in place only when it carries the transaction's stamp; any other is copied.
// - No node but an empty root leaf has no entry; no node weighs more than the split weight unless
//   it has a single entry, is an inner node of at most three, or was a leaf that a compaction
//   filled (`isLight`); none of more than 16 children more than the weight for inner nodes.
// - An entry appended after the last one splits 100/0, so that ascending inserts fill their
//   leaves.

internal import VarveBase
internal import VarveFormat

final class TreeEditor {
    let id: TreeID
    let stamp: UInt64
    let loader: NodeCache
    /// A leaf above this weight is split; test stores use small ones.
    let splitWeight: Int
    /// The same for inner nodes.
    let innerWeight: Int
    /// Changed here and in TreeEditor+Balance.swift only.
    var root: TreeRoot {
        get {
            settleAppended()
            return knownRoot
        }
        _modify {
            settleAppended()
            yield &knownRoot
        }
    }
    /// The root without the rows that are not counted yet (`appended`).
    private var knownRoot: TreeRoot
    /// Nodes with the stamp: of this tree, and of all that the transaction changes.
    private(set) var changed = 0
    private let allChanged: TransactionNodes
    /// The way to the last leaf while nothing but appends happened; else empty. Every node on it
    /// carries the stamp.
    private var tail: ContiguousArray<Step> = []
    /// Entries that went behind the last one and that nothing on the way there counts yet: one step
    /// for many rows. Whoever looks at the root, or leaves the way, counts them first.
    private(set) var appended = 0
    /// The way to the leaf of the row that was changed last, while nothing else happened. Every
    /// node on it carries the stamp.
    private var lastRow: ContiguousArray<Step> = []
    /// Memory for the next row.
    private var rowValue: [UInt8] = []

    init(
        id: TreeID,
        stamp: UInt64,
        loader: NodeCache,
        splitWeight: Int,
        innerWeight: Int? = nil,
        root: TreeRoot,
        changed: TransactionNodes = TransactionNodes()
    ) {
        self.id = id
        self.stamp = stamp
        self.loader = loader
        self.splitWeight = splitWeight
        self.innerWeight = innerWeight ?? splitWeight
        knownRoot = root
        allChanged = changed
    }

    var tree: Tree { Tree(id: id, root: root, loader: loader) }

    /// Takes every entry out.
    func removeAll() {
        forgetWays()
        root = .empty
        countChanged(-changed)
    }

    /// Everything is another root's from now on.
    func replace(_ root: TreeRoot) {
        removeAll()
        self.root = root
    }

    /// Its nodes are no longer the transaction's to change, and count no longer.
    func retire() {
        forgetWays()
        countChanged(-changed)
    }

    private func forgetWays() {
        settleAppended()
        tail = []
        lastRow = []
    }

    /// Counts the entries that went behind the last one, on the way there.
    private func settleAppended() {
        if appended == 0 { return }
        let count = appended
        appended = 0
        addRows(count, along: tail)
    }

    struct Step {
        var node: TreeNode
        var index: Int
    }

    // MARK: Put

    /// Sets `key` to `value`; true when the key is new.
    /// - Complexity: O(log n), plus a copy of each node on the way that the transaction has not
    ///   changed yet. O(1) after the last entry when the put before went there, too.
    @discardableResult
    func put(_ key: [UInt8], _ value: [UInt8]) throws(EngineError) -> Bool {
        if append(key, value) { return true }
        var path = try descend { node in node.childIndex(for: key) }
        let leaf = path[path.count - 1].node
        let (index, isEqual) = leaf.lowerBound(key)
        if isEqual {
            leaf.setValue(value, at: index)
        } else {
            leaf.insert(key, value, at: index)
            addRows(1, along: path)
        }
        path[path.count - 1].index = index
        if isLight(leaf) {
            if isLast(path) { tail = path }
        } else {
            try split(along: &path)
        }
        return !isEqual
    }

    /// Replaces the row of an object, with its version in front, by what `make` appends to an empty
    /// array; nothing happens when it says false. Nil when there is no row.
    /// - Complexity: as `put`; O(log(entries of a leaf)) in the leaf of the row changed before.
    func changeRow(
        _ object: ObjectID,
        _ make: (Span<UInt8>, inout [UInt8]) throws(EngineError) -> Bool
    ) throws(EngineError) -> Bool? {
        var path = lastRow
        lastRow = []
        let isSameLeaf = path.last.map { $0.node.spans(object) } ?? false
        if !isSameLeaf { path = try descend { node in node.childIndex(object: object) } }
        let leaf = path[path.count - 1].node
        let (index, isEqual) = leaf.lowerBound(object: object)
        guard isEqual else { return nil }
        var value = rowValue
        rowValue = []
        defer { rowValue = value }
        value.removeAll(keepingCapacity: true)
        var known = 0
        let isChanged = try leaf.withRow(index) { row throws(EngineError) in
            known = row.count
            return try make(row, &value)
        }
        guard let isChanged else { throw Tree.noVersion(id) }
        if isChanged {
            leaf.setValue(value, at: index, known: known)
            path[path.count - 1].index = index
            if !isLight(leaf) {
                try split(along: &path)
                return true
            }
        }
        lastRow = path
        return isChanged
    }

    /// Takes out the row of an object, unless `look`, which sees it, says false. Nil when there is
    /// none; no node is copied then.
    /// - Complexity: as `put`; O(log(entries of a leaf)) in the leaf of the row changed before.
    func removeRow(
        _ object: ObjectID,
        _ look: (Span<UInt8>) throws(EngineError) -> Bool
    ) throws(EngineError) -> Bool? {
        var path = lastRow
        let isSameLeaf = path.last.map { $0.node.spans(object) } ?? false
        if !isSameLeaf {
            guard try tree.contains(object) else { return nil }
            path = try descend { node in node.childIndex(object: object) }
        }
        lastRow = []
        let leaf = path[path.count - 1].node
        let (index, isEqual) = leaf.lowerBound(object: object)
        guard isEqual else {
            lastRow = path
            return nil
        }
        var known = 0
        let goes = try leaf.withRow(index) { row throws(EngineError) in
            known = row.count
            return try look(row)
        }
        guard let goes else { throw Tree.noVersion(id) }
        if goes {
            leaf.remove(at: index, known: known)
            addRows(-1, along: path)
            if path.count > 1, leaf.count == 0 || leaf.weight < weightMax(leaf) / 4 {
                try rebalance(path)
                return true
            }
        }
        lastRow = path
        return goes
    }

    /// Adds a row under its object ID; false when there is one.
    /// - Complexity: as `put`; without an allocation after the last row.
    func insertRow(
        _ object: ObjectID,
        _ version: CommitNumber,
        _ row: [UInt8]
    ) throws(EngineError) -> Bool {
        if let leaf = tail.last?.node, leaf.appendRow(object, version, row, upTo: splitWeight) {
            appended += 1
            return true
        }
        return try put(EngineKeys.object(object), EngineKeys.rowValue(version, row))
    }

    /// Puts an entry after the last one, on the way that the put before went.
    private func append(_ key: [UInt8], _ value: [UInt8]) -> Bool {
        guard let leaf = tail.last?.node else { return false }
        let weight = leaf.weight + key.count + value.count + TreeNode.slotSize
        guard weight <= splitWeight, leaf.compareKey(leaf.count - 1, with: key) < 0 else {
            settleAppended()
            tail = []
            return false
        }
        leaf.insert(key, value, at: leaf.count)
        appended += 1
        return true
    }

    /// Whether a path leads to the last entry of the tree.
    private func isLast(_ path: ContiguousArray<Step>) -> Bool {
        path.allSatisfy { $0.index == $0.node.count - 1 }
    }

    // MARK: Spill

    /// Whether entries go after the last one, so that what lies before is finished.
    var isAppending: Bool { !tail.isEmpty }

    /// Lets `write` write every changed node that is not on the way to the last entry, and goes on
    /// with the addresses.
    func spill(
        _ write: (ChildPointer, Int) throws(EngineError) -> PageAddress
    ) throws(EngineError) {
        lastRow = []
        guard var node = root.node, node.stamp == stamp else { return countChanged(-changed) }
        var kept = 1
        while !node.isLeaf {
            let last = node.children.count - 1
            for index in 0..<last {
                let child = node.children[index]
                guard child.node != nil else { continue }
                let address = try write(child, node.level - 1)
                node.children[index] = ChildPointer(node: nil, address: address, rows: child.rows)
            }
            guard let next = node.children[last].node, next.stamp == stamp else { break }
            node = next
            kept += 1
        }
        countChanged(kept - changed)
    }

    // MARK: Many entries

    /// Puts entries without values in place, and takes out those that are to go: in the order of
    /// their keys, leaf by leaf.
    /// - Complexity: O(entries x log(entries of a leaf) + leaves touched x depth).
    ///
    /// - Parameter afterLeaf: told which entries went into a leaf; may let `spill` write what is
    ///   after.
    func apply(
        _ sorted: PendingEntries,
        afterLeaf: (_ before: Int, _ next: Int) throws(EngineError) -> Void = { _, _ in }
    ) throws(EngineError) {
        var next = 0
        while next < sorted.count {
            let before = next
            try applyToLeaf(sorted, &next)
            try afterLeaf(before, next)
        }
    }

    /// Applies what belongs into the leaf of the entry `next`, until it is full or has nothing.
    private func applyToLeaf(_ sorted: PendingEntries, _ next: inout Int) throws(EngineError) {
        let keys = sorted.keyBytes
        let first = sorted.keyRange(next)
        var path = try descend { node in node.childIndex(for: keys, first) }
        let leaf = path[path.count - 1].node
        // The nearest separator to the right ends the leaf.
        let fence = path.dropLast().last { $0.index + 1 < $0.node.count }
        let fenceHead = fence.map { $0.node.keyHead($0.index + 1) } ?? .max
        var (added, last, removesAny) = (0, 0, false)
        var sweep = LeafSweep(leaf)
        // At least one: a leaf from a file may be too heavy from the start.
        repeat {
            if sorted.isSuperseded(next) {
                next += 1
                continue
            }
            let (key, head) = (sorted.keyRange(next), sorted.head(next))
            // A key with a lower head is below.
            if head >= fenceHead, let fence,
                fence.node.compareKey(fence.index + 1, with: keys, key) <= 0
            {
                break
            }
            let isThere = sweep.seek(keys, key, head: head)
            if sorted.removes(next) {
                if isThere {
                    sweep.remove()
                    added -= 1
                    removesAny = true
                }
            } else if !isThere {
                last = sweep.front
                sweep.insert(keys, key, head: head)
                added += 1
            }
            next += 1
        } while next < sorted.count && isLight(leaf)
        sweep.finish()
        addRows(added, along: path)
        // A split after the last entry is for those that go on there.
        let goesOn = fence == nil && next < sorted.count
        path[path.count - 1].index = goesOn ? last : min(last, max(leaf.count - 2, 0))
        if !isLight(leaf) {
            try split(along: &path)
        } else if removesAny || leaf.count == 0 {
            try rebalance(path)
        }
    }

    // MARK: Remove

    /// Takes `key` out; false when it was not there.
    /// - Complexity: as `put`.
    @discardableResult
    func remove(_ key: [UInt8]) throws(EngineError) -> Bool {
        guard try tree.value(key) != nil else { return false }
        try removeExisting(key)
        return true
    }

    /// Takes a key out that was found a moment ago.
    func removeExisting(_ key: [UInt8]) throws(EngineError) {
        let path = try descend { node in node.childIndex(for: key) }
        let leaf = path[path.count - 1].node
        let (index, isEqual) = leaf.lowerBound(key)
        // A forged separator can lead a search for a row elsewhere than a search for its key.
        guard isEqual else {
            throw .damaged("a separator of tree \(id.rawValue) does not part its children")
        }
        leaf.remove(at: index)
        addRows(-1, along: path)
        try rebalance(path)
    }

    // MARK: Descent

    /// The path to a leaf with every node on it changeable.
    private func descend(
        _ choose: (TreeNode) -> Int
    ) throws(EngineError) -> ContiguousArray<Step> {
        forgetWays()
        var path: ContiguousArray<Step> = []
        path.reserveCapacity(root.level + 1)
        var node = try changeableRoot()
        while !node.isLeaf {
            let index = choose(node)
            path.append(Step(node: node, index: index))
            node = try changeableChild(of: node, at: index, path)
        }
        path.append(Step(node: node, index: 0))
        return path
    }

    /// Pages are checked one by one, so only here it shows that the keys of one lie outside what
    /// those above it say. A separator of such a page would make its parent unreadable.
    ///
    /// - Parameter path: the way to the page, without it.
    func requireInside(
        _ node: TreeNode,
        _ path: ContiguousArray<Step>
    ) throws(EngineError) {
        // The first key of an inner node is empty and stands for what its parent says.
        let first = node.isLeaf ? 0 : 1
        guard node.count > first else { return }
        var isInside = true
        if let low = path.last(where: { $0.index > 0 }) {
            let order = node.compareKey(first, with: low.node, at: low.index)
            isInside = node.isLeaf ? order >= 0 : order > 0
        }
        if let high = path.last(where: { $0.index + 1 < $0.node.count }) {
            let order = node.compareKey(node.count - 1, with: high.node, at: high.index + 1)
            if order >= 0 { isInside = false }
        }
        guard isInside else { throw isOutside }
    }

    private var isOutside: EngineError {
        .damaged("keys of a page of tree \(id.rawValue) lie outside what its parent says")
    }

    private func changeableRoot() throws(EngineError) -> TreeNode {
        let node: TreeNode
        if let existing = try tree.rootNode() {
            if existing.stamp == stamp { return existing }
            node = copy(existing, at: root.address)
        } else {
            node = TreeNode(stamp: stamp, level: 0)
            countChanged(1)
        }
        root.node = node
        root.address = nil
        return node
    }

    /// - Parameter path: the way to the child, for its keys to be looked at when it is not changed
    ///   yet; empty where they were.
    func changeableChild(
        of parent: TreeNode,
        at index: Int,
        _ path: ContiguousArray<Step>
    ) throws(EngineError) -> TreeNode {
        let existing = try tree.child(of: parent, at: index)
        if existing.stamp == stamp { return existing }
        // A changed node that is no root lies inside its parents: it was looked at before it was
        // changed, and every step since only widens what they say or splits at its own keys.
        if !path.isEmpty, existing.stamp == TreeNode.cleanStamp {
            try requireInside(existing, path)
        }
        let node = copy(existing, at: parent.child(index).address)
        parent.setChild(node, at: index)
        return node
    }

    func weightMax(_ node: TreeNode) -> Int { node.isLeaf ? splitWeight : innerWeight }

    /// Children from which an inner node is split above `innerWeight`. With fewer it may weigh what
    /// a leaf may: long keys would leave two or three children a node, and a tree of these grows by
    /// a level with every few splits.
    static let childrenMin = 16

    /// Whether a leaf need not be split. A compaction fills leaves by the bytes of their pages, so
    /// with its slots such a leaf weighs more than the limit, and its first change would split it.
    /// It may have an eighth more page bytes first.
    func isLight(_ leaf: TreeNode) -> Bool {
        if leaf.weight <= splitWeight { return true }
        return leaf.isFilled && leaf.pageBytes <= splitWeight / 8 * 9
    }

    func isTooHeavy(_ node: TreeNode) -> Bool {
        if node.isLeaf, isLight(node) { return false }
        // Two children with a long key between them stay together: a tree of inner nodes with one
        // child each would grow by a level with every split below.
        if node.weight > splitWeight { return node.count > (node.isLeaf ? 1 : 3) }
        return !node.isLeaf && node.weight > innerWeight && node.count > Self.childrenMin
    }

    func countChanged(_ count: Int) {
        changed += count
        allChanged.count += count
    }

    /// - Parameter address: the page of a node that is in the file.
    private func copy(_ node: TreeNode, at address: PageAddress?) -> TreeNode {
        countChanged(1)
        if let address, node.isLeaf, loader.writesEdits {
            allChanged.note(node, at: address.offset)
        }
        let slack = min(weightMax(node) / 8, 1024)
        let copy =
            node.isWorthEditing
            ? TreeNode(editing: node, at: address, stamp: stamp, slack: slack)
            : TreeNode(copying: node, stamp: stamp, slack: slack)
        // Leaves that were changed here never weigh so much.
        copy.isFilled = node.isLeaf && node.weight > splitWeight
        return copy
    }

    private func addRows(_ count: Int, along path: ContiguousArray<Step>) {
        for step in path.dropLast() { step.node.addRows(count, at: step.index) }
        let rows = UInt64(bitPattern: Int64(count))
        root.rows &+= rows
    }
}
