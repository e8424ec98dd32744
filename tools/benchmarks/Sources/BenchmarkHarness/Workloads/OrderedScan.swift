// Workload d: rows in the order of timestamps, every column decoded.

extension Workload {
    /// Names of workload d's numbers.
    public enum OrderedScan {
        /// Time for all rows.
        public static let all = "d, all rows"
        /// Time for the first 50.
        public static let first = "d, first 50"
        /// Time for 50 from the middle.
        public static let middle = "d, offset in the middle"
    }
}

extension Contestant {
    /// A peer in workload d.
    public static func orderedScan<Peer: OrderedScanPeer>(
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
                typealias Names = Workload.OrderedScan
                var outcome = Outcome()
                let peer = try Peer(directory: session.stock, options: options)
                func check(_ metric: String, _ fold: RowFold, rows: Int) throws {
                    guard fold.rows == UInt64(rows) else {
                        throw BenchmarkError("\(name): \(metric): \(fold.rows) of \(rows) rows")
                    }
                    outcome.checks[metric] = fold.value
                }
                // Once untimed: everybody's pages are in memory, as far as the caches allow.
                _ = try peer.scanSorted()
                let all = try timed { try peer.scanSorted() }
                try check(Names.all, all.result, rows: session.scale.rows)
                outcome.readings.append(.time(Names.all, all.seconds))
                let limit = min(50, session.scale.rows / 2)
                for (metric, offset, repeats) in [
                    (Names.first, 0, session.scale.pages),
                    (Names.middle, session.scale.rows / 2, max(2, session.scale.pages / 20)),
                ] {
                    let fold = try peer.page(offset: offset, limit: limit)
                    try check(metric, fold, rows: limit)
                    let time = try timed {
                        for _ in 0..<repeats {
                            let again = try peer.page(offset: offset, limit: limit)
                            guard again.value == fold.value else {
                                throw BenchmarkError("\(name): \(metric): another page")
                            }
                        }
                    }
                    outcome.readings.append(.time(metric, time.seconds / Double(repeats)))
                }
                try peer.close()
                return outcome
            }
        )
    }
}
