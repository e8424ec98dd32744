// The versions of a row, and states of the past that are kept, against what the store held.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct RowVersionTests {
    /// As `contents()` spells a row.
    private static func text(_ version: RowVersion, _ object: ObjectID) throws -> String? {
        guard var bytes = version.row?.bytes else { return nil }
        for column in try RowCoding.outsideColumns(in: bytes) {
            let value = try version.largeValue(
                entity: TestDelegate.entity,
                object: object,
                column: column
            )
            bytes = try RowCoding.movingInside(
                bytes,
                [MovedValue(column: column, isText: true, bytes: value)]
            )
        }
        let view = try RowView(bytes)
        return "\(try (0..<2).map { try view.value(ColumnID(UInt16($0))) })"
    }

    private static func check(
        _ engine: Engine,
        _ history: RandomHistory,
        from oldest: CommitNumber,
        _ story: Comment
    ) throws {
        let numbers = history.states.keys.filter { $0 >= oldest }.sorted()
        for object in 1...history.next {
            let touched = numbers.filter { number in
                number > oldest
                    && history.changes[number]?.values.contains { $0.contains(object) } == true
            }
            let expected = touched.map { ($0, history.states[$0]?.rows[object]) }
            var versions = try engine.versions(
                of: ObjectID(object),
                entity: TestDelegate.entity,
                tree: TestDelegate.rows
            )
            var found: [(CommitNumber, String?)] = []
            while let version = try versions.next() {
                if version.isOldest {
                    // It was there when the file begins.
                    let then = try engine.snapshot(at: version.shownAt).contents()[object]
                    #expect(try text(version, ObjectID(object)) == then, story)
                    #expect(version.number <= version.shownAt)
                    continue
                }
                #expect(version.commit?.number == version.number)
                found.append((version.number, try text(version, ObjectID(object))))
            }
            found.reverse()
            #expect(found.map(\.0) == expected.map(\.0), "\(story) object \(object)")
            #expect(found.map(\.1) == expected.map(\.1), "\(story) object \(object)")
        }
    }

    @Test(arguments: [UInt64(91), 92, 93])
    func `Versions are those of the model`(seed: UInt64) throws {
        let directory = MemoryDirectory()
        func open() throws -> Engine {
            try Engine.openTest(directory) {
                RandomHistory.adjust(&$0)
                $0.retention = .commits(30)
                $0.compactsAutomatically = false
            }
        }
        var engine = try open()
        var history = RandomHistory(seed: seed)
        for step in 0..<50 {
            try history.commit(engine)
            if step % 13 == 5 { try engine.checkpoint() }
            if step % 17 == 9 {
                try engine.close()
                engine = try open()
            }
        }
        try Self.check(engine, history, from: CommitNumber(1), "seed \(seed)")
        _ = try engine.compact()
        let oldest = try engine.retainedCommits().lowerBound
        try Self.check(engine, history, from: oldest, "seed \(seed), compacted")
        let again = try Engine.openTest(directory.copyForCrash(), mode: .existing)
        try Self.check(again, history, from: oldest, "seed \(seed), opened again")
    }

    @Test func `A row that did not change is found without reading what did`() throws {
        var costs: [Int] = []
        for count in [1_000, 2_000] {
            let engine = try Engine.openTest(MemoryDirectory()) {
                $0.maintenance = .inline
                $0.checkpointTailMin = 16 << 10
                $0.checkpointTailMax = 16 << 10
            }
            for step in 0..<count {
                _ = try engine.write {
                    if step < 2 {
                        let id = ObjectID(UInt64(step + 1))
                        try $0.insert(TestDelegate.entity, id, row: row(0, "a"))
                    } else {
                        try $0.update(
                            TestDelegate.entity,
                            ObjectID(2),
                            patch: patch(Int64(step))
                        )
                    }
                }
            }
            try engine.checkpoint()
            var versions = try engine.versions(
                of: ObjectID(1),
                entity: TestDelegate.entity,
                tree: TestDelegate.rows
            )
            #expect(try versions.next()?.number == CommitNumber(2))
            #expect(try versions.next() == nil)
            costs.append(versions.framesRead)
            var many = try engine.versions(
                of: ObjectID(2),
                entity: TestDelegate.entity,
                tree: TestDelegate.rows
            )
            var found = 0
            while try many.next() != nil { found += 1 }
            #expect(found == count - 1)
            #expect(many.framesRead <= count + count / 5)
        }
        #expect(costs[0] < 400 && costs[1] < 400, "\(costs)")
    }

    /// States are kept while neighbours are looked at, in every order; they never show another
    /// commit, and go with their file.
    @Test(arguments: [UInt64(94), 95])
    func `States that are kept show the same`(seed: UInt64) throws {
        let engine = try Engine.openTest(MemoryDirectory()) {
            RandomHistory.adjust(&$0)
            $0.checkpointTailMin = 24 << 10
            $0.checkpointTailMax = 24 << 10
            $0.pastStateCommits = 3
            $0.retention = .all
        }
        var history = RandomHistory(seed: seed)
        history.externalLimit = 4 << 10
        for _ in 0..<80 { try history.commit(engine) }
        let numbers = history.states.keys.sorted()
        var held: [(CommitNumber, Snapshot)] = []
        for round in 0..<200 {
            let number = try #require(numbers.randomElement(using: &history.random))
            let past = try engine.snapshot(at: number)
            #expect(try past.everything() == history.states[number], "seed \(seed)")
            if round % 10 == 0 { held.append((number, past)) }
        }
        #expect(engine.pastStates.count > 0)
        for (number, past) in held {
            #expect(try past.everything() == history.states[number], "seed \(seed), held")
        }
        _ = try engine.compact()
        #expect(engine.pastStates.count == 0)
        for number in numbers.shuffled(using: &history.random).prefix(30) {
            #expect(try engine.snapshot(at: number).everything() == history.states[number])
        }
    }
}
