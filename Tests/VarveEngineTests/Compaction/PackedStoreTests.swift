// Stores whose leaves a compaction packed say what they said before, whatever is done to them.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct PackedStoreTests {
    static let rows: UInt64 = 3_000

    static func open(_ directory: any StoreDirectory, packs: Bool = true) throws -> Engine {
        try Engine.openTest(directory) {
            $0.packsLeaves = packs
            $0.packsAnyLeaf = true
            $0.compactsAutomatically = false
            $0.maintenance = .inline
        }
    }

    /// Rows with words that come again, numbers and gaps between IDs.
    static func fill(_ engine: Engine) throws {
        let words = ["harbour", "lighthouse", "Überfahrt", "tide", "海", "anchor"]
        _ = try engine.write { transaction in
            for number in 1...rows {
                let place = Int(number)
                let text = (0..<(place % 9)).map { words[(place / 3 + $0 * $0) % words.count] }
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(number * 2 + number / 100 * 1000),
                    row: row(Int64(place * 37 % 1000) - 200, text.joined(separator: " "))
                )
            }
        }
    }

    /// Pages of rows by layout, and places of the symbol tables of the newest checkpoint.
    static func layouts(
        _ directory: any StoreDirectory
    ) throws -> (packed: Int, plain: Int, edited: Int, symbols: [PageAddress]) {
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var found: (packed: Int, plain: Int, edited: Int, symbols: [PageAddress]) = (0, 0, 0, [])
        for root in observer.tail?.roots ?? [] where root.tree == TestDelegate.rows {
            var places: [PageAddress] = []
            try observer.audit(root) { page, error in
                #expect(error == nil, "\(error?.message ?? "")")
                if page.isSymbols {
                    found.symbols.append(page.address)
                } else if page.level == 0, !page.isBasis {
                    places.append(page.address)
                }
                return true
            }
            for place in places {
                switch try observer.frame(at: place.offset)?.page?.layout {
                case PageHeader.packedLayout: found.packed += 1
                case PageHeader.editedLayout: found.edited += 1
                default: found.plain += 1
                }
            }
        }
        return found
    }

    @Test func aPackedStoreShowsTheSameInLessRoom() throws {
        let directory = MemoryDirectory()
        var engine = try Self.open(directory, packs: false)
        try Self.fill(engine)
        let contents = try engine.contents()
        let plainSize = try engine.compact().bytesAfter
        #expect(try Self.layouts(directory).packed == 0)
        try engine.close()
        engine = try Self.open(directory)
        let packedSize = try engine.compact().bytesAfter
        let header = try LogObserver.open(.directory(directory, name: "test")).header
        #expect(header.readerNeeds == FileHeader.editedVersion)
        let layouts = try Self.layouts(directory)
        #expect(layouts.packed > 10 && layouts.plain == 0)
        #expect(layouts.symbols.count == 2)
        if layouts.symbols.count == 2 {
            let ends = layouts.symbols.map {
                ($0.offset.rawValue, $0.offset.rawValue + $0.frameLength)
            }
            #expect(ends[0].1 + 4096 <= ends[1].0, "no damaged page of 4 KiB takes both copies")
        }
        print("3,000 rows: \(plainSize) bytes plain, \(packedSize) packed")
        #expect(packedSize < plainSize)
        #expect(try engine.contents() == contents)
        try Self.checkReads(engine.snapshot(), contents)
        try engine.close()
        engine = try Self.open(directory)
        #expect(try engine.contents() == contents)
        try Self.checkReads(engine.snapshot(), contents)
        // Back to what every library can open.
        try engine.close()
        engine = try Self.open(directory, packs: false)
        _ = try engine.compact()
        #expect(try Self.layouts(directory).packed == 0)
        let old = try LogObserver.open(.directory(directory, name: "test")).header
        #expect(old.readerNeeds == FileHeader.currentVersion)
        #expect(try engine.contents() == contents)
    }

    /// Each way to get at a row gives what the others give.
    static func checkReads(_ snapshot: Snapshot, _ contents: [UInt64: String]) throws {
        let tree = TestDelegate.rows
        let objects = contents.keys.sorted().map { ObjectID($0) }
        var listed: [UInt64: StoredRow] = [:]
        try snapshot.rows(tree, objects) { listed[objects[$0].rawValue] = $1 }
        #expect(listed.count == objects.count)
        var forward = snapshot.cursor(tree)
        #expect(try forward.first())
        var seen: [UInt64] = []
        try forward.visitRows { object, version, row in
            seen.append(object.rawValue)
            let bytes = (0..<row.count).map { row[$0] }
            #expect(listed[object.rawValue]?.bytes == bytes)
            #expect(listed[object.rawValue]?.version == version)
            return true
        }
        #expect(seen == objects.map(\.rawValue))
        var backward = snapshot.cursor(tree)
        #expect(try backward.last())
        var reversed: [UInt64] = []
        try backward.visitRows(isForward: false) { object, _, row in
            reversed.append(object.rawValue)
            return row.count > 0
        }
        #expect(reversed == seen.reversed())
        for (place, object) in objects.enumerated() where place % 17 == 0 {
            #expect(try snapshot.row(tree, object)?.bytes == listed[object.rawValue]?.bytes)
            #expect(try snapshot.contains(tree, object))
            let key = EngineKeys.object(object)
            #expect(try snapshot.position(tree, of: key) == UInt64(place))
            #expect(try snapshot.value(tree, key)?.count ?? 0 > 1)
            // A neighbour that is not there.
            let between = ObjectID(object.rawValue + 1)
            if contents[between.rawValue] != nil { continue }
            #expect(try snapshot.row(tree, between) == nil)
            var cursor = snapshot.cursor(tree)
            let isThere = try cursor.seek(atOrAfter: EngineKeys.object(between))
            #expect(isThere == (place + 1 < objects.count))
            if isThere { #expect(try cursor.trailingObjectID() == objects[place + 1]) }
        }
        let blocks = try snapshot.rowBlocks(tree, objects)
        #expect(blocks.reduce(0) { $0 + $1.rows.count } == objects.count)
        for row in blocks.flatMap({ block in block.rows.map { (block, $0) } }) {
            let bytes = row.0.bytes[row.1.start..<row.1.start + row.1.count]
            #expect(listed[objects[row.1.position].rawValue]?.bytes == Array(bytes))
        }
    }

    /// Rows of packed leaves are changed, deleted and inserted between; leaves of both layouts mix.
    @Test(arguments: [5, 6, 7] as [UInt64]) func whatIsChangedIsChanged(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try Self.open(directory)
        try Self.fill(engine)
        _ = try engine.compact()
        var random = SeededRandom(seed: seed)
        var model = try engine.contents()
        for round in 0..<12 {
            let live = model.keys.sorted()
            var left = Set(live)
            _ = try engine.write { transaction in
                for _ in 0..<(round > 5 ? 400 : 3) {
                    let object = live[Int.random(in: 0..<live.count, using: &random)]
                    guard left.remove(object) != nil else { continue }
                    let (int, text) = (Int64(round), "round \(round)")
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0:
                        try transaction.delete(TestDelegate.entity, ObjectID(object))
                        model[object] = nil
                    case 1 where model[object + 1] == nil && !left.contains(object + 1):
                        try transaction.insert(
                            TestDelegate.entity,
                            ObjectID(object + 1),
                            row: row(int, text)
                        )
                        model[object + 1] = "\([StoredValue?.some(.int(int)), .text(text)])"
                    default:
                        try transaction.update(
                            TestDelegate.entity,
                            ObjectID(object),
                            patch: patch(int, text)
                        )
                        model[object] = "\([StoredValue?.some(.int(int)), .text(text)])"
                    }
                }
            }
            #expect(try engine.contents() == model, "round \(round)")
            if round % 3 == 0 { try engine.checkpoint() }
            if round == 5 {
                let mixed = try Self.layouts(directory)
                #expect(mixed.packed > 0 && mixed.edited > 0)
                try engine.close()
                engine = try Self.open(directory)
            }
            if round == 8 { _ = try engine.compact() }
        }
        try engine.close()
        engine = try Self.open(directory)
        #expect(try engine.contents() == model)
        try Self.checkReads(engine.snapshot(), model)
    }

    /// A random history with values outside rows and blobs, with each kind of retention.
    @Test(arguments: [
        (UInt64(171), Retention.newest), (172, .all), (173, .commits(17)), (174, .bytes(40_000)),
    ])
    func aHistoryIsKept(seed: UInt64, retention: Retention) throws {
        let directory = MemoryDirectory()
        var engine = try Self.history(directory, retention)
        var history = RandomHistory(seed: seed)
        for step in 0..<50 {
            try history.commit(engine)
            if step % 15 == 14 {
                _ = try engine.compact()
                if retention == .all {
                    try CompactionTests.check(engine, history, from: CommitNumber(0))
                }
            }
            if step % 20 == 19 {
                try engine.close()
                engine = try Self.history(directory, retention)
            }
        }
        let oldest = try engine.retainedCommits().lowerBound
        try CompactionTests.check(engine, history, from: oldest)
        #expect(try engine.snapshot().everything() == history.newest)
    }

    private static func history(
        _ directory: any StoreDirectory,
        _ retention: Retention
    ) throws -> Engine {
        try Engine.openTest(directory) {
            RandomHistory.adjust(&$0)
            $0.compactedLeafBytes = 1 << 10
            $0.retention = retention
            $0.packsLeaves = true
            $0.maintenance = .inline
        }
    }

    // MARK: Damage

    private static func flip(_ directory: MemoryDirectory, at place: UInt64) throws {
        let file = try directory.openFile("test.varve", mode: .readWrite)
        var bytes = try file.read(at: FileOffset(place), count: 1)
        bytes[0] ^= 0x10
        try file.write(bytes, at: FileOffset(place))
        file.close()
    }

    @Test(.damagesStores("a copy of the symbol tables is damaged"), arguments: [0, 1])
    func oneCopyOfTheTablesWillDo(copy: Int) throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory)
        try Self.fill(engine)
        let contents = try engine.contents()
        _ = try engine.compact()
        try engine.close()
        let symbols = try Self.layouts(directory).symbols
        let place = symbols[copy].offset
        try Self.flip(directory, at: place.rawValue + 70)
        #expect(try Self.open(directory).contents() == contents)
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var damaged: [FileOffset] = []
        for root in observer.tail?.roots ?? [] {
            try observer.audit(root) { page, error in
                if error != nil {
                    #expect(page.isSymbols)
                    damaged.append(page.address.offset)
                }
                return true
            }
        }
        #expect(damaged == [place])
    }

    /// A forged file can name a set for each leaf.
    @Test func setsOfTablesTakeABoundedMemory() throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory)
        try Self.fill(engine)
        _ = try engine.compact()
        let copies = try Self.layouts(directory).symbols
        let address = SymbolSetAddress(
            first: copies[0].offset,
            twin: copies[1].offset,
            storedLength: copies[0].storedLength,
            payloadHash: copies[0].payloadHash
        )
        let swapped = SymbolSetAddress(
            first: address.twin,
            twin: address.first,
            storedLength: address.storedLength,
            payloadHash: address.payloadHash
        )
        let log = engine.snapshot().state.generation.log
        let bytes = try SymbolSets().set(address, log).byteCount
        let sets = SymbolSets(bytesMax: 2 * bytes - 1)
        let first = try sets.set(address, log)
        #expect(try sets.set(address, log) === first)
        let error = #expect(throws: EngineError.self) { try sets.set(swapped, log) }
        #expect(error?.code == .damaged)
        #expect(try SymbolSets(bytesMax: 2 * bytes).set(swapped, log) !== first)
    }

    @Test(.damagesStores("both copies of the symbol tables are damaged"))
    func withoutTablesAStoreIsDamaged() throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory)
        try Self.fill(engine)
        _ = try engine.compact()
        try engine.close()
        for copy in try Self.layouts(directory).symbols {
            try Self.flip(directory, at: copy.offset.rawValue + 70)
        }
        let again = try Self.open(directory)
        let error = #expect(throws: EngineError.self) { try again.contents() }
        #expect(error?.code == .damaged)
    }
}
