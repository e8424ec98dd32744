// The end of an engine: from several threads, and what it leaves for the next opening.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("The end of an engine", .verified) struct ClosingTests {
    @Test("Closing from several threads at once ends for each of them")
    func severalThreadsClose() throws {
        for _ in 0..<8 {
            let engine = try Engine.openTest(SimulatedDisk().root) { $0.maintenance = .background }
            try SharedFailureTests.insert(engine, 1...1)
            let closed = Mutex(0)
            for _ in 0..<4 {
                _ = TestThread {
                    #expect(throws: Never.self) { try engine.close() }
                    closed.withLock { $0 += 1 }
                }
            }
            for _ in 0..<60_000 where closed.withLock({ $0 < 4 }) {
                _ = Parker().park(milliseconds: 1)
            }
            try #require(closed.withLock { $0 } == 4)
        }
    }

    @Test("A CLOSE stands behind what is synced, and behind the last checkpoint")
    func aCleanCloseLeavesNothingInDoubt() throws {
        let disk = SimulatedDisk()
        let engine = try Engine.openTest(disk.root) { $0.deltaBytesMax = 1 << 10 }
        // Pages, so that closing has no checkpoint to write.
        try SharedFailureTests.insert(engine, 1...40, durability: .relaxed)
        try engine.close()
        let second = try Engine.openTest(disk.root)
        #expect(second.statistics.settledCommits == 0)
        try SharedFailureTests.insert(second, 41...41)
        try second.exclusively { writer throws(EngineError) in try second.witness(&writer) }
        // What a crash leaves: a witness, and row changes before it.
        let killed = disk.killed()
        let third = try Engine.openTest(killed.root)
        #expect(third.writer.withLock { $0.logEnd == .closed })
        try third.checkpoint()
        try third.close()
        let fourth = try Engine.openTest(killed.root)
        #expect(fourth.writer.withLock { $0.logEnd == .closed })
        #expect(try SharedFailureTests.objects(fourth).count == 41)
    }
}
