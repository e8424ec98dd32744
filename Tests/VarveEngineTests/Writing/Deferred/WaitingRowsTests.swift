// Changes of rows that wait for each other: put in place in the order of objects, seen by every
// read, and failing as a whole.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Rows that wait", .verified) struct WaitingRowsTests {
    private static let entity = TestDelegate.entity

    /// As a list of values, the way `contents` tells rows.
    private static func told(_ int: Int64, _ text: String) -> String {
        let values: [StoredValue?] = [.int(int), .text(text)]
        return "\(values)"
    }

    private static func filled(
        _ rows: Int,
        in directory: any StoreDirectory = MemoryDirectory(),
        _ adjust: (inout EngineOptions) -> Void = { _ in }
    ) throws -> (engine: Engine, model: [UInt64: String]) {
        let engine = try Engine.openTest(directory, adjust)
        var model: [UInt64: String] = [:]
        _ = try engine.write { transaction in
            for number in 1...rows {
                let text = "text \(number)"
                try transaction.insert(entity, ObjectID(UInt64(number)), row: row(1, text))
                model[UInt64(number)] = told(1, text)
            }
        }
        return (engine, model)
    }

    /// Few are sorted by comparing, many by digits.
    @Test("They come in the order of objects, those of one object by age", arguments: [400, 2_000])
    func theyAreSorted(count: Int) {
        var random = SeededRandom(seed: 71)
        var waiting = WaitingRows()
        var model: [(entity: UInt16, object: UInt64, patch: [UInt8]?)] = []
        for step in 0..<count {
            if step == count / 2 { waiting.sort() }
            let entity = [UInt16(1), 2, 300].randomElement(using: &random)!
            let object =
                UInt64.random(in: 0...100, using: &random)
                << [UInt64(0), 8, 40].randomElement(using: &random)!
            let id = (EntityID(entity), ObjectID(object))
            if step % 3 == 0 {
                waiting.delete(id.0, id.1)
                model.append((entity, object, nil))
            } else {
                let patch = [UInt8(step & 255), UInt8(step >> 8)]
                waiting.update(id.0, id.1, patch: step % 5 == 0 ? [] : patch)
                model.append((entity, object, step % 5 == 0 ? [] : patch))
            }
        }
        waiting.sort()
        let sorted = model.enumerated().sorted {
            ($0.element.entity, $0.element.object, $0.offset)
                < ($1.element.entity, $1.element.object, $1.offset)
        }.map(\.element)
        #expect(waiting.count == sorted.count)
        for (index, wanted) in sorted.enumerated() {
            let change = waiting.change(at: index)
            #expect(change.entity == EntityID(wanted.entity))
            #expect(change.object == ObjectID(wanted.object))
            #expect(change.patch.map { Array(waiting.patchBytes[$0]) } == wanted.patch)
        }
        #expect(waiting.entities == [EntityID(1), EntityID(2), EntityID(300)])
        let behind = waiting.next(behind: 0, above: ObjectID(10))
        #expect(waiting.row(at: behind).object > ObjectID(10))
        #expect(waiting.row(at: behind - 1).object <= ObjectID(10))
        waiting.removeAll()
        #expect(waiting.isEmpty && waiting.bytes == 0)
    }

    /// More than a helper thread is worth, into small leaves that go to the file on the way.
    @Test("Many in any order are as many one by one", arguments: [UInt64(72), 73, 74])
    func manyInAnyOrder(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory()
        func adjust(_ options: inout EngineOptions) {
            options.nodeWeightMax = 512
            options.appendedBytesMax = 32 << 10
            options.changedBytesMax = 256 << 10
            options.nodeCacheBytes = 64 << 10
            options.readingThreads = 2
            // Now all wait until the end, now some go in between.
            options.sortBytesMax = [16 << 10, 1 << 20].randomElement(using: &random)!
            // With the second the commit is its pages from early on.
            options.deltaBytesMax = seed % 2 == 0 ? 4 << 10 : 256 << 10
        }
        var (engine, model) = try Self.filled(6_000, in: directory, adjust)
        for round in 0..<3 {
            try engine.close()
            engine = try Engine.openTest(directory, adjust)
            _ = try engine.write { transaction in
                for step in 0..<4_000 {
                    let object = UInt64.random(in: 1...6_000, using: &random)
                    guard model[object] != nil else { continue }
                    if step % 4 == 3 {
                        try transaction.delete(Self.entity, ObjectID(object))
                        model[object] = nil
                        continue
                    }
                    let int = Int64(round * 10_000 + step)
                    let text = String(repeating: "x", count: step % 40)
                    let changes = patch(int, text)
                    try transaction.update(Self.entity, ObjectID(object), patch: changes)
                    model[object] = Self.told(int, text)
                }
            }
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
        }
        #expect(engine.statistics.spills > 0, "the pages were to go early")
        try engine.close()
        engine = try Engine.openTest(directory, adjust)
        #expect(try engine.contents() == model, "seed \(seed)")
    }

    /// Rows go leaf by leaf: whole leaves, all but one row of a leaf, and rows whose values lie
    /// elsewhere between them.
    @Test("Deletes of whole leaves leave what the rest says", arguments: [UInt64(75), 76])
    func deletesOfWholeLeaves(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory()
        func adjust(_ options: inout EngineOptions) {
            options.nodeWeightMax = 512
            options.inlineValueBytesMax = 512
            options.appendedBytesMax = 16 << 10
            options.readingThreads = 2
            options.deltaBytesMax = seed % 2 == 0 ? 4 << 10 : 1 << 20
        }
        var engine = try Engine.openTest(directory, adjust)
        var model: [UInt64: String] = [:]
        _ = try engine.write { transaction in
            for object in UInt64(1)...5_000 {
                let text = String(repeating: "v", count: object % 50 == 0 ? 700 : 20)
                let bytes = row(Int64(object), text)
                try transaction.insert(Self.entity, ObjectID(object), row: bytes)
                model[object] = Self.told(Int64(object), text)
            }
        }
        for round in 0..<4 {
            _ = try engine.write { transaction in
                for _ in 0..<6 {
                    let first = UInt64.random(in: 1...4_800, using: &random)
                    let kept = UInt64.random(in: 0...200, using: &random)
                    for object in first...(first + 200)
                    where model[object] != nil && object != first + kept {
                        if round % 2 == 0 {
                            try transaction.delete(Self.entity, ObjectID(object))
                        } else {
                            let id = ObjectID(object)
                            #expect(try transaction.deleteIfPresent(Self.entity, id))
                            #expect(try !transaction.deleteIfPresent(Self.entity, id))
                        }
                        model[object] = nil
                    }
                    // One comes and goes.
                    let guest = ObjectID(6_000 + first)
                    try transaction.insert(Self.entity, guest, row: row(1, "b"))
                    try transaction.delete(Self.entity, guest)
                    #expect(try !transaction.deleteIfPresent(Self.entity, guest))
                }
            }
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
            let snapshot = engine.snapshot()
            for tree in [TestDelegate.rows, TestDelegate.byInt, TestDelegate.byText] {
                #expect(snapshot.count(tree) == UInt64(model.count), "seed \(seed)")
            }
            // As a replay has it.
            try engine.close()
            engine = try Engine.openTest(directory, adjust)
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
        }
        #expect(throws: EngineError.self) {
            try engine.write { try $0.delete(Self.entity, ObjectID(9_999)) }
        }
        #expect(try engine.contents() == model)
    }

    @Test("Every read of the transaction sees them")
    func readsSeeThem() throws {
        let (engine, _) = try Self.filled(50)
        func id(_ number: UInt64) -> ObjectID { ObjectID(number) }
        _ = try engine.write { transaction in
            try transaction.update(Self.entity, id(7), patch: patch(70))
            try transaction.update(Self.entity, id(3), patch: patch(30))
            let row = try #require(try transaction.row(TestDelegate.rows, id(7)))
            #expect(try RowView(row.bytes).value(ColumnID(0)) == .int(70))
            #expect(row.version == transaction.number)
            try transaction.delete(Self.entity, id(9))
            #expect(try transaction.count(TestDelegate.rows) == 49)
            try transaction.delete(Self.entity, id(10))
            #expect(try transaction.count(TestDelegate.byInt) == 48)
            try transaction.update(Self.entity, id(11), patch: patch(110))
            var found: [Int] = []
            try transaction.rows(TestDelegate.rows, [id(10), id(11)]) { place, _ in
                found.append(place)
            }
            #expect(found == [1])
            try transaction.delete(Self.entity, id(12))
            // The same object again: what waits comes first.
            try transaction.insert(Self.entity, id(12), row: row_(5, "again"))
            try transaction.update(Self.entity, id(12), patch: patch(6))
            #expect(try transaction.deleteIfPresent(Self.entity, id(13)))
            #expect(try !transaction.deleteIfPresent(Self.entity, id(13)))
        }
        let rows = try engine.contents()
        #expect(rows.count == 47)
        #expect(rows[7] == Self.told(70, "text 7") && rows[3] == Self.told(30, "text 3"))
        #expect(rows[12] == Self.told(6, "again"))
        #expect(rows[9] == nil && rows[10] == nil && rows[13] == nil)
    }

    private func row_(_ int: Int64, _ text: String) -> [UInt8] { row(int, text) }

    @Test("One that has no row fails the transaction, at the latest at its end")
    func aMissingRowFailsAll() throws {
        let (engine, model) = try Self.filled(50)
        let newest = engine.snapshot().number
        func code(_ body: (WriteTransaction) throws -> Void) -> EngineError.Code? {
            do {
                _ = try engine.write(body)
                return nil
            } catch { return (error as? EngineError)?.code }
        }
        let missing = ObjectID(999)
        #expect(
            code {
                try $0.update(Self.entity, ObjectID(1), patch: patch(5))
                try $0.update(Self.entity, missing, patch: patch(5))
            } == .objectMissing
        )
        #expect(code { try $0.delete(Self.entity, missing) } == .objectMissing)
        #expect(
            code {
                try $0.delete(Self.entity, ObjectID(2))
                try $0.update(Self.entity, ObjectID(2), patch: patch(5))
            } == .objectMissing
        )
        // Who reads is told at once, and cannot go on as if nothing were.
        #expect(
            code { transaction in
                try transaction.delete(Self.entity, missing)
                #expect(throws: EngineError.self) { try transaction.count(TestDelegate.rows) }
                try transaction.insert(Self.entity, ObjectID(700), row: row(1, "late"))
            } == .objectMissing
        )
        #expect(code { try $0.update(Self.entity, ObjectID(1), patch: [200]) } == .invalid)
        #expect(engine.snapshot().number == newest)
        #expect(try engine.contents() == model)
        // The next one is none the worse.
        _ = try engine.write { try $0.update(Self.entity, ObjectID(1), patch: patch(8)) }
        #expect(try engine.contents()[1] == Self.told(8, "text 1"))
    }

    @Test("What waited is in the log as it was asked for", arguments: [UInt64(75), 76])
    func aCrashLosesNoneOfThem(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let disk = SimulatedDisk()
        var (engine, model) = try Self.filled(300, in: disk.root)
        for _ in 0..<20 {
            _ = try engine.write { transaction in
                for _ in 0..<40 {
                    let object = UInt64.random(in: 1...300, using: &random)
                    guard model[object] != nil else { continue }
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        try transaction.delete(Self.entity, ObjectID(object))
                        model[object] = nil
                        continue
                    }
                    let (int, text) = (Int64(object), String(random.next(), radix: 36))
                    let changes = patch(int, text)
                    try transaction.update(Self.entity, ObjectID(object), patch: changes)
                    model[object] = Self.told(int, text)
                }
            }
        }
        #expect(engine.statistics.treeCommits <= 2, "the schema and the rows; the rest is replayed")
        engine = try Engine.openTest(SimulatedDisk.powerCut(disk.state, &random).root)
        #expect(engine.statistics.replayedOperations > 0)
        #expect(try engine.contents() == model, "seed \(seed)")
    }

    @Test("Reading ahead visits leaf after leaf, near the transaction, and ends with it")
    func readingAhead() throws {
        var options = EngineOptions()
        options.readingThreads = 2
        let visits = Mutex<[Int]>([])
        let restore: @Sendable (Int) throws(EngineError) -> Int = { index in
            visits.withLock { $0.append(index) }
            return index + 10
        }
        #expect(LeafReadAhead.start(LeafReadAhead.changesMin - 1, options, restore) == nil)
        #expect(LeafReadAhead.start(10_000, nil, restore) == nil)
        options.readingThreads = 1
        #expect(LeafReadAhead.start(10_000, options, restore) == nil)
        options.readingThreads = 2
        let ahead = try #require(LeafReadAhead.start(10_000, options, restore))
        for index in 0..<10_000 { ahead.advance(from: index - 1, to: index) }
        ahead.advance(from: 9_999, to: 10_000)
        ahead.end()
        let far = try #require(LeafReadAhead.start(10_000, options, restore))
        // It is ahead by some and no more, however long the transaction stays where it is.
        while (visits.withLock { $0.last }) != 250 { _ = Parker().park(milliseconds: 1) }
        far.end()
        #expect(visits.withLock { $0.last } == 250)
        // What it cannot read ends it.
        let failing = try #require(
            LeafReadAhead.start(10_000, options) { _ throws(EngineError) in
                throw EngineError(.damaged, "a page")
            }
        )
        failing.end()
    }
}
