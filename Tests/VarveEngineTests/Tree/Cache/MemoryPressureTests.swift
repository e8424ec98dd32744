// The node cache follows the memory that the machine has left.

import Synchronization
import Testing
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A machine whose memory and clock the test sets.
private final class SetMachine: Environment {
    private struct State {
        var left: UInt64? = 512 << 20
        var seconds: UInt64 = 1
        var looks = 0
    }
    private let state = Mutex(State())
    private let system = SystemEnvironment()

    func set(left: UInt64?) { state.withLock { $0.left = left } }
    func wait(seconds: UInt64) { state.withLock { $0.seconds += seconds } }
    var looks: Int { state.withLock(\.looks) }

    func memory() -> MachineMemory? {
        state.withLock { state in
            state.looks += 1
            let share = state.left.map { Double($0) / Double(1 << 30) }
            return MachineMemory(bytes: 1 << 30, leftShare: share)
        }
    }
    var knowsMemory: Bool { true }
    func monotonicNanoseconds() -> UInt64 { state.withLock { $0.seconds * 1_000_000_000 } }
    func randomBytes(_ count: Int) -> [UInt8] { system.randomBytes(count) }
    func wallClockMicroseconds() -> Int64 { system.wallClockMicroseconds() }
    func processID() -> Int32 { system.processID() }
    func yield(_ point: YieldPoint) {}
}

@Suite(.verified) struct MemoryPressureTests {
    private let least = 16 << 10
    private let most = 8 << 20

    /// A store of some hundred KiB of nodes, opened anew, so that its nodes are clean.
    private func store(_ machine: SetMachine, scarce: Int? = nil) throws -> Engine {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory) { $0.nodeWeightMax = 1 << 10 }
        let first = engine.allocateObjectIDs(4_000).rawValue
        _ = try engine.write { transaction in
            for number in 0..<4_000 as Range<UInt64> {
                let text = "row \(number) of the store"
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(first + number),
                    row: row(Int64(number), text)
                )
            }
        }
        try engine.close()
        return try Engine.openTest(directory) { options in
            options.environment = machine
            options.nodeWeightMax = 1 << 10
            options.nodeCacheBytes = most
            options.scarceNodeCacheBytes = scarce ?? least
            options.idleMilliseconds = 600_000
        }
    }

    private func bytes(_ engine: Engine) -> Int { Int(engine.statistics.nodeCacheBytes) }

    @Test func anIdleEngineGivesNodesBack() throws {
        let machine = SetMachine()
        let engine = try store(machine)
        let rows = try engine.contents()
        let full = bytes(engine)
        #expect(full > 4 * least)
        engine.giveBackIfScarce()
        #expect(bytes(engine) == full)

        machine.set(left: 63 << 20)
        engine.giveBackIfScarce()
        #expect(bytes(engine) == full, "within a second nothing is looked at again")
        machine.wait(seconds: 1)
        engine.giveBackIfScarce()
        #expect(bytes(engine) <= least)
        #expect(engine.statistics.nodeLimboBytes == 0, "what was evicted is freed")
        #expect(try engine.contents() == rows)
        #expect(bytes(engine) <= least, "reads stay within what may be used now")

        // Between a sixteenth and an eighth everything stays as it is.
        for (left, isFull) in [(100, false), (128, true), (100, true)] as [(UInt64, Bool)] {
            machine.set(left: left << 20)
            machine.wait(seconds: 1)
            engine.giveBackIfScarce()
            #expect(try engine.contents() == rows)
            #expect((bytes(engine) > 4 * least) == isFull, "\(left) MiB left")
        }
        try engine.close()
    }

    @Test func readersNoticeByThemselves() throws {
        let machine = SetMachine()
        let engine = try store(machine)
        let rows = try engine.contents()
        machine.set(left: 1 << 20)
        machine.wait(seconds: 5)
        // Nodes that are in memory cost no look: only those that come do.
        let looks = machine.looks
        for _ in 0..<3 { #expect(try engine.contents() == rows) }
        #expect(machine.looks == looks)
        #expect(bytes(engine) > 4 * least)
        engine.trimMemory()
        for _ in 0..<10 where machine.looks == looks {
            #expect(try engine.contents() == rows)
            engine.trimMemory()
        }
        #expect(machine.looks == looks + 1)
        #expect(try engine.contents() == rows)
        #expect(bytes(engine) <= least)
        #expect(engine.statistics.nodeLimboBytes < 1 << 20)
        engine.giveBackIfScarce()
        #expect(engine.statistics.nodeLimboBytes == 0)
        try engine.close()
    }

    @Test func whatIsNotKnownOrNotWantedChangesNothing() throws {
        let machine = SetMachine()
        machine.set(left: nil)
        let engine = try store(machine)
        _ = try engine.contents()
        let full = bytes(engine)
        engine.giveBackIfScarce()
        #expect(bytes(engine) == full)
        try engine.close()

        machine.set(left: 0)
        let looks = machine.looks
        let fixed = try store(machine, scarce: most)
        _ = try fixed.contents()
        fixed.giveBackIfScarce()
        #expect(machine.looks == looks, "a cache that gives nothing back does not ask")
        #expect(bytes(fixed) == full)
        try fixed.close()
    }

    @Test func theUsualSizeFollowsTheMachine() {
        func usual(_ bytes: UInt64?) -> Int {
            EngineOptions.usualNodeCacheBytes(
                bytes.map { MachineMemory(bytes: $0, leftShare: nil) }
            )
        }
        #expect(usual(nil) == 16 << 20)
        #expect(usual(512 << 20) == 16 << 20)
        #expect(usual(4 << 30) == 64 << 20)
        #expect(usual(24 << 30) == 256 << 20)
        #expect(usual(.max) == 256 << 20)
        #expect((16 << 20...256 << 20).contains(EngineOptions.usualNodeCacheBytes))
    }
}
