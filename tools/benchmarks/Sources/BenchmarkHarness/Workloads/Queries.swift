// Workload k: a count of a range, a filter without an index, least and greatest, different values.

extension Workload {
    /// Names of workload k's numbers.
    public enum Queries {
        /// Number of rows in a quarter of the indexed timestamps.
        public static let rangeCount = "k, range count"
        /// All rows with one of 1,000 counts, without an index.
        public static let predicateScan = "k, predicate scan"
        /// Least and greatest indexed timestamp.
        public static let bounds = "k, least and greatest"
        /// Number of different counts, without an index.
        public static let distinct = "k, distinct values"
    }
}

extension Contestant {
    /// For so long a query is repeated at least.
    private static var shortestSeconds: Double { 0.005 }
    /// Unless it has been repeated so often.
    private static var queriesMax: Int { 500 }

    /// A peer in workload k.
    public static func queries<Peer: QueryPeer>(
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
                typealias Names = Workload.Queries
                var outcome = Outcome()
                let peer = try Peer(directory: session.stock, options: options)
                func measure(_ metric: String, _ body: () throws -> UInt64) throws {
                    let sum = try body()
                    var times: [Double] = []
                    var spent = 0.0
                    // What takes microseconds is asked often enough for a median of warm runs, as
                    // the pages of workload d are; what takes longer is warm after its first.
                    while times.count < session.scale.queries
                        || spent < Self.shortestSeconds && times.count < Self.queriesMax
                    {
                        let time = try timed(body)
                        guard time.result == sum else {
                            throw BenchmarkError("\(name): \(metric): another result")
                        }
                        times.append(time.seconds)
                        spent += time.seconds
                    }
                    outcome.checks[metric] = sum
                    if let median = Summary(times)?.median {
                        outcome.readings.append(.time(metric, median))
                    }
                }
                let range = 78_840_000.25...157_680_000.75
                try measure(Names.rangeCount) { UInt64(try peer.countRows(timestamps: range)) }
                let count = Item(id: 1, seed: session.seed).count
                try measure(Names.predicateScan) {
                    let fold = try peer.rows(count: count)
                    return fold.value &+ fold.rows
                }
                try measure(Names.bounds) {
                    let bounds = try peer.timestampBounds()
                    return bounds.lowerBound.bitPattern &+ bounds.upperBound.bitPattern << 1
                }
                try measure(Names.distinct) { UInt64(try peer.distinctCounts()) }
                try peer.close()
                return outcome
            }
        )
    }
}
