// Workload a: all rows in one durable transaction, into an empty store.

extension Workload {
    /// Names of workload a's numbers.
    public enum BulkInsert {
        /// Time with both indexes in place.
        public static let indexed = "a, 2 indexes maintained"
        /// Time for the rows, and the indexes built on them afterwards.
        public static let indexedAfter = "a, indexes after"
        /// Time without indexes.
        public static let plain = "a, no index"
        /// Resident memory at its peak over the start, with both indexes.
        public static let memory = "a, peak memory growth"
        /// Bytes of the store afterwards, settled and closed.
        public static let size = "j, size after a"
    }
}

extension Contestant {
    /// A peer in workload a.
    public static func bulkInsert<Peer: LateIndexPeer>(
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
            for metric in [Names.indexed, Names.indexedAfter, Names.plain] {
                let folder = try makeFolder(session.directory, "store")
                ProcessCounters.resetPeak()
                let before = ProcessCounters.residentBytes
                let settings = options.with { $0.indexed = metric == Names.indexed }
                let peer = try Peer(directory: folder, options: settings)
                let time = try timed {
                    if metric == Names.indexedAfter {
                        try peer.insertThenIndex(items)
                    } else {
                        try peer.insert(items)
                    }
                }
                outcome.readings.append(.time(metric, time.seconds))
                if metric == Names.indexed, let before,
                    let peak = ProcessCounters.peakResidentBytes
                {
                    outcome.readings.append(.size(Names.memory, Double(peak) - Double(before)))
                }
                let hash = try peer.contentHash()
                guard hash.rows == UInt64(items.count) else {
                    throw BenchmarkError("\(name): \(hash.rows) of \(items.count) rows are there")
                }
                outcome.checks["a, rows"] = hash.value
                if metric == Names.indexed { try peer.settle() }
                try peer.close()
                if metric == Names.indexed {
                    let bytes = try bytesOnDisk(folder)
                    outcome.readings.append(.size(Names.size, Double(bytes)))
                }
                try removeFolder(folder)
            }
            return outcome
        }
    }
}
