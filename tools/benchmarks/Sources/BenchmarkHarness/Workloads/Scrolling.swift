// Workload q: a list of all rows is scrolled, a row every 120th of a second, while another thread
// saves as fast as it can.

import Foundation

extension Workload {
    /// Names of workload q's numbers.
    public enum Scrolling {
        /// The next row: the object and every property of it.
        public static let median = "q, next row while scrolling beside a writer"
        /// What one row of a hundred takes at least.
        public static let p99 = "q, next row while scrolling beside a writer, p99"
        /// The slowest row.
        public static let worst = "q, next row while scrolling beside a writer, worst"
        /// Durable commits of 100 changed rows per second meanwhile.
        public static let commits = "q, 100-row commits beside scrolling"
    }
}

/// Workload q: a list and a writer.
public protocol ScrollingPeer: BulkChangePeer {
    /// All rows by timestamp, in the form that the library has for more rows than one keeps.
    associatedtype ScrollList
    /// Opens the list. It is used on the thread of this call, and the writer on another one.
    func openScrollList() throws -> ScrollList
    /// Gets the row at a position as an object and adds every property with `RowFold.touch`.
    func touch(_ position: Int, in list: ScrollList, _ fold: inout RowFold) throws
}

extension RowFold {
    /// Adds a row that a writer may change meanwhile: its count is read and adds nothing, since it
    /// is never below zero. The ID counts as 0.
    public mutating func touch(
        timestamp: Double,
        title: String,
        note: String,
        count: Int,
        flag: Bool,
        pictureID: Int64
    ) {
        add(
            id: 0,
            timestamp: timestamp,
            title: title,
            note: note,
            count: min(count, 0),
            flag: flag,
            pictureID: pictureID
        )
    }
}

extension Session {
    /// Different rows all over a store, for a change of so many.
    func scattered(_ count: Int, of rows: Int, _ random: inout SeededRandom) -> [Int64] {
        let wanted = min(count, rows)
        let first = Int(random.below(UInt64(rows)))
        return (0..<wanted).map { 1 + Int64((first + $0 * (rows / wanted)) % rows) }
    }

    /// New counts for 100 rows.
    func countChanges(of rows: Int, _ random: inout SeededRandom) -> [RowChange<Int>] {
        scattered(100, of: rows, &random).map {
            RowChange(id: $0, value: Int(random.below(1_000)))
        }
    }
}

extension Contestant {
    /// A peer in workload q.
    public static func scrolling<Peer: ScrollingPeer>(
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
                typealias Names = Workload.Scrolling
                var outcome = Outcome()
                let rows = session.scale.rows
                let peer = try Peer(directory: try session.copyOfStock(), options: options)
                try peer.prepareToRead(rows: rows)
                var random = session.random(22)
                let writer = BackgroundLoop { _ in
                    try peer.updateCounts(session.countChanges(of: rows, &random))
                }
                writer.start()
                let touched = Result { try scroll(peer, session) }
                let written = try writer.stop()
                let (fold, times) = try touched.get()
                guard fold.rows == UInt64(times.count), !times.isEmpty else {
                    throw BenchmarkError("\(name): \(fold.rows) rows were there")
                }
                outcome.checks[Names.median] = fold.value
                for (metric, share) in [
                    (Names.median, 0.5), (Names.p99, 0.99), (Names.worst, 1.0),
                ] {
                    guard let value = percentile(share, ofSorted: times) else { continue }
                    outcome.readings.append(.time(metric, value))
                }
                outcome.readings.append(
                    .rate(Names.commits, Double(written.passes) / written.seconds)
                )
                try peer.close()
                return outcome
            }
        )
    }

    /// The sum of the rows, and the sorted times of the touches.
    private static func scroll<Peer: ScrollingPeer>(
        _ peer: Peer,
        _ session: Session
    ) throws -> (fold: RowFold, times: [Double]) {
        let list = try peer.openScrollList()
        // From the middle on: no row was read before. The code is warm.
        let first = session.scale.rows / 2
        var warm = RowFold()
        for position in 0..<min(20, first) { try peer.touch(position, in: list, &warm) }
        var fold = RowFold()
        var times: [Double] = []
        let start = monotonicNanoseconds()
        for index in 0..<min(session.scale.touches, session.scale.rows - first) {
            let due = start &+ UInt64(index) * 1_000_000_000 / 120
            let now = monotonicNanoseconds()
            if due > now { Thread.sleep(forTimeInterval: Double(due - now) / 1e9) }
            let begun = monotonicNanoseconds()
            try peer.touch(first + index, in: list, &fold)
            times.append(Double(monotonicNanoseconds() &- begun) / 1e9)
        }
        return (fold, times.sorted())
    }
}
