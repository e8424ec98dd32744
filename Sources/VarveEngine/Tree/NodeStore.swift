// Nodes of the file in memory: loading, checking, keeping.
//
// Invariants
// - An entry of the cache is never wrong, only evicted: a place in the file never changes.
// - The cache holds clean nodes only, up to a budget of bytes; nodes in use live on without it.
// - A page is checked once, when it is decoded: tree, level, ascending keys. Its row count is
//   compared with its parent's every time, so that counts add up in whatever was loaded.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

final class NodeStore: NodeLoading {
    private final class Entry {
        let node: TreeNode
        let rows: UInt64
        var wasUsed = true
        init(_ node: TreeNode) {
            self.node = node
            rows = node.rows
        }
    }
    private struct Cache {
        var entries: [FileOffset: Entry] = [:]
        var ring: [FileOffset] = []
        var hand = 0
        var bytes = 0
    }

    let log: LogReader
    private let budget: Int
    private let counters: EngineCounters
    private let cache = Mutex(Cache())

    init(log: LogReader, budget: Int, counters: EngineCounters) {
        self.log = log
        self.budget = budget
        self.counters = counters
    }

    var cachedBytes: Int { cache.withLock { $0.bytes } }

    func load(
        _ address: PageAddress,
        tree: TreeID,
        level: Int,
        rows: UInt64
    ) throws(EngineError) -> TreeNode {
        let offset = address.offset
        let found = cache.withLock { cache -> (node: TreeNode, rows: UInt64)? in
            guard let entry = cache.entries[offset] else { return nil }
            entry.wasUsed = true
            return (entry.node, entry.rows)
        }
        if let found {
            counters.nodeHits.add(1, ordering: .relaxed)
            // The cache is keyed by place alone: a page reached as another node is damage.
            guard found.node.level == level, found.rows == rows else { throw Self.unfit(address) }
            return found.node
        }
        counters.nodeMisses.add(1, ordering: .relaxed)
        let node = try decode(address, tree: tree, level: level)
        guard node.rows == rows else { throw Self.unfit(address) }
        insert(node, at: address)
        return node
    }

    private static func unfit(_ address: PageAddress) -> EngineError {
        .damaged(
            "page \(address.offset.frameName) is at another level, or has other row counts, than "
                + "its parent says",
            place: address.offset
        )
    }

    /// Keeps a clean node, and evicts others that were not used lately.
    func insert(_ node: TreeNode, at address: PageAddress) {
        precondition(node.stamp == TreeNode.cleanStamp, "only clean nodes are cached")
        let evicted = cache.withLock { cache -> Int in
            guard cache.entries[address.offset] == nil else { return 0 }
            cache.entries[address.offset] = Entry(node)
            cache.ring.append(address.offset)
            cache.bytes += node.footprint
            return Self.evict(&cache, budget: budget)
        }
        if evicted > 0 { counters.nodeEvictions.add(UInt64(evicted), ordering: .relaxed) }
    }

    /// Second chance: a node used since the hand last passed stays once more.
    private static func evict(_ cache: inout Cache, budget: Int) -> Int {
        var evicted = 0
        while cache.bytes > budget && cache.ring.count > 1 {
            if cache.hand >= cache.ring.count { cache.hand = 0 }
            let offset = cache.ring[cache.hand]
            guard let entry = cache.entries[offset] else {
                preconditionFailure("the ring names what the cache holds")
            }
            if entry.wasUsed {
                entry.wasUsed = false
                cache.hand += 1
            } else {
                cache.bytes -= entry.node.footprint
                cache.entries[offset] = nil
                cache.ring.swapAt(cache.hand, cache.ring.count - 1)
                cache.ring.removeLast()
                evicted += 1
            }
        }
        return evicted
    }

    /// Drops every node that nobody else holds.
    func removeAll() {
        cache.withLock { cache in cache = Cache() }
    }

    private func decode(
        _ address: PageAddress,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> TreeNode {
        let frame = try log.frame(address, kind: .page)
        do throws(FormatError) {
            return try PageCoding.node(frame, tree: tree, level: level)
        } catch {
            throw .damaged(error, place: address.offset)
        }
    }
}

/// Between nodes in memory and pages in the file.
enum PageCoding {
    /// The node of a verified page.
    static func node(
        _ frame: FrameBytes,
        tree: TreeID,
        level: Int
    ) throws(FormatError) -> TreeNode {
        let place = "page \(frame.offset.frameName)"
        let header = try PageHeader(decoding: frame.bytes, range: frame.payload, place: place)
        guard header.tree == tree, Int(header.level) == level else {
            throw FormatError(
                place: place,
                field: "tree and level",
                found: "tree \(header.tree.rawValue), level \(header.level)",
                expected: "tree \(tree.rawValue), level \(level)"
            )
        }
        let (bytes, range) = try Frame.body(
            of: frame.bytes,
            payload: frame.payload,
            header: frame.header,
            frontLength: PageHeader.length,
            place: place
        )
        let body = try PageBody(
            decoding: bytes,
            range: range,
            header: header,
            offset: frame.offset
        )
        // A prefix is stored once and unfolded for every key.
        let unfolded = body.suffixes.count.multipliedReportingOverflow(by: body.prefix.count)
        guard !unfolded.overflow, unfolded.partialValue <= FrameKind.page.payloadBytesMax else {
            throw FormatError(
                place: place,
                field: "prefix length",
                found: "\(body.prefix.count) bytes of \(body.suffixes.count) keys",
                expected: "at most \(FrameKind.page.payloadBytesMax) bytes in all"
            )
        }
        let node = TreeNode(
            stamp: TreeNode.cleanStamp,
            level: level,
            capacity: range.count + body.suffixes.count * (body.prefix.count + 24)
        )
        for index in body.suffixes.indices {
            let value = level == 0 ? body.values[index] : 0..<0
            let ascends = node.append(
                prefix: body.prefix,
                suffix: body.suffixes[index],
                value: value,
                of: bytes
            )
            guard ascends else {
                throw FormatError(
                    place: place,
                    field: "key",
                    found: "a key out of order",
                    expected: "ascending keys"
                )
            }
        }
        var sum: UInt64 = 0
        for child in body.children {
            let (next, overflow) = sum.addingReportingOverflow(child.rows)
            guard !overflow, child.rows > 0 else {
                throw FormatError(
                    place: place,
                    field: "rows",
                    found: "\(child.rows)",
                    expected: "a row count"
                )
            }
            sum = next
        }
        node.children = ContiguousArray(
            body.children.map { ChildPointer(node: nil, address: $0.address, rows: $0.rows) }
        )
        return node
    }

    /// Front and body of a node's page. Every child of an inner node must have its address.
    static func payload(
        of node: TreeNode,
        tree: TreeID,
        commit: CommitNumber
    ) -> (front: [UInt8], body: [UInt8]) {
        let header = PageHeader(
            tree: tree,
            level: UInt8(node.level),
            count: UInt16(node.count),
            commit: commit
        )
        let prefix = node.isLeaf ? node.commonPrefixCount() : 0
        var writer = ByteWriter(capacity: node.liveBytes + 8 * node.count)
        writer.count(prefix)
        if prefix > 0 { writer.raw(node.key(0)[..<prefix]) }
        for index in 0..<node.count { writer.count(node.keyCount(index) - prefix) }
        if node.isLeaf {
            for index in 0..<node.count { writer.count(node.valueCount(index)) }
        }
        node.appendKeySuffixes(skipping: prefix, to: &writer.bytes)
        if node.isLeaf {
            node.appendValues(to: &writer.bytes)
        } else {
            for child in node.children {
                guard let address = child.address else {
                    preconditionFailure("children are written before their parent")
                }
                PageChild(address: address, rows: child.rows).append(to: &writer)
            }
        }
        return (header.encoded(), writer.bytes)
    }
}
