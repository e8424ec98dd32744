// Reads that go wrong once, while a store is opened.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Reads that go wrong once", .verified) struct MisreadTests {
    /// Found by the crash campaign: one read of the newest commit's frame returned other bytes, the
    /// frame was taken for a torn tail, and the store opened without an acknowledged commit.
    @Test(
        "No acknowledged commit is passed over",
        arguments: [
            SimulatedDisk.ReadFault.Kind.zeros, .flippedBit(777), .elsewhere(512),
            .elsewhere(-4096), .short, .fails(SimulatedDisk.inputOutput),
        ]
    )
    func noCommitIsPassedOver(kind: SimulatedDisk.ReadFault.Kind) throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root)
        for object in UInt64(1)...4 {
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(object), row: row(1, "\(object)"))
            }
        }
        let expected = try engine.contents()
        let left = disk.state
        for mode in [StoreOpenMode.existing, .readOnly] {
            var read = 1
            while true {
                let next = SimulatedDisk(left)
                next.setReadFault(SimulatedDisk.ReadFault(first: read, kind: kind))
                do {
                    let opened = try Engine.openTest(next.root, mode: mode)
                    let hasFailed = next.readFailures > 0
                    next.setReadFault(nil)
                    #expect(try opened.contents() == expected, "read \(read), \(mode)")
                    #expect(next.violations == [])
                    if !hasFailed { break }
                } catch is EngineError {}
                read += 1
            }
            #expect(read > 10)
        }
    }
}
