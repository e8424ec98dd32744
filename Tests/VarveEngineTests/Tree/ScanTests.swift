// Scans: leaves read ahead by several threads, and a cache that a scan passes without emptying it.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct ScanTests {
    private let entity = TestDelegate.entity
    private let count: UInt64 = 4_000

    /// Some 250 leaves of rows, and as many of each index, below two levels of inner nodes.
    private func makeStore(
        cacheBytes: Int,
        threads: Int,
        _ directory: MemoryDirectory = MemoryDirectory()
    ) throws -> (engine: Engine, first: UInt64) {
        let engine = try Engine.openTest(directory) { options in
            options.nodeWeightMax = 512
            options.nodeCacheBytes = cacheBytes
            options.readingThreads = threads
        }
        let first = engine.allocateObjectIDs(Int(count)).rawValue
        _ = try engine.write { transaction in
            for object in first..<(first + count) {
                try transaction.insert(entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        try engine.checkpoint()
        return (engine, first)
    }

    /// All object IDs as a scan in one direction lends their rows.
    private func scanned(_ snapshot: Snapshot, isForward: Bool) throws -> [UInt64] {
        var cursor = snapshot.cursor(TestDelegate.rows)
        var found: [UInt64] = []
        guard try isForward ? cursor.first() : cursor.last() else { return [] }
        try cursor.visitRows(isForward: isForward) { object, _, row in
            let value = try? RowLayout(row).slot(ColumnID(0), in: row).int(in: row)
            if value == Int64(object.rawValue) { found.append(object.rawValue) }
            return true
        }
        return found
    }

    @Test(arguments: [1, 2, 3], [8 << 10, 64 << 10, 1 << 20])
    func aScanLendsEveryRowInOrder(threads: Int, cacheBytes: Int) throws {
        let (engine, first) = try makeStore(cacheBytes: cacheBytes, threads: threads)
        let all = Array(first..<(first + count))
        for _ in 0..<2 {
            let snapshot = engine.snapshot()
            #expect(try scanned(snapshot, isForward: true) == all)
            #expect(try scanned(snapshot, isForward: false) == all.reversed())
            var ids: [ObjectID] = []
            var cursor = snapshot.cursor(TestDelegate.byInt)
            #expect(try cursor.first())
            let taken = try cursor.takeObjectIDs(
                limit: .max,
                isForward: true,
                end: nil,
                into: &ids
            )
            #expect(taken == all.count && ids.map(\.rawValue) == all)
        }
        #expect(engine.statistics.nodeCacheBytes <= UInt64(max(cacheBytes, 1)) + 2_048)
    }

    /// What fits into the cache is found there by the next scan: with eviction in the order of the
    /// scan each leaf would be gone just before it comes again.
    @Test(arguments: [1, 2]) func aScanOfMoreThanTheCacheFindsWhatFits(threads: Int) throws {
        let (engine, _) = try makeStore(cacheBytes: 64 << 10, threads: threads)
        let snapshot = engine.snapshot()
        for _ in 0..<3 { _ = try scanned(snapshot, isForward: true) }
        let before = engine.statistics
        #expect(try scanned(snapshot, isForward: true).count == Int(count))
        let misses = Int(engine.statistics.nodeMisses - before.nodeMisses)
        let hits = Int(engine.statistics.nodeHits - before.nodeHits)
        #expect(misses > 100)
        #expect(hits > (hits + misses) / 5, "\(hits) of \(hits + misses)")
    }

    /// A list of many IDs is a scan with gaps.
    @Test func aLongListFindsWhatFits() throws {
        let (engine, first) = try makeStore(cacheBytes: 128 << 10, threads: 1)
        let snapshot = engine.snapshot()
        let ids = (first..<(first + count)).map { ObjectID($0) }
        func read() throws {
            var seen = 0
            try snapshot.withRows(TestDelegate.rows, ids) { _, _, _ in
                seen += 1
                return true
            }
            #expect(seen == ids.count)
        }
        for _ in 0..<3 { try read() }
        let before = engine.statistics
        try read()
        let misses = Int(engine.statistics.nodeMisses - before.nodeMisses)
        let hits = Int(engine.statistics.nodeHits - before.nodeHits)
        // Three levels, of which the two above the leaves are always there.
        let leaves = (hits + misses) / 3
        let leafHits = hits - 2 * leaves
        #expect(misses > 100)
        #expect(leafHits > leaves / 5, "\(leafHits) of \(leaves)")
    }

    /// IDs of a list that no row has, behind the last row of a leaf and below the next leaf's: they
    /// do not lead down to the same leaf one by one.
    @Test func absentIDsDoNotReadTheirLeafAgain() throws {
        let engine = try Engine.openTest(MemoryDirectory()) { options in
            options.nodeWeightMax = 512
            options.nodeCacheBytes = 32 << 10
        }
        let first = engine.allocateObjectIDs(40_000).rawValue
        _ = try engine.write { transaction in
            for object in stride(from: first, to: first + 40_000, by: 40) {
                try transaction.insert(entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        try engine.checkpoint()
        let snapshot = engine.snapshot()
        func misses(_ body: () throws -> Void) throws -> Int {
            let before = engine.statistics.nodeMisses
            try body()
            return Int(engine.statistics.nodeMisses - before)
        }
        for _ in 0..<2 { _ = try scanned(snapshot, isForward: true) }
        let ofScan = try misses { _ = try scanned(snapshot, isForward: true) }
        let ids = (first..<(first + 40_000)).map { ObjectID($0) }
        var seen = 0
        let ofList = try misses {
            try snapshot.withRows(TestDelegate.rows, ids) { position, _, _ in
                if ids[position].rawValue % 40 == first % 40 { seen += 1 }
                return true
            }
        }
        #expect(seen == 1_000)
        #expect(ofScan > 30)
        #expect(ofList <= ofScan + ofScan / 4, "\(ofList) misses, a scan \(ofScan)")
    }

    /// A page may unfold to much more than its bytes.
    @Test(arguments: [1, 2], [false, true])
    func leavesAheadEndBehindTheirBytes(threads: Int, restoresNow: Bool) throws {
        let (engine, first) = try makeStore(cacheBytes: 8 << 10, threads: threads)
        let snapshot = engine.snapshot()
        let nodes = snapshot.state.generation.nodes
        let (_, parent) = try leaf(engine, of: ObjectID(first + 2_000))
        let all = Array(0..<parent.count)
        #expect(all.count > 10)
        func read(_ bytesMax: Int) throws -> [UInt64] {
            let batch = nodes.findLeaves(
                under: parent,
                all,
                tree: TestDelegate.rows,
                bytesMax: bytesMax,
                restoresNow: restoresNow
            )
            return try nodes.restoredLeaves(batch).map { try $0.get().rows }
        }
        let rows = parent.children.map(\.rows)
        #expect(try read(.max) == rows)
        for bytesMax in [0, 1, 2_048] {
            let some = try read(bytesMax)
            #expect(some.count >= 1 && some.count < all.count)
            #expect(some == Array(rows.prefix(some.count)))
        }
    }

    /// A cursor is a value, and its copies share what is restored for them meanwhile.
    @Test(arguments: [UInt64(11), 12]) func copiesOfACursorGoTheirOwnWays(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let (engine, first) = try makeStore(cacheBytes: 32 << 10, threads: 2)
        var cursors = [(cursor: engine.snapshot().cursor(TestDelegate.rows), place: first)]
        #expect(try cursors[0].cursor.first())
        for _ in 0..<60 {
            let chosen = Int.random(in: 0..<cursors.count, using: &random)
            for _ in 0..<Int.random(in: 1...400, using: &random)
            where try cursors[chosen].cursor.next() {
                cursors[chosen].place += 1
            }
            let (cursor, place) = cursors[chosen]
            if cursor.isValid {
                #expect(try cursor.trailingObjectID().rawValue == place, "seed \(seed)")
            } else {
                #expect(place == first + count - 1, "seed \(seed)")
                cursors[chosen] = (engine.snapshot().cursor(TestDelegate.rows), first)
                #expect(try cursors[chosen].cursor.first())
            }
            if cursors.count < 4 { cursors.append(cursors[chosen]) }
        }
    }

    /// Leaves that a scan needs again and again get in though the cache is full of others.
    @Test func whatIsScannedOftenTakesThePlaceOfWhatIsNot() throws {
        let (engine, first) = try makeStore(cacheBytes: 64 << 10, threads: 2)
        let snapshot = engine.snapshot()
        // The cache is full of rows that nobody wants again.
        for object in first..<(first + count) {
            _ = try snapshot.withRow(TestDelegate.rows, ObjectID(object)) { _, _ in }
        }
        func readIndex() throws -> UInt64 {
            let before = engine.statistics.nodeMisses
            var ids: [ObjectID] = []
            var cursor = snapshot.cursor(TestDelegate.byInt)
            _ = try cursor.first()
            _ = try cursor.takeObjectIDs(limit: .max, isForward: true, end: nil, into: &ids)
            #expect(ids.count == Int(count))
            return engine.statistics.nodeMisses - before
        }
        let early = try readIndex()
        for _ in 0..<60 { _ = try readIndex() }
        let late = try readIndex()
        #expect(late < early - early / 10, "\(early) misses, later \(late)")
    }

    /// Random moves of a cursor against a list, in a snapshot and in a transaction.
    @Test(arguments: [UInt64(1), 2, 3, 4])
    func aCursorThatTurnsStandsWhereTheListSays(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let (engine, first) = try makeStore(cacheBytes: 32 << 10, threads: 2)
        let end = first + count
        func walk(_ cursor: inout TreeCursor) throws {
            for _ in 0..<200 {
                let start = UInt64.random(in: first..<end, using: &random)
                #expect(try cursor.seek(atOrAfter: EngineKeys.object(ObjectID(start))))
                var place = start
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    // Far enough for leaves to be read ahead, then back again.
                    let steps = UInt64.random(in: 1...900, using: &random)
                    let isForward = Bool.random(using: &random)
                    for _ in 0..<steps {
                        let isThere = try isForward ? cursor.next() : cursor.previous()
                        place = isForward ? place + 1 : place - 1
                        guard isThere else { break }
                    }
                    guard cursor.isValid else { break }
                    #expect(try cursor.trailingObjectID().rawValue == place, "seed \(seed)")
                }
                #expect(cursor.isValid == (place >= first && place < end), "seed \(seed)")
            }
        }
        var cursor = engine.snapshot().cursor(TestDelegate.rows)
        try walk(&cursor)
        _ = try engine.write { transaction in
            for object in stride(from: first, to: end, by: 7) {
                try transaction.update(entity, ObjectID(object), patch: patch(nil, "other"))
            }
            var cursor = try transaction.cursor(TestDelegate.rows)
            try walk(&cursor)
        }
    }

    /// A leaf that cannot be read is told when the scan gets there: the rows before it are lent.
    @Test(.damagesStores("a leaf is overwritten"), arguments: [1, 2]) func damageIsToldWhereItIs(
        threads: Int
    ) throws {
        let directory = MemoryDirectory()
        var damaged = PageAddress?.none
        var first: UInt64 = 0
        do {
            let (engine, start) = try makeStore(cacheBytes: 8 << 10, threads: 1, directory)
            first = start
            damaged = try leaf(engine, of: ObjectID(first + 3_000)).address
            try engine.close()
        }
        let place = Int(try #require(damaged).offset.rawValue) + FrameHeader.length + 30
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let byte = try file.read(at: FileOffset(UInt64(place)), count: 1)[0]
        try file.write([byte ^ 0x10], at: FileOffset(UInt64(place)))
        let engine = try Engine.openTest(directory, mode: .readOnly) { options in
            options.nodeCacheBytes = 8 << 10
            options.readingThreads = threads
        }
        var cursor = engine.snapshot().cursor(TestDelegate.rows)
        var found: [UInt64] = []
        #expect(try cursor.first())
        #expect {
            try cursor.visitRows { object, _, _ in
                found.append(object.rawValue)
                return true
            }
        } throws: { ($0 as? EngineError)?.code == .damaged }
        #expect(found == Array(first..<(first + UInt64(found.count))))
        #expect(found.count > 2_900 && found.count <= 3_000)
        // Behind it all others are lent.
        var rest = engine.snapshot().cursor(TestDelegate.rows)
        #expect(try rest.seek(atOrAfter: EngineKeys.object(ObjectID(first + 3_100))))
        try rest.visitRows { object, _, _ in
            found.append(object.rawValue)
            return true
        }
        #expect(found.suffix(900) == Array(first + 3_100..<first + count)[...])
    }

    /// The page of an object's leaf, and the node above it.
    private func leaf(
        _ engine: Engine,
        of object: ObjectID
    ) throws -> (address: PageAddress?, parent: TreeNode) {
        let snapshot = engine.snapshot()
        let root = try #require(snapshot.state.trees[TestDelegate.rows])
        let tree = Tree(
            id: TestDelegate.rows,
            root: root,
            loader: snapshot.state.generation.nodes,
            isPublished: true
        )
        var node = try #require(try tree.rootNode())
        while node.level > 1 {
            node = try tree.child(of: node, at: node.childIndex(object: object))
        }
        return (node.children[node.childIndex(object: object)].address, node)
    }
}
