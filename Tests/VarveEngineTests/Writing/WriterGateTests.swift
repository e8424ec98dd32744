// When a task that waits for the writer is told to go on.

import Synchronization
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

/// An environment that calls the test when a commit is given its time: behind the body of the
/// write, and before the commit is in the log.
private final class LookingEnvironment: Environment {
    private let system = SystemEnvironment()
    private let look: @Sendable () -> Void

    init(_ look: @escaping @Sendable () -> Void) { self.look = look }

    func randomBytes(_ count: Int) -> [UInt8] { system.randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 {
        look()
        return system.wallClockMicroseconds()
    }
    func processID() -> Int32 { system.processID() }
    func yield(_ point: YieldPoint) {}
}

@Suite(.verified) struct WriterGateTests {
    /// Whoever is granted the writer takes its lock at once, on an actor that must not wait: the
    /// way of a bulk load into the log took a tenth of a second.
    @Test func `the writer is not granted before the commit is in the log`() throws {
        let place = Mutex<WriterReservation?>(nil)
        let looks = Mutex<[Bool]>([])
        let engine = try Engine.openTest(MemoryDirectory(name: "gate")) {
            $0.environment = LookingEnvironment {
                guard let reservation = place.withLock({ $0 }) else { return }
                looks.withLock { $0.append(reservation.begin()) }
            }
        }
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write { transaction in
            try transaction.insert(EntityID(1), id, row: row(1, "one"))
            place.withLock { $0 = engine.reserveWriter() }
        }
        let made = place.withLock { reservation in
            defer { reservation = nil }
            return reservation
        }
        let reservation = try #require(made)
        let seen = looks.withLock { $0 }
        #expect(!seen.isEmpty && seen.allSatisfy { !$0 })
        #expect(reservation.begin())
        reservation.end()
        // Nor is it kept from others afterwards, and a write that throws grants it as well.
        let next = engine.reserveWriter()
        #expect(next.begin())
        next.end()
        struct Stop: Error {}
        let late = Mutex<WriterReservation?>(nil)
        #expect(throws: Stop.self) {
            try engine.write { _ in
                late.withLock { $0 = engine.reserveWriter() }
                throw Stop()
            }
        }
        let other = late.withLock { $0 }
        let granted = try #require(other)
        #expect(granted.begin())
        granted.end()
        try engine.close()
    }
}
