// FENCE: the cache of clean nodes: found without a lock, loaded, checked, evicted.
//
// Invariants
// - An entry of the table is never wrong, only evicted: a place in the file never changes.
// - The table holds clean nodes only, up to a budget of bytes that it shares with the tables of
//   older files of the store; each may keep an eighth of it all the same.
// - A leaf that a scan or a long list passes takes room that is free, and of sixteen one the place
//   of another: reading more than fits once does not empty the table, so that the next time finds
//   what fits.
// - A page's row count is compared with its parent's every time, so that counts add up in whatever
//   was loaded.
//
// Who keeps a node alive, at each moment
// - A changed node: its parent, or the root in a `TreeRoot`, by a reference. A published state owns
//   its roots, a snapshot its state, a transaction its editors; every reader holds one of these.
//   A published node never changes, so nothing below a root goes while the root is held.
// - A clean node: the table, by a reference of its own. Taken out of the table it goes to `limbo`,
//   with that reference, and leaves it when no operation is running that began before it was taken
//   out (`ReaderEpochs`). So inside an operation every node that the table showed can be read
//   without a reference, and a reference can be taken. After the operation, only nodes to which a
//   reference was taken can be read.
// - A node on its way between two operations of a cursor: the cursor, by a reference.
// The same holds for the table's own block when a larger one takes its place.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

@safe final class NodeCache: Sendable {
    typealias Node = Unmanaged<TreeNode>

    @safe private struct Cache: ~Copyable {
        var table: NodeTable
        var count = 0
        var bytes = 0
        /// The entry that eviction looks at next.
        var hand = 0
        /// Leaves that were passed while there was no room.
        var passed = 0
        var limbo = Limbo()
        /// Nodes that came since the last check.
        var unchecked = 0
    }

    /// What is out of the table and may still be read, oldest first.
    @safe private struct Limbo {
        @safe enum Thing {
            case node(Node)
            case table(NodeTable)
        }
        var things: [(epoch: UInt64, thing: Thing, bytes: Int)] = []
        var bytes = 0
        /// Length and bytes from which the next look at the readers is worth it.
        var patience = (count: Limbo.step, bytes: Limbo.stepBytes)
        static let step = 32
        static let stepBytes = 256 << 10

        mutating func add(_ thing: Thing, bytes: Int, epoch: UInt64) {
            things.append((epoch, thing, bytes))
            self.bytes += bytes
        }
    }

    let log: LogReader
    let budget: NodeBudget
    let writesEdits: Bool
    private let counters: EngineCounters
    let epochs: ReaderEpochs
    /// Address of the table that readers use.
    private let table: Atomic<UInt>
    private let cache: Mutex<Cache>

    private static let bucketsAtFirst = 16
    /// One in so many passed leaves is kept though there is no room: else what was read once and
    /// never again would stay.
    private static let passedPerKept = 16

    /// - Parameter writesEdits: whether the file may have leaves that are packed ones with changes.
    init(
        log: LogReader,
        budget: NodeBudget,
        counters: EngineCounters,
        writesEdits: Bool = false
    ) {
        self.log = log
        self.writesEdits = writesEdits
        self.budget = budget
        epochs = budget.readers
        self.counters = counters
        let first = NodeTable(buckets: Self.bucketsAtFirst)
        table = Atomic(first.address)
        cache = Mutex(Cache(table: first))
    }

    deinit {
        // Every reader holds the store, also a thread that helps a scan: so nobody reads now.
        cache.withLock { cache in
            budget.give(cache.bytes)
            budget.leaveLimbo(cache.limbo.bytes)
            for entry in 0..<cache.table.capacity {
                unsafe cache.table.take(at: entry)?.release()
            }
            Self.free(cache.limbo.things.map(\.thing))
            cache.table.deallocate()
        }
    }

    // MARK: Operations

    /// Runs `body` as one operation: the nodes that `find` and `borrow` hand out stay in memory
    /// until it returns. It should not take long: what is evicted meanwhile is freed only after
    /// it.
    @inline(__always)
    func operation<R>(
        _ body: () throws(EngineError) -> R
    ) throws(EngineError) -> R {
        let ticket = epochs.enter()
        defer { epochs.leave(ticket) }
        return try body()
    }

    /// The node of a page if it is in memory. Inside an operation only.
    @inline(__always)
    func find(_ offset: UInt64) -> Node? {
        let table = table.load(ordering: .sequentiallyConsistent)
        guard let node = unsafe NodeTable.find(offset, in: table) else { return nil }
        epochs.countHit()
        unsafe node._withUnsafeGuaranteedRef { $0.markUsed() }
        return unsafe node
    }

    /// The same, neither counted nor marked as used: nobody reads its rows.
    @inline(__always)
    func peek(_ offset: UInt64) -> Node? {
        unsafe NodeTable.find(offset, in: table.load(ordering: .sequentiallyConsistent))
    }

    /// The node of a page with `rows` entries below it. Inside an operation only.
    ///
    /// - Parameter passes: whether this is one of many leaves that are read in a row.
    /// - Throws: `damaged` when the page is not what its parent says, `ioFailed`.
    @inline(__always)
    func borrow(
        _ pointer: NodePointer,
        tree: TreeID,
        level: Int,
        passes: Bool = false
    ) throws(EngineError) -> Node {
        if let node = unsafe try findFitting(pointer, tree: tree, level: level) {
            return unsafe node
        }
        return unsafe try read(pointer, tree: tree, level: level, passes: passes)
    }

    /// The node of a page with `rows` entries below it, if it is in memory. Inside an operation
    /// only.
    /// - Throws: `damaged` when the page is not what its parent says.
    @inline(__always)
    func findFitting(
        _ pointer: NodePointer,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> Node? {
        guard let node = unsafe find(pointer.offset) else { return nil }
        // The table is keyed by place alone: a page reached as another node is damage. What a
        // forged file names wrongly must not be answered only because the page is in memory.
        let fits = unsafe node._withUnsafeGuaranteedRef {
            unsafe $0.level == level && $0.rows == pointer.rows
                && $0.isPage(pointer, of: tree)
        }
        if fits { return unsafe node }
        throw unsafe Self.unfit(pointer)
    }

    /// As `borrow`, with a reference.
    func load(
        _ address: PageAddress,
        tree: TreeID,
        level: Int,
        rows: UInt64
    ) throws(EngineError) -> TreeNode {
        let pointer = unsafe NodePointer(ChildPointer(node: nil, address: address, rows: rows))
        return try operation { () throws(EngineError) in
            unsafe try borrow(pointer, tree: tree, level: level).takeUnretainedValue()
        }
    }

    /// A page that is not in memory. Inside an operation only.
    @inline(never)
    func read(
        _ pointer: NodePointer,
        tree: TreeID,
        level: Int,
        passes: Bool
    ) throws(EngineError) -> Node {
        epochs.countMiss()
        guard let address = unsafe pointer.address else {
            preconditionFailure("a child is in memory or in the file")
        }
        let node = unsafe try checked(address, rows: pointer.rows, tree: tree, level: level)
        return unsafe keep(node, of: tree, at: address, passes: passes && level == 0)
    }

    func checked(
        _ address: PageAddress,
        rows: UInt64,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> TreeNode {
        let node = try decode(address, tree: tree, level: level)
        guard node.rows == rows else { throw Self.unfit(address.offset) }
        return node
    }

    static func unfit(_ pointer: NodePointer) -> EngineError {
        unfit(FileOffset(unsafe pointer.offset))
    }

    private static func unfit(_ offset: FileOffset) -> EngineError {
        .damaged(
            "page \(offset.frameName) is another one, of another tree, at another level, or has "
                + "other row counts, than its parent says",
            place: offset
        )
    }

    // MARK: Keeping and evicting

    /// Keeps a clean node, and evicts others that were not used lately.
    ///
    /// - Parameter passes: whether this is one of many leaves that are read in a row.
    /// - Returns: the node that stands for the place now.
    @discardableResult
    func insert(
        _ node: TreeNode,
        of tree: TreeID,
        at address: PageAddress,
        passes: Bool = false
    ) -> TreeNode {
        // A node knows its place, and one that was written anew has two.
        let isPlaced = node.place != 0 && node.place != address.offset.rawValue
        let node =
            isPlaced ? TreeNode(copying: node, stamp: TreeNode.cleanStamp, slack: 0) : node
        let ticket = epochs.enter()
        defer { epochs.leave(ticket) }
        return unsafe keep(node, of: tree, at: address, passes: passes).takeUnretainedValue()
    }

    /// The node that stands for the place now: `node`, or the one that another thread put there
    /// first. Inside an operation only.
    private func keep(
        _ node: TreeNode,
        of tree: TreeID,
        at address: PageAddress,
        passes: Bool
    ) -> Node {
        precondition(node.stamp == TreeNode.cleanStamp, "only clean nodes are cached")
        let offset = address.offset.rawValue
        node.becomeStored(at: address, of: tree)
        if budget.isLookDue(after: node.footprint) { budget.lookAtMemory() }
        let (kept, evicted, dead) = unsafe cache.withLock { cache in
            if let there = unsafe NodeTable.find(offset, in: cache.table.address) {
                return unsafe (there, 0, [Limbo.Thing]())
            }
            let mine = unsafe Node.passRetained(node)
            if passes && letsPass(node, &cache) {
                budget.enterLimbo(node.footprint)
                unsafe cache.limbo.add(.node(mine), bytes: node.footprint, epoch: epochs.close())
                return unsafe (mine, 0, reclaim(&cache))
            }
            var evicted = 0
            while !(unsafe cache.table.put(mine, at: offset)) {
                if 2 * cache.count >= cache.table.capacity {
                    grow(&cache)
                } else {
                    evict(cache.table.entryInTheWay(of: offset), &cache)
                    evicted += 1
                }
            }
            cache.count += 1
            cache.bytes += node.footprint
            budget.take(node.footprint)
            if 2 * cache.count > cache.table.capacity { grow(&cache) }
            evicted += evictToBudget(&cache)
            let dead = reclaim(&cache)
            checkIfDue(&cache)
            return unsafe (mine, evicted, dead)
        }
        // Outside the lock: freeing takes time.
        Self.free(dead)
        if budget.takeDebt() { MachineMemory.giveFreedBack() }
        if evicted > 0 { counters.nodeEvictions.add(UInt64(evicted), ordering: .relaxed) }
        return unsafe kept
    }

    /// Whether a passed leaf is only lent: as if it was evicted at once.
    private func letsPass(_ node: TreeNode, _ cache: inout Cache) -> Bool {
        guard !budget.hasRoom(node.footprint), cache.bytes > budget.bytesNow / 8 else {
            return false
        }
        cache.passed += 1
        return cache.passed % Self.passedPerKept != 0
    }

    private func evict(_ entry: Int, _ cache: inout Cache) {
        guard let node = unsafe cache.table.take(at: entry) else {
            preconditionFailure("the entry holds a node")
        }
        let bytes = unsafe node._withUnsafeGuaranteedRef { $0.footprint }
        cache.count -= 1
        cache.bytes -= bytes
        budget.give(bytes)
        budget.enterLimbo(bytes)
        unsafe cache.limbo.add(.node(node), bytes: bytes, epoch: epochs.close())
    }

    /// Second chance: a node used since the hand last passed stays once more.
    private func evictToBudget(_ cache: inout Cache) -> Int {
        var evicted = 0
        while budget.isExceeded && cache.count > 1 && cache.bytes > budget.bytesNow / 8 {
            if cache.hand >= cache.table.capacity { cache.hand = 0 }
            let entry = cache.hand
            cache.hand += 1
            guard let node = unsafe cache.table.node(at: entry) else { continue }
            if unsafe node._withUnsafeGuaranteedRef({ $0.clearUsed() }) { continue }
            evict(entry, &cache)
            evicted += 1
        }
        return evicted
    }

    /// Gives back what is more than may be used now, and what no reader needs any more.
    func shrinkToBudget() {
        let (evicted, dead) = cache.withLock { cache in
            (evictToBudget(&cache), reclaim(&cache, waits: false))
        }
        Self.free(dead)
        if evicted > 0 { counters.nodeEvictions.add(UInt64(evicted), ordering: .relaxed) }
    }

    /// Gives the memory to others: after a compaction few read the old file.
    func evictAll() {
        let dead = cache.withLock { cache in
            for entry in 0..<cache.table.capacity
            where unsafe cache.table.node(at: entry) != nil {
                evict(entry, &cache)
            }
            return reclaim(&cache, waits: false)
        }
        Self.free(dead)
        if Invariants.areChecked { check() }
    }

    /// Twice the buckets. Readers of the old table go on with it until they leave.
    private func grow(_ cache: inout Cache) {
        var buckets = 2 * cache.table.buckets
        while true {
            let larger = NodeTable(buckets: buckets)
            if Self.copy(cache.table, into: larger) {
                let old = cache.table
                cache.table = larger
                table.store(larger.address, ordering: .sequentiallyConsistent)
                budget.enterLimbo(old.footprint)
                cache.limbo.add(.table(old), bytes: old.footprint, epoch: epochs.close())
                return
            }
            larger.deallocate()
            buckets *= 2
        }
    }

    /// The nodes' references pass from one table to the other.
    private static func copy(_ table: NodeTable, into larger: NodeTable) -> Bool {
        for entry in 0..<table.capacity {
            guard let node = unsafe table.node(at: entry) else { continue }
            let place = unsafe node._withUnsafeGuaranteedRef { $0.place }
            guard unsafe larger.put(node, at: place) else { return false }
        }
        return true
    }

    /// What no reader can see any more.
    /// - Parameter waits: whether a look at the readers has to be worth it. While memory is scarce
    ///   it is from the first 256 KiB on.
    private func reclaim(_ cache: inout Cache, waits: Bool = true) -> [Limbo.Thing] {
        let (count, bytes) = (cache.limbo.things.count, cache.limbo.bytes)
        let isDue =
            !waits || count >= cache.limbo.patience.count
            || bytes >= cache.limbo.patience.bytes
            || budget.isScarce && bytes >= Limbo.stepBytes
        guard isDue, count > 0 else { return [] }
        let oldest = epochs.oldest()
        var dead: [Limbo.Thing] = []
        for waiting in cache.limbo.things {
            guard waiting.epoch < oldest else { break }
            dead.append(waiting.thing)
            cache.limbo.bytes -= waiting.bytes
        }
        budget.leaveLimbo(bytes - cache.limbo.bytes)
        cache.limbo.things.removeFirst(dead.count)
        cache.limbo.patience = (
            cache.limbo.things.count + Limbo.step, cache.limbo.bytes + Limbo.stepBytes
        )
        return dead
    }

    private static func free(_ things: [Limbo.Thing]) {
        for thing in things {
            switch thing {
            case .node(let node): unsafe node.release()
            case .table(let table): table.deallocate()
            }
        }
    }

    // MARK: Invariants

    /// After as many nodes as the table has entries: so a node that comes pays for one entry.
    private func checkIfDue(_ cache: inout Cache) {
        guard Invariants.areChecked else { return }
        cache.unchecked += 1
        if cache.unchecked < cache.table.capacity { return }
        cache.unchecked = 0
        check(cache)
    }

    /// Traps where the cache is not what its invariants say.
    /// - Complexity: O(entries).
    func check() { cache.withLock { check($0) } }

    private func check(_ cache: borrowing Cache) {
        let (shown, limbo) = (cache.table, cache.limbo)
        precondition(table.load(ordering: .relaxed) == shown.address, "readers use this table")
        var (count, bytes) = (0, 0)
        for entry in 0..<shown.capacity {
            guard let held = unsafe shown.node(at: entry) else { continue }
            let node = unsafe held.takeUnretainedValue()
            count += 1
            bytes += node.footprint
            precondition(node.stamp == TreeNode.cleanStamp, "only clean nodes are cached")
            let found = unsafe NodeTable.find(node.place, in: shown.address)
            precondition(unsafe found?.toOpaque() == held.toOpaque(), "a node is at its place")
        }
        precondition(count == cache.count && 2 * count <= shown.capacity, "entries are counted")
        precondition(bytes == cache.bytes, "bytes of cached nodes are counted")
        precondition(bytes <= budget.usedBytes, "the budget knows the bytes of cached nodes")
        var waiting = 0
        for (index, thing) in limbo.things.enumerated() {
            waiting += thing.bytes
            precondition(
                index == 0 || limbo.things[index - 1].epoch <= thing.epoch,
                "what is out of the table waits in order"
            )
        }
        precondition(
            waiting == limbo.bytes && waiting <= budget.limboBytes,
            "bytes out of the table are counted"
        )
    }

    /// Stored bytes of the packed leaf that a leaf in the file changes; 0: it changes none.
    ///
    /// - Throws: `damaged`, `ioFailed` where the leaf is not in memory.
    /// - Complexity: O(1); reads a few bytes, or the page of a leaf that changes another, where the
    ///   leaf is not in memory.
    func basisBytes(of address: PageAddress, tree: TreeID) throws(EngineError) -> UInt64 {
        if !writesEdits { return 0 }
        let known = try operation { () throws(EngineError) -> UInt64? in
            guard let node = unsafe peek(address.offset.rawValue) else { return nil }
            return unsafe node._withUnsafeGuaranteedRef { $0.basis?.address?.frameLength ?? 0 }
        }
        if let known { return known }
        return try log.basisBytes(of: address, tree: tree)
    }

    private func decode(
        _ address: PageAddress,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> TreeNode {
        let fits = FrameHeader.length + Int(address.storedLength) <= ReadBuffers.length
        let frame =
            fits
            ? try log.frame(address, kind: .page, in: ReadBuffers.take())
            : try log.frame(address, kind: .page)
        defer { if fits { ReadBuffers.give(frame.bytes) } }
        return try log.node(frame, tree: tree, level: level)
    }
}
