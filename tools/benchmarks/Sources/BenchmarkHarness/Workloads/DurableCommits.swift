// Workload b: one-row durable commits with both indexes, by one saver and by several at once.

import Foundation

extension Workload {
    /// Names of workload b's numbers.
    public enum DurableCommits {
        /// Mean time of a commit.
        public static let mean = "b, durable, mean of one saver"
        /// Median time of a commit.
        public static let median = "b, durable, median of one saver"
        /// Time that 99 of 100 commits stay under.
        public static let slow = "b, durable, p99 of one saver"
        /// Bytes handed to write calls per commit.
        public static let bytes = "b, bytes to the kernel"
        /// Flushes of the disk per commit.
        public static let flushes = "b, flushes per commit"
        /// Numbers of savers that commit at once.
        public static let savers = [4, 16, 64]
        /// Commits per second of several savers together.
        public static func throughput(_ savers: Int) -> String {
            "b, \(savers) savers, throughput"
        }
        /// Flushes of the disk per commit of several savers.
        public static func flushes(_ savers: Int) -> String {
            "b, \(savers) savers, flushes per commit"
        }
    }
}

extension Contestant {
    /// A peer in workload b.
    public static func durableCommits<Peer: DurableCommitPeer>(
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
            stock: .items(type, options, name: "commits") { $0.rowsBeforeCommits },
            measure: { session in
                let folder = try session.copyOfStock()
                let peer = try Peer(directory: folder, options: options)
                var outcome = Outcome()
                var next = Int64(session.scale.rowsBeforeCommits) + 1
                func take(_ count: Int) -> [Item] {
                    defer { next += Int64(count) }
                    return Item.rows(next...next + Int64(count) - 1, seed: session.seed)
                }
                try oneSaver(peer, take(session.scale.commits), into: &outcome)
                for savers in Workload.DurableCommits.savers {
                    let share = max(1, session.scale.sharedCommits / savers)
                    try severalSavers(peer, savers, take(share * savers), into: &outcome)
                }
                try peer.close()
                // What a new connection finds is what was saved.
                let again = try Peer(directory: folder, options: options)
                let hash = try again.contentHash()
                try again.close()
                guard hash.rows == UInt64(next - 1) else {
                    throw BenchmarkError("\(name): \(hash.rows) of \(next - 1) rows are there")
                }
                outcome.checks["b, rows"] = hash.value
                return outcome
            }
        )
    }

    private static func oneSaver(
        _ peer: some DurableCommitPeer,
        _ items: [Item],
        into outcome: inout Outcome
    ) throws {
        typealias Names = Workload.DurableCommits
        var times: [Double] = []
        times.reserveCapacity(items.count)
        let bytesBefore = ProcessCounters.bytesWritten
        let (_, flushes) = try ProcessCounters.flushes {
            for item in items {
                let start = monotonicNanoseconds()
                try peer.commit(item)
                times.append(Double(monotonicNanoseconds() &- start) / 1e9)
            }
        }
        let bytesAfter = ProcessCounters.bytesWritten
        let count = Double(items.count)
        outcome.readings.append(.time(Names.mean, times.reduce(0, +) / count))
        times.sort()
        if let median = percentile(0.5, ofSorted: times),
            let slow = percentile(0.99, ofSorted: times)
        {
            outcome.readings.append(.time(Names.median, median))
            outcome.readings.append(.time(Names.slow, slow))
        }
        if let bytesBefore, let bytesAfter {
            let bytes = Double(bytesAfter - bytesBefore) / count
            outcome.readings.append(.size(Names.bytes, bytes))
        }
        if let flushes {
            outcome.readings.append(
                .number(Names.flushes, Double(flushes) / count, unit: "flushes")
            )
        }
    }

    private static func severalSavers(
        _ peer: some DurableCommitPeer,
        _ savers: Int,
        _ items: [Item],
        into outcome: inout Outcome
    ) throws {
        typealias Names = Workload.DurableCommits
        let share = items.count / savers
        let threads = ThreadTeam(count: savers)
        // Libraries are thread-safe as far as `makeSaver` promises; each thread has its own saver.
        nonisolated(unsafe) let peer = peer
        let (seconds, flushes) = try ProcessCounters.flushes {
            try threads.run { index in
                let save = try peer.makeSaver()
                return {
                    for item in items[index * share..<(index + 1) * share] { try save(item) }
                }
            }
        }
        outcome.readings.append(.rate(Names.throughput(savers), Double(items.count) / seconds))
        if let flushes {
            let each = Double(flushes) / Double(items.count)
            outcome.readings.append(.number(Names.flushes(savers), each, unit: "flushes"))
        }
    }
}
