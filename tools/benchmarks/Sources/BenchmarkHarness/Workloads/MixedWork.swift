// Workload i: random reads, each in a transaction of its own, alone and beside a writer that
// commits 100 rows at a time.

import Foundation

extension Workload {
    /// Names of workload i's numbers.
    public enum MixedWork {
        /// Reads per second without a writer.
        public static let alone = "i, reads alone"
        /// Reads per second beside the writer.
        public static let beside = "i, reads beside a writer"
        /// The second over the first.
        public static let share = "i, reads beside the writer over alone"
        /// Durable commits of 100 rows per second beside the reader.
        public static let commits = "i, 100-row commits"
    }
}

extension Contestant {
    /// A peer in workload i.
    public static func mixedWork<Peer: MixedPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        Contestant(
            name: name,
            level: level,
            missing: missing,
            stock: .items(type, options),
            measure: { session in
                typealias Names = Workload.MixedWork
                var outcome = Outcome()
                let folder = try session.copyOfStock()
                let peer = try Peer(directory: folder, options: options)
                let rows = session.scale.rows
                let ids = session.randomIDs(count: 10_000)
                try peer.prepareToRead(rows: rows)
                let read = try peer.makeReader(rows: rows)
                let seconds = session.scale.mixedSeconds
                _ = try reads(ids, seconds / 10, read)
                let alone = try reads(ids, seconds, read)

                let writer = BackgroundWriter(peer, after: Int64(rows), seed: session.seed)
                writer.start()
                let beside = try reads(ids, seconds, read)
                let commits = try writer.stop()

                outcome.readings.append(.rate(Names.alone, alone))
                outcome.readings.append(.rate(Names.beside, beside))
                outcome.readings.append(
                    .number(Names.share, beside / alone, unit: "share", better: .more)
                )
                outcome.readings.append(.rate(Names.commits, Double(commits.count) / commits.time))
                let hash = try peer.contentHash()
                try peer.close()
                let expected = rows + commits.count * BackgroundWriter<Peer>.rows
                guard hash.rows == UInt64(expected) else {
                    throw BenchmarkError("\(name): \(hash.rows) of \(expected) rows are there")
                }
                return outcome
            }
        )
    }

    /// Reads per second.
    private static func reads(
        _ ids: [Int64],
        _ seconds: Double,
        _ read: ([Int64]) throws -> RowFold
    ) throws -> Double {
        let start = monotonicNanoseconds()
        let nanoseconds = UInt64(seconds * 1e9)
        var done = 0
        var next = 0
        while monotonicNanoseconds() &- start < nanoseconds {
            let some = Array(ids[next..<next + 100])
            guard try read(some).rows == 100 else { throw BenchmarkError("rows are missing") }
            done += 100
            next = (next + 100) % ids.count
        }
        return Double(done) * 1e9 / Double(monotonicNanoseconds() &- start)
    }
}

/// A thread that inserts rows in durable commits until it is told to stop.
private final class BackgroundWriter<Peer: ItemPeer>: @unchecked Sendable {
    /// Rows of a commit.
    static var rows: Int { 100 }

    private let peer: Peer
    private let first: Int64
    private let seed: UInt64
    private let done = DispatchSemaphore(value: 0)
    private let lock = NSLock()
    private var isStopping = false
    private var result: Result<(count: Int, time: Double), any Error>?

    init(_ peer: Peer, after id: Int64, seed: UInt64) {
        self.peer = peer
        first = id + 1
        self.seed = seed
    }

    func start() {
        let thread = Thread { [self] in
            let outcome = Result { try write() }
            lock.withLock { result = outcome }
            done.signal()
        }
        thread.start()
    }

    private func write() throws -> (count: Int, time: Double) {
        let start = monotonicNanoseconds()
        var count = 0
        var making: UInt64 = 0
        while !lock.withLock({ isStopping }) || count == 0 {
            let id = first + Int64(count * Self.rows)
            let begun = monotonicNanoseconds()
            let items = Item.rows(id...id + Int64(Self.rows) - 1, seed: seed)
            making += monotonicNanoseconds() &- begun
            try peer.insert(items)
            count += 1
        }
        return (count, Double(monotonicNanoseconds() &- start &- making) / 1e9)
    }

    func stop() throws -> (count: Int, time: Double) {
        lock.withLock { isStopping = true }
        done.wait()
        guard let result = lock.withLock({ result }) else {
            throw BenchmarkError("the writer left nothing")
        }
        return try result.get()
    }
}
