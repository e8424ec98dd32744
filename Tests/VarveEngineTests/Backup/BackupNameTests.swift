// The name that a backup gives its file, when it dies before that name is durable.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("The name of a backup", .verified) struct BackupNameTests {
    private static func save(_ engine: Engine, _ object: UInt64) throws {
        _ = try engine.write {
            try $0.insert(
                TestDelegate.entity,
                ObjectID(object),
                row: row(Int64(object), "\(object)")
            )
        }
    }

    /// A store of three rows, perhaps compacted, and what its backup does, call by call.
    private static func backup(
        isCompacted: Bool
    ) throws -> (engine: Engine, recording: DiskRecording) {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(MemoryDirectory())
        for object in UInt64(1)...3 { try save(engine, object) }
        if isCompacted { _ = try engine.compact() }
        disk.record()
        _ = try engine.backup(to: .directory(disk.root, name: "test"))
        return (engine, disk.takeRecording())
    }

    /// Its CLOSE had the epoch of the store that was copied, so an opening took the name for
    /// durable: commits were acknowledged in a file whose name a power cut took away.
    @Test(
        "Commits behind a backup that died are not lost with its file's name",
        arguments: [false, true]
    )
    func commitsBehindADeadBackupStay(isCompacted: Bool) throws {
        let (_, recording) = try Self.backup(isCompacted: isCompacted)
        var cases = 0
        for call in 0...recording.steps.count {
            // The process dies here, the system lives.
            let next = SimulatedDisk(recording.state(before: call))
            guard next.state.file("test.varve") != nil else { continue }
            let second = try Engine.openTest(next.root, mode: .existing)
            try Self.save(second, 9)
            let expected = try second.contents()
            #expect(expected.count == 4)
            let cut = SimulatedDisk(next.state.after(CrashImage()))
            let third = try Engine.openTest(cut.root, mode: .existing)
            #expect(try third.contents() == expected, "died before call \(call)")
            cases += 1
        }
        // Between the name and the end of the backup.
        #expect(cases > 2)
    }

    /// An increment that returned would be lost with the name, too.
    @Test(arguments: [false, true])
    func noIncrementGoesBehindANameThatNothingProves(isCompacted: Bool) throws {
        let (engine, recording) = try Self.backup(isCompacted: isCompacted)
        try Self.save(engine, 4)
        var (refused, appended) = (0, 0)
        for call in 0...recording.steps.count {
            let next = SimulatedDisk(recording.state(before: call))
            guard next.state.file("test.varve") != nil else { continue }
            do {
                let report = try engine.backup(to: .directory(next.root, name: "test"))
                #expect(report.isIncrement)
                let cut = SimulatedDisk(next.state.after(CrashImage()))
                let copy = try Engine.openTest(cut.root, mode: .existing)
                #expect(try copy.contents().count == 4, "died before call \(call)")
                appended += 1
            } catch let error as EngineError {
                #expect(error.code == .invalid, "\(error)")
                refused += 1
            }
        }
        #expect(refused > 0 && appended > 0)
    }
}
