// A store on a full disk is closed or killed, opened again, and shrunk by its user.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("A store on a full disk", .verified) struct FullDiskTests {
    private static func text(_ object: UInt64) -> String {
        String(repeating: "\(object) ", count: 8 + Int(object % 40))
    }

    private static func insert(
        _ engine: Engine,
        _ objects: ClosedRange<UInt64>,
        _ durability: Durability = .full
    ) throws {
        _ = try engine.write(durability: durability) { transaction in
            for object in objects {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(object),
                    row: row(Int64(object), text(object))
                )
            }
        }
    }

    private static func delete(_ engine: Engine, _ objects: ArraySlice<UInt64>) throws {
        _ = try engine.write { transaction in
            for object in objects { try transaction.delete(TestDelegate.entity, ObjectID(object)) }
        }
    }

    /// A close on a full disk failed, or the process was killed; the settle of the next opening
    /// asked for what saves leave and for room ahead, and found none: nothing could be deleted.
    @Test(
        "It is filled, closed or killed, opened, and things are deleted",
        // `.relaxed` saves and a kill: what nothing proves is more than the reserve.
        arguments: zip([true, true, false, false], [Durability.full, .relaxed, .full, .relaxed])
    )
    func deletesBehindAnOpening(closes: Bool, _ durability: Durability) throws {
        for extra in [0, 50_000, 117_000] {
            let disk = SimulatedDisk()
            func open() throws -> Engine {
                // Nothing but a close or a full save syncs.
                try Engine.openTest(disk.root) { $0.relaxedSyncMilliseconds = 3_600_000 }
            }
            var engine = try open()
            // What the file has is its own: only more of it finds no space.
            let number = try #require(disk.state.file("test.varve"))
            let limit = (disk.state.files[number]?.cache.count ?? 0) + extra
            disk.setFault(
                SimulatedDisk.Fault(
                    first: 1,
                    count: .max,
                    code: SimulatedDisk.noSpace,
                    writesPast: limit
                )
            )
            // Ever smaller saves, until the smallest finds no space.
            var next: UInt64 = 1
            for count in [UInt64(40), 7, 1] {
                while (try? Self.insert(engine, next...(next + count - 1), durability)) != nil {
                    next += count
                }
            }
            var expected = try engine.contents()
            #expect(expected.count == Int(next) - 1 && next > 100, "limit \(limit)")
            var refusals = 0
            for round in 0..<3 {
                if closes { try engine.close() }
                let before = engine
                disk.kill()
                engine = try open()
                withExtendedLifetime(before) {}
                let isInPlace = engine.statistics.settledInPlace > 0
                #expect(isInPlace == (!closes && durability == .relaxed && round == 0))
                #expect(try engine.contents() == expected, "limit \(limit), round \(round)")
                // A save may find no space; a delete does.
                if (try? Self.insert(engine, 9_000...9_000)) == nil {
                    refusals += 1
                } else {
                    try Self.delete(engine, [9_000])
                }
                let objects = expected.keys.sorted().prefix(20)
                try Self.delete(engine, objects)
                for object in objects { expected[object] = nil }
                #expect(try engine.contents() == expected, "limit \(limit), round \(round)")
            }
            #expect(refusals > 0, "limit \(limit): the disk was full")
            // What is deleted is given back, and there is room for more.
            while expected.count > 100 {
                let objects = expected.keys.sorted().prefix(100)
                try Self.delete(engine, objects)
                for object in objects { expected[object] = nil }
            }
            _ = try engine.compact()
            try Self.insert(engine, 10_000...10_010)
            #expect(try engine.contents().count == expected.count + 11)
            try engine.close()
            #expect(disk.violations.isEmpty)
        }
    }

    /// The verify at the end of the test called the number of such a settle inconsistent.
    @Test("Several saves that are written again as row changes are one sound commit")
    func settlesSeveralAsChanges() throws {
        let disk = SimulatedDisk()
        func open() throws -> Engine {
            try Engine.openTest(disk.root) { $0.relaxedSyncMilliseconds = 3_600_000 }
        }
        var engine = try open()
        try Self.insert(engine, 1...400)
        try engine.checkpoint()
        let number = try #require(disk.state.file("test.varve"))
        disk.setFault(
            SimulatedDisk.Fault(
                first: 1,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: disk.state.files[number]?.cache.count ?? 0
            )
        )
        var next: UInt64 = 1_000
        while (try? Self.insert(engine, next...next, .full)) != nil { next += 1 }
        var expected = try engine.contents()
        let before = engine.snapshot().number
        for object in UInt64(1)...3 {
            _ = try engine.write(durability: .relaxed) { transaction in
                try transaction.delete(TestDelegate.entity, ObjectID(object))
            }
            expected[object] = nil
        }
        let killed = engine
        disk.kill()
        engine = try open()
        withExtendedLifetime(killed) {}
        #expect(engine.statistics.settledCommits == 3)
        #expect(engine.statistics.settledInPlace == 0)
        #expect(engine.snapshot().number.rawValue == before.rawValue + 3)
        #expect(try engine.contents() == expected)
        let newest = try #require(try engine.commits(1).first)
        #expect(newest.form == .rowChanges, "a settle of pages has a flag")
        try engine.close()
    }
}
