// Workload c: rows by ID in random order, warm, every column decoded.

extension Workload {
    /// Names of workload c's numbers, each per read.
    public enum RandomReads {
        /// One snapshot, 64 MiB of caches for each peer.
        public static let snapshot = "c, one snapshot"
        /// A read transaction for each row, 64 MiB of caches.
        public static let isolated = "c, own transaction"
        /// One snapshot, caches as large as the data.
        public static let memory = "c, one snapshot, memory for all data"
        /// Varve's rows in the row cache; the others as in `memory`.
        public static let rowCache = "c, rows in the row cache"
    }
}

extension Contestant {
    /// A peer in workload c.
    ///
    /// - Parameter roomy: options under which all data fits in memory.
    /// - Parameter rowCache: options under which rows are read from a row cache; the peers that
    ///   have none give their `roomy` options.
    public static func randomReads<Peer: PointReadPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        roomy: PeerOptions,
        rowCache: PeerOptions,
        missing: String? = nil
    ) -> Contestant {
        Contestant(
            name: name,
            level: level,
            missing: missing,
            stock: .items(type, options),
            measure: { session in
                typealias Names = Workload.RandomReads
                var outcome = Outcome()
                let ids = session.randomIDs(count: session.scale.reads)
                let fewer = Array(ids.prefix(session.scale.isolatedReads))
                // Enough for everyone to have had every page, and Varve these rows.
                let quarter = Array(ids.prefix(ids.count / 4))
                let warming = Array(ids.prefix(max(quarter.count, 250_000)))
                func measure(
                    _ metric: String,
                    _ ids: [Int64],
                    _ read: ([Int64]) throws -> RowFold
                ) throws {
                    let time = try timed { try read(ids) }
                    guard time.result.rows == UInt64(ids.count) else {
                        throw BenchmarkError(
                            "\(name): \(metric): \(time.result.rows) of \(ids.count) rows found"
                        )
                    }
                    outcome.readings.append(.time(metric, time.seconds / Double(ids.count)))
                    outcome.checks[metric] = time.result.value
                }
                func open(_ options: PeerOptions) throws -> Peer {
                    let peer = try Peer(directory: session.stock, options: options)
                    try peer.prepareToRead(rows: session.scale.rows)
                    _ = try peer.read(ids: warming)
                    return peer
                }
                var peer = try open(options)
                try measure(Names.snapshot, ids, peer.read)
                try measure(Names.isolated, fewer, peer.readIsolated)
                try peer.close()
                peer = try open(roomy)
                try measure(Names.memory, quarter, peer.read)
                try peer.close()
                peer = try open(rowCache)
                try measure(Names.rowCache, quarter, peer.read)
                try peer.close()
                return outcome
            }
        )
    }
}
