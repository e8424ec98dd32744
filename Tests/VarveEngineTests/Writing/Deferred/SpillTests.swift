// Transactions larger than their memory: pages and sorted index entries leave it early.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Large transactions", .verified) struct SpillTests {
    private static let entity = TestDelegate.entity

    private static func adjust(_ options: inout EngineOptions) {
        options.nodeWeightMax = 512
        options.sortBytesMax = 2 << 10
        options.appendedBytesMax = 8 << 10
        options.changedBytesMax = 24 << 10
        options.earlyWriteBytes = 16 << 10
        options.tailRoomMax = 64 << 10
        options.deltaBytesMax = 4 << 10
    }

    private struct Refusal: Error {}

    /// Changes rows at random, and now and then looks at what is there.
    private static func change(
        _ transaction: WriteTransaction,
        _ model: inout [UInt64: String],
        _ next: inout UInt64,
        _ count: Int,
        _ random: inout SeededRandom
    ) throws {
        for step in 0..<count {
            let int = Int64.random(in: 0...9_999, using: &random)
            let text = "t\(Int.random(in: 0...999, using: &random))"
            let values: [StoredValue?] = [.int(int), .text(text)]
            let kind = Int.random(in: 0..<10, using: &random)
            if kind < 6 || model.isEmpty {
                next += 1
                try transaction.insert(entity, ObjectID(next), row: row(int, text))
                model[next] = "\(values)"
            } else {
                let object = UInt64.random(in: 1...next, using: &random)
                if model[object] == nil { continue }
                if kind < 8 {
                    try transaction.update(entity, ObjectID(object), patch: patch(int, text))
                    model[object] = "\(values)"
                } else {
                    try transaction.delete(entity, ObjectID(object))
                    model[object] = nil
                }
            }
            if step % 257 == 0 {
                #expect(try transaction.count(TestDelegate.byInt) == UInt64(model.count))
                let object = UInt64.random(in: 1...max(next, 1), using: &random)
                let row = try transaction.row(TestDelegate.rows, ObjectID(object))
                #expect((row == nil) == (model[object] == nil))
            }
        }
    }

    @Test(
        "They commit what they changed, or leave nothing when they fail",
        arguments: [UInt64(51), 52, 53, 54]
    )
    func theyCommitOrLeaveNothing(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory()
        var engine = try Engine.openTest(directory, Self.adjust)
        var model: [UInt64: String] = [:]
        var next: UInt64 = 0
        for round in 0..<8 {
            var changed = model
            var counter = next
            let fails = round % 3 == 2
            do {
                _ = try engine.write { transaction in
                    let count = Int.random(in: 1...1_500, using: &random)
                    try Self.change(transaction, &changed, &counter, count, &random)
                    if fails { throw Refusal() }
                }
                (model, next) = (changed, counter)
            } catch is Refusal {
                #expect(fails)
            }
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
            // A small commit goes on behind what the failed one left.
            next += 1
            let object = next
            _ = try engine.write {
                try $0.insert(Self.entity, ObjectID(object), row: row(1, "small"))
            }
            let values: [StoredValue?] = [.int(1), .text("small")]
            model[object] = "\(values)"
            if Bool.random(using: &random) {
                let statistics = engine.statistics
                try engine.close()
                engine = try Engine.openTest(directory, Self.adjust)
                if round == 7 { #expect(statistics.spills > 0 && statistics.sortedRuns > 0) }
            }
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
        }
        #expect(try directory.list().filter { $0.contains(Engine.newSuffix) } == [])
    }

    @Test("What a failed one wrote counts as dead after a close, and leaves no file behind")
    func whatAFailedOneWroteIsDead() throws {
        let directory = MemoryDirectory()
        var engine = try Engine.openTest(directory, Self.adjust)
        try engine.close()
        // As a crash between making the file and taking its name away would leave it.
        let name = Engine.temporaryName("test", SystemEnvironment())
        try directory.openFile(name, mode: .createExclusive).close()
        engine = try Engine.openTest(directory, Self.adjust)
        #expect(try directory.list().filter { $0.contains(Engine.newSuffix) } == [])
        #expect(throws: Refusal.self) {
            try engine.write { transaction in
                for object in UInt64(1)...3_000 {
                    try transaction.insert(Self.entity, ObjectID(object), row: row(1, "text"))
                }
                throw Refusal()
            }
        }
        try engine.close()
        engine = try Engine.openTest(directory, Self.adjust)
        #expect(engine.statistics.settledCommits == 0)
        #expect(engine.statistics.deadBytes > 8 << 10)
        #expect(try engine.contents().isEmpty)
    }

    @Test("Reads in between do not make every insert write pages")
    func readsInBetweenCostFewSpills() throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            Self.adjust(&$0)
            $0.appendedBytesMax = 64 << 10
            $0.changedBytesMax = 256 << 10
        }
        var random = SeededRandom(seed: 9)
        _ = try engine.write { transaction in
            for object in UInt64(1)...4_000 {
                _ = try transaction.position(TestDelegate.byInt, of: [1])
                let int = Int64.random(in: 0...Int64.max, using: &random)
                try transaction.insert(Self.entity, ObjectID(object), row: row(int, "text"))
            }
        }
        // At most one for 16 leaves of rows, of which there are a few hundred, and one for 64
        // changes of leaves of the indexes.
        #expect(engine.statistics.spills < 160)
        #expect(try engine.contents().count == 4_000)
    }

    @Test("Pages made by several threads are those of one", arguments: [2, 5], [false, true])
    func threadsMakeTheSamePages(threads: Int, compacts: Bool) throws {
        func file(_ threads: Int) throws -> [UInt8] {
            let directory = MemoryDirectory()
            let engine = try Engine.openTest(directory) {
                $0.environment = FixedEnvironment()
                $0.maintenance = .inline
                $0.encodingThreads = threads
            }
            var random = SeededRandom(seed: 11)
            _ = try engine.write { transaction in
                for object in UInt64(1)...20_000 {
                    let int = Int64.random(in: 0...Int64.max, using: &random)
                    try transaction.insert(Self.entity, ObjectID(object), row: row(int, "text"))
                }
            }
            if compacts { #expect(try engine.compact().damage.isEmpty) }
            #expect(try engine.contents().count == 20_000)
            try engine.close()
            let file = try directory.openFile("test.varve", mode: .read)
            return try file.read(at: FileOffset(0), count: Int(try file.size()))
        }
        let one = try file(1)
        #expect(one.count > 64 * 4096)
        #expect(try file(threads) == one)
    }

    @Test("Outputs stand in the order of their inputs, however many threads there are")
    func outputsKeepTheirOrder() {
        let inputs = Array(0..<1_003)
        for threads in [0, 1, 2, 7] {
            let outputs = BackgroundThread.map(inputs, threads: threads) { $0 * 3 }
            #expect(outputs == inputs.map { $0 * 3 })
            let single = BackgroundThread.map(inputs, threads: threads, together: 1) { $0 * 3 }
            #expect(single == outputs)
        }
    }

    @Test("A long list of rows is the same, however many threads read it", arguments: [1, 2, 5])
    func threadsReadTheSameRows(threads: Int) throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            $0.readingThreads = threads
            $0.nodeCacheBytes = 64 << 10
        }
        // Every third object is there, some changed later.
        _ = try engine.write { transaction in
            for object in 1...UInt64(3_000) {
                try transaction.insert(
                    Self.entity,
                    ObjectID(3 * object),
                    row: row(Int64(object), "row \(object)")
                )
            }
        }
        _ = try engine.write { transaction in
            for object in stride(from: UInt64(7), through: 3_000, by: 7) {
                try transaction.delete(Self.entity, ObjectID(3 * object))
                try transaction.insert(Self.entity, ObjectID(3 * object), row: row(-1, "new"))
            }
        }
        let snapshot = engine.snapshot()
        let ids = (0..<UInt64(9_010)).map(ObjectID.init)
        let blocks = try snapshot.rowBlocks(TestDelegate.rows, ids)
        #expect(blocks.count == (threads == 1 ? 1 : 4 * threads))
        let rows = blocks.flatMap { block in block.rows.map { (block, $0) } }
        #expect(rows.map(\.1.position) == (1...3_000).map { 3 * $0 })
        for (block, found) in rows {
            let one = try #require(try snapshot.row(TestDelegate.rows, ids[found.position]))
            #expect(one.version == found.version)
            #expect(one.bytes == Array(block.bytes[found.start..<found.start + found.count]))
        }
    }

    @Test("An import holds no more than its budget in memory")
    func anImportStaysInItsBudget() throws {
        let engine = try Engine.openTest(MemoryDirectory(), Self.adjust)
        var random = SeededRandom(seed: 7)
        _ = try engine.write { transaction in
            for object in UInt64(1)...6_000 {
                let int = Int64.random(in: 0...Int64.max, using: &random)
                try transaction.insert(Self.entity, ObjectID(object), row: row(int, "text"))
                // Rows come in order and index entries wait in files.
                #expect(transaction.editor.changedNodeCount <= (8 << 10) / 512 + 4)
            }
        }
        let statistics = engine.statistics
        #expect(statistics.spills > 0 && statistics.sortedRuns > 0)
        #expect(engine.snapshot().count(TestDelegate.byInt) == 6_000)
        #expect(try engine.contents().count == 6_000)
    }
}
