// Several threads on one store: readers with the row cache, a writer, observers.

import Dispatch
import Synchronization
import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveRecords

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

@Suite(.verified) struct ConcurrencyTests {
    @Test func `Readers on several threads each see whole commits while a writer goes on`() throws {
        let store = try Cities.store(unreferencedRowBytes: 4_000)
        let city = try store.schema.require("City")
        let (name, population) = (city.column("name"), city.column("population"))
        let first = store.allocateObjectIDs(40)
        let ids = (0..<40).map { ObjectID(first.rawValue + UInt64($0)) }
        @Sendable func write(_ round: Int) throws {
            _ = try store.write { transaction in
                for id in ids {
                    let values = city.values([
                        ("name", .text("\(round)")), ("population", .int(Int64(round))),
                    ])
                    if round == 0 {
                        try transaction.insert(city.id, id, values)
                    } else {
                        try transaction.update(city.id, id, values)
                    }
                }
            }
        }
        try write(0)
        let isDone = Atomic(false)
        let wrong = Atomic(0)
        let failures = Mutex<[any Error]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { worker in
            do {
                if worker == 0 {
                    defer { isDone.store(true, ordering: .releasing) }
                    for round in 1...150 { try write(round) }
                    return
                }
                var random = SeededRandom(seed: UInt64(worker))
                while !isDone.load(ordering: .acquiring) {
                    let snapshot = try store.snapshot()
                    var seen: Set<Int64> = []
                    for id in ids.shuffled(using: &random) {
                        guard let row = try snapshot.row(city.id, id, pin: true) else { continue }
                        seen.insert(try row.int(population) ?? -1)
                        if try row.text(name) != row.int(population).map({ "\($0)" }) {
                            wrong.add(1, ordering: .relaxed)
                        }
                        store.rowCache.unpin(row)
                    }
                    for row in try snapshot.rows(city.id, ids) {
                        seen.insert(try row?.int(population) ?? -1)
                    }
                    let query = RecordQuery(
                        entity: city.id,
                        predicate: .compare(
                            PropertyPath("population"),
                            .equal,
                            .int(seen.first ?? -1)
                        )
                    )
                    if seen.count != 1 { wrong.add(1, ordering: .relaxed) }
                    if try snapshot.count(query) != ids.count { wrong.add(1, ordering: .relaxed) }
                }
            } catch {
                failures.withLock { $0.append(error) }
            }
        }
        #expect(failures.withLock { $0.map { "\($0)" } } == [])
        #expect(wrong.load(ordering: .relaxed) == 0)
        #expect(store.rowCache.statistics.pinnedRows == 0)
        #expect(store.rowCache.statistics.bytes <= 4_000)
    }

    @Test func `Observers hear of every commit in order, before its snapshot can be taken`() throws
    {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let heard = Mutex<[CommitNumber]>([])
        let observation = store.observeCommits { changes in
            heard.withLock { $0.append(changes.number) }
        }
        let errors = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { worker in
            for _ in 0..<25 {
                do {
                    if worker < 2 {
                        try store.insert("City")
                    } else {
                        let number = try store.snapshot().number
                        if number.rawValue > 1, !heard.withLock({ $0.contains(number) }) {
                            errors.withLock { $0 += 1 }
                        }
                    }
                } catch {
                    errors.withLock { $0 += 1 }
                }
            }
        }
        #expect(errors.withLock(\.self) == 0)
        let numbers = heard.withLock(\.self)
        #expect(numbers == numbers.sorted() && numbers.count == 50)
        observation.cancel()
        try store.insert("City")
        #expect(heard.withLock(\.count) == 50)
        #expect(try store.snapshot().count(RecordQuery(entity: city.id)) == 51)
    }
}
