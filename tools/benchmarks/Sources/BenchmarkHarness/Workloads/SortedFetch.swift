// Workload e: 40,000 rows in the order of timestamps.

extension Workload {
    /// Names of workload e's numbers.
    public enum SortedFetch {
        /// The list as faults, or as whatever the library keeps instead; new connection.
        public static let faults = "e, faults"
        /// The same again on the same connection.
        public static let faultsRepeated = "e, faults, repeated"
        /// The list with every property read; new connection.
        public static let filled = "e, every property read"
        /// The same again on the same connection.
        public static let filledRepeated = "e, every property read, repeated"
    }
}

extension Contestant {
    /// A peer in workload e.
    public static func sortedFetch<Peer: SortedFetchPeer>(
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
            stock: .items(type, options, name: "list") { $0.listRows },
            measure: { session in
                typealias Names = Workload.SortedFetch
                var outcome = Outcome()
                func check(_ metric: String, _ fold: RowFold) throws {
                    guard fold.rows == UInt64(session.scale.listRows) else {
                        throw BenchmarkError("\(name): \(metric): \(fold.rows) rows")
                    }
                    outcome.checks[metric] = fold.value
                }
                // As faults: what a fault gives when it is read is checked, but not timed.
                var peer = try Peer(directory: session.stock, options: options)
                let first = try timed { try peer.fetchFaults() }
                outcome.readings.append(.time(Names.faults, first.seconds))
                try check(Names.faults, peer.readEveryProperty(first.result))
                try peer.close()

                peer = try Peer(directory: session.stock, options: options)
                _ = try peer.fetchFaults()
                var repeats: [Double] = []
                for _ in 0..<session.scale.listRepeats {
                    repeats.append(try timed { try peer.fetchFaults() }.seconds)
                }
                appendMedian(repeats, Names.faultsRepeated, to: &outcome)
                try peer.close()

                peer = try Peer(directory: session.stock, options: options)
                let filled = try timed { try peer.readEveryProperty(peer.fetchFilled()) }
                outcome.readings.append(.time(Names.filled, filled.seconds))
                try check(Names.filled, filled.result)
                repeats = []
                for _ in 0..<session.scale.listRepeats {
                    let again = try timed { try peer.readEveryProperty(peer.fetchFilled()) }
                    try check(Names.filledRepeated, again.result)
                    repeats.append(again.seconds)
                }
                appendMedian(repeats, Names.filledRepeated, to: &outcome)
                try peer.close()
                return outcome
            }
        )
    }

    private static func appendMedian(
        _ values: [Double],
        _ metric: String,
        to outcome: inout Outcome
    ) {
        guard let summary = Summary(values) else { return }
        outcome.readings.append(.time(metric, summary.median))
    }
}
