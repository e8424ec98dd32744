// Syncs of directories that failed: no name that they were to make durable is relied on again.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Names behind a sync of a directory that failed", .verified) struct FailedNameSyncTests {
    private static let content = [UInt8](repeating: 7, count: 900)

    private static func save(_ engine: Engine, _ object: UInt64) throws {
        let writer = try engine.makeBlobWriter(externalLimit: 500)
        try writer.append(content + [UInt8(truncatingIfNeeded: object)])
        let blob = try writer.finish()
        _ = try engine.write {
            try $0.insert(
                TestDelegate.entity,
                ObjectID(object),
                row: row(Int64(object), "\(object)", blob: blob.reference)
            )
        }
    }

    /// Every row with its blob.
    private static func whole(_ engine: Engine) throws -> [UInt64: String] {
        let snapshot = engine.snapshot()
        let contents = try snapshot.contents()
        for object in contents.keys {
            let row = try #require(try snapshot.row(TestDelegate.rows, ObjectID(object)))
            let value = try RowView(row.bytes).value(ColumnID(2))
            guard case .blob(let reference) = value else { continue }
            let blob = try #require(try snapshot.blob(reference))
            #expect(try blob.readAll() == content + [UInt8(truncatingIfNeeded: object)])
        }
        return contents
    }

    /// A store is made, gets blobs, is compacted with commits around it.
    /// - Returns: the objects whose saves returned.
    private static func work(_ disk: SimulatedDisk, _ retention: Retention) -> Set<UInt64> {
        var saved: Set<UInt64> = []
        do {
            let engine = try Engine.openTest(disk.root) { $0.retention = retention }
            for object in UInt64(1)...3 {
                try save(engine, object)
                saved.insert(object)
            }
            _ = try engine.compact()
            try save(engine, 4)
            saved.insert(4)
            try engine.close()
        } catch {}
        return saved
    }

    /// A compaction's sync of the directory failed; the opening behind it synced once more, a save
    /// was acknowledged, the power went, and the old file was back.
    @Test(
        "What is saved behind a failed call and an opening outlives a power cut",
        arguments: [1, 2, 3],
        [Retention.newest, .all]
    )
    func savesBehindAFailedSyncStay(failures: Int, _ retention: Retention) throws {
        let whole = SimulatedDisk()
        #expect(Self.work(whole, retention) == [1, 2, 3, 4])
        var cases = 0
        for call in 1...whole.calls {
            let disk = SimulatedDisk()
            disk.setFault(.init(first: call, count: failures))
            let saved = Self.work(disk, retention)
            guard disk.failures > 0 else { continue }
            // The process ends, the system lives.
            disk.kill()
            // What is left of the faults meets the opening.
            var engine: Engine?
            for _ in 0...failures where engine == nil {
                engine = try? Engine.openTest(disk.root) { $0.retention = retention }
                if engine == nil { disk.kill() }
            }
            var second = try #require(engine, "call \(call)")
            let before = try Self.whole(second)
            #expect(saved.isSubset(of: before.keys), "call \(call)")
            // Or the first save behind it, which syncs the directory if the opening has not.
            var isSaved = false
            for _ in 0...failures where !isSaved {
                do {
                    try Self.save(second, 9)
                    isSaved = true
                } catch let error as EngineError {
                    #expect(error.code == .ioFailed, "call \(call)")
                    disk.kill()
                    second = try Engine.openTest(disk.root) { $0.retention = retention }
                }
            }
            try #require(isSaved, "call \(call)")
            let expected = try Self.whole(second)
            #expect(expected.count == before.count + 1)
            let cut = SimulatedDisk(disk.state.after(CrashImage()))
            let third = try Engine.openTest(cut.root, mode: .existing)
            #expect(try Self.whole(third) == expected, "call \(call)")
            #expect(disk.violations.isEmpty)
            cases += 1
            withExtendedLifetime(second) {}
        }
        #expect(cases > 30)
    }

    /// An opening that only shows what is there need not wait for the disk.
    @Test func aClosedStoreSyncsItsNameBeforeTheFirstWrite() throws {
        let disk = SimulatedDisk()
        #expect(Self.work(disk, .newest) == [1, 2, 3, 4])
        disk.kill()
        disk.record()
        let engine = try Engine.openTest(disk.root, mode: .existing)
        #expect(try Self.whole(engine).count == 4)
        let shown = disk.takeRecording().steps
        #expect(
            shown.allSatisfy { step in
                switch step.operation {
                case .sync, .syncFolder: false
                default: true
                }
            }
        )
        disk.record()
        for object in UInt64(7)...8 {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "\(object)"))
            }
        }
        let saved = disk.takeRecording().steps.map(\.operation)
        let places = saved.indices.filter { place in
            if case .syncFolder = saved[place] { return true }
            return false
        }
        let file = try #require(disk.state.file("test.varve"))
        let written = saved.firstIndex { operation in
            if case .write(file, _, _) = operation { return true }
            return false
        }
        #expect(try places.count == 1 && places[0] < #require(written))
        try engine.close()
    }

    /// The system forgets a name with the sync that fails: no later one counts for it.
    @Test func aSyncThatFailedFailsEveryWriteOfTheOpening() throws {
        let disk = SimulatedDisk()
        #expect(Self.work(disk, .newest) == [1, 2, 3, 4])
        disk.kill()
        let engine = try Engine.openTest(disk.root, mode: .existing)
        disk.setFault(.init(first: 1, count: 1))
        for _ in 0..<3 {
            let error = #expect(throws: EngineError.self) {
                try engine.write {
                    try $0.insert(TestDelegate.entity, ObjectID(7), row: row(1, "7"))
                }
            }
            #expect(error?.code == .ioFailed)
        }
        #expect(disk.failures == 1)
        #expect(try Self.whole(engine).count == 4)
        disk.kill()
        let next = try Engine.openTest(disk.root, mode: .existing)
        _ = try next.write {
            try $0.insert(TestDelegate.entity, ObjectID(7), row: row(1, "7"))
        }
        let cut = SimulatedDisk(disk.state.after(CrashImage()))
        let third = try Engine.openTest(cut.root, mode: .existing)
        #expect(try third.snapshot().contents().count == 5)
    }
}
