// Workload a: all rows in one durable transaction, into an empty store.

extension Workload {
    /// Names of workload a's numbers.
    public enum BulkInsert {
        /// Time with both indexes in place.
        public static let indexed = "a, 2 indexes maintained"
        /// Time without indexes.
        public static let plain = "a, no index"
        /// Resident memory at its peak over the start, with both indexes.
        public static let memory = "a, peak memory growth"
        /// Bytes of the store afterwards, closed.
        public static let size = "j, size after a"
    }
}

extension Contestant {
    /// A peer in workload a.
    public static func bulkInsert<Peer: ItemPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        Contestant(name: name, level: level, missing: missing) { session in
            typealias Names = Workload.BulkInsert
            var outcome = Outcome()
            let items = Item.rows(1...Int64(session.scale.rows), seed: session.seed)
            for indexed in [true, false] {
                let metric = indexed ? Names.indexed : Names.plain
                let folder = try makeFolder(
                    session.directory,
                    "\(session.round)-\(indexed ? "indexed" : "plain")"
                )
                ProcessCounters.resetPeak()
                let before = ProcessCounters.residentBytes
                let peer = try Peer(
                    directory: folder,
                    options: options.with { $0.indexed = indexed }
                )
                let time = try timed { try peer.insert(items) }
                outcome.readings.append(.time(metric, time.seconds))
                if indexed, let before, let peak = ProcessCounters.peakResidentBytes {
                    outcome.readings.append(.size(Names.memory, Double(peak) - Double(before)))
                }
                let hash = try peer.contentHash()
                guard hash.rows == UInt64(items.count) else {
                    throw BenchmarkError("\(name): \(hash.rows) of \(items.count) rows are there")
                }
                outcome.checks[metric] = hash.value
                try peer.close()
                if indexed {
                    let bytes = try bytesOnDisk(folder)
                    outcome.readings.append(.size(Names.size, Double(bytes)))
                }
                try removeFolder(folder)
            }
            return outcome
        }
    }
}
