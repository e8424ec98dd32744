// The name that a compaction gives its file, when it dies before that name is durable.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("The name of a compacted file", .verified) struct CompactionNameTests {
    /// Found by the crash campaign. The compacted file ends with a CLOSE frame, so the next opening
    /// took the store for one that was closed well and did not sync the directory: commits were
    /// acknowledged in a file whose name a power cut took away.
    @Test("Commits behind a compaction that died are not lost with its file's name")
    func commitsBehindADeadCompactionStay() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        for object in UInt64(1)...3 {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "\(object)"))
            }
        }
        disk.record()
        _ = try engine.compact()
        let recording = disk.takeRecording()
        var cases = 0
        for call in 0...recording.steps.count {
            // The process dies here, the system lives.
            let next = SimulatedDisk(recording.state(before: call))
            let second = try Engine.openTest(next.root, mode: .existing)
            _ = try second.write {
                try $0.insert(TestDelegate.entity, ObjectID(9), row: row(1, "nine"))
            }
            let expected = try second.contents()
            #expect(expected.count == 4)
            let cut = SimulatedDisk(next.state.after(CrashImage()))
            let third = try Engine.openTest(cut.root, mode: .existing)
            #expect(try third.contents() == expected, "died before call \(call)")
            cases += 1
        }
        #expect(cases > 4)
    }
}
