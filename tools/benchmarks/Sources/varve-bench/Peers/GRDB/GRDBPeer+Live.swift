// GRDB in the workloads about lists that follow commits and about long lists.
//
// Lists are ValueObservations, told on a queue of their own; each is fetched anew after a commit
// that may concern it, which is how the library keeps a list up to date.

import BenchmarkHarness
import Dispatch
import Foundation
import GRDB
import Synchronization

// Workloads l and m
extension GRDBPeer: LiveListPeer {
    final class LiveLists: Sendable {
        private struct State {
            var values: [[ItemRecord]]
            var told = 0
            var failure: (any Error)?
            var observations: [AnyDatabaseCancellable] = []
        }
        private let state: Mutex<State>
        private let arrived = DispatchSemaphore(value: 0)
        private let count: Int
        private let clock = CommitClock()

        init(_ pool: DatabasePool, _ requests: [QueryInterfaceRequest<ItemRecord>]) throws {
            count = requests.count
            // In front of the observations: it is told first.
            pool.add(transactionObserver: clock, extent: .databaseLifetime)
            state = Mutex(State(values: requests.map { _ in [] }))
            let queue = DispatchQueue(label: "observations")
            for (number, request) in requests.enumerated() {
                let observation = ValueObservation.tracking { try request.fetchAll($0) }
                let observing = observation.start(
                    in: pool,
                    scheduling: .async(onQueue: queue),
                    onError: { [unowned self] error in
                        state.withLock { $0.failure = error }
                        arrived.signal()
                    },
                    onChange: { [unowned self] value in
                        state.withLock { $0.values[number] = value }
                        arrived.signal()
                    }
                )
                state.withLock { $0.observations.append(observing) }
            }
            try wait()
            // Where SQLite has no snapshots the library tells the first value twice. That is not
            // what is measured: from here on each commit is told once.
            while arrived.wait(timeout: .now() + 0.5) == .success {}
        }

        /// Until each list was told once.
        func wait() throws {
            for _ in 0..<count {
                guard arrived.wait(timeout: .now() + 60) == .success else {
                    throw BenchmarkError("GRDB told of no change")
                }
                if let failure = state.withLock({ $0.failure }) { throw failure }
            }
        }

        /// Seconds since the last commit.
        var sinceCommit: Double { clock.sinceCommit }

        var timestamps: [Double] {
            state.withLock { state in state.values.flatMap { $0.map(\.timestamp) } }
        }
    }

    private static let byTimestamp = ItemRecord.order(ItemRecord.Columns.timestamp)

    func followAll() throws -> LiveLists { try LiveLists(pool, [Self.byTimestamp]) }

    func follow(ranges: [Range<Double>]) throws -> LiveLists {
        let column = ItemRecord.Columns.timestamp
        return try LiveLists(
            pool,
            ranges.map {
                Self.byTimestamp.filter(column >= $0.lowerBound && column < $0.upperBound)
            }
        )
    }

    func catchUp(_ lists: LiveLists) throws -> Double {
        try lists.wait()
        return lists.sinceCommit
    }

    func timestamps(_ lists: LiveLists) throws -> [Double] { lists.timestamps }
}

// Workload n. There is no list that reads on demand: a row at a position is asked for by offset.
extension GRDBPeer: LongListPeer {
    func openLongList() throws -> (list: Void, count: Int, first: Double) {
        try pool.read { database in
            let count = try ItemRecord.fetchCount(database)
            let first = try ItemRecord.order(ItemRecord.Columns.timestamp).fetchOne(database)
            return ((), count, first?.timestamp ?? 0)
        }
    }

    func timestamp(at position: Int, in list: Void) throws -> Double {
        let request = ItemRecord.order(ItemRecord.Columns.timestamp).limit(50, offset: position)
        return try pool.read { try request.fetchAll($0).first?.timestamp ?? 0 }
    }
}

extension GRDBPeer {
    /// SQLite's `LIKE` knows the case of ASCII letters only, which is all that the notes have.
    func countNotes(with text: String, ignoringCase: Bool) throws -> Int {
        let test = ignoringCase ? "note LIKE ?" : "instr(note, ?) > 0"
        let sql = "SELECT COUNT(*) FROM item WHERE \(test)"
        let argument = ignoringCase ? "%\(text)%" : text
        return try pool.read { try Int.fetchOne($0, sql: sql, arguments: [argument]) ?? 0 }
    }

    func firstByCountAndNote(limit: Int) throws -> [Double] {
        let columns = ItemRecord.Columns.self
        let request = ItemRecord.order(columns.count.desc, columns.note).limit(limit)
        return try pool.read { try request.fetchAll($0).map(\.timestamp) }
    }
}

/// When the last commit was made.
private final class CommitClock: TransactionObserver, Sendable {
    private let last = Mutex(ContinuousClock.now)

    var sinceCommit: Double {
        let elapsed = (ContinuousClock.now - last.withLock { $0 }).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }

    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ database: Database) { last.withLock { $0 = .now } }
    func databaseDidRollback(_ database: Database) {}
}
