// Workload f: many rows changed and deleted, each in one durable transaction; and j: what the store
// weighs afterwards, and after compaction.

extension Workload {
    /// Names of workload f's numbers, and of j's that come out of it.
    public enum BulkChanges {
        /// Time to update a column without index.
        public static let plain = "f, update plain"
        /// Time to update a column with an index.
        public static let indexed = "f, update indexed"
        /// Time to delete rows.
        public static let delete = "f, delete"
        /// Bytes of the store afterwards, closed.
        public static let size = "j, size after f"
        /// Bytes after compaction, closed.
        public static let compactedSize = "j, size compacted"
        /// Time to compact.
        public static let compaction = "j, time to compact"
    }
}

extension Contestant {
    /// A peer in workload f.
    ///
    /// - Parameter compacts: whether j's numbers are taken too.
    public static func bulkChanges<Peer: CompactingPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        compacts: Bool = true,
        missing: String? = nil
    ) -> Contestant {
        Contestant(
            name: name,
            level: level,
            missing: missing,
            stock: .items(type, options),
            measure: { session in
                typealias Names = Workload.BulkChanges
                var outcome = Outcome()
                let folder = try session.copyOfStock()
                var peer = try Peer(directory: folder, options: options)
                try peer.prepareToRead(rows: session.scale.rows)
                var random = session.random(4)
                let counts = session.differentIDs(count: session.scale.changes, purpose: 1).map {
                    RowChange(id: $0, value: 1000 + Int(random.below(1000)))
                }
                let times = session.differentIDs(count: session.scale.changes, purpose: 2).map {
                    RowChange(id: $0, value: Double(random.below(315_360_000_000)) / 1000)
                }
                let deleted = session.differentIDs(count: session.scale.changes, purpose: 3)
                let plain = try timed { try peer.updateCounts(counts) }
                outcome.readings.append(.time(Names.plain, plain.seconds))
                let indexed = try timed { try peer.updateTimestamps(times) }
                outcome.readings.append(.time(Names.indexed, indexed.seconds))
                let delete = try timed { try peer.delete(deleted) }
                outcome.readings.append(.time(Names.delete, delete.seconds))
                try peer.close()
                if compacts {
                    let bytes = try bytesOnDisk(folder)
                    outcome.readings.append(.size(Names.size, Double(bytes)))
                }
                // Every changed row, as a new connection finds it.
                func check(_ peer: Peer, _ metric: String) throws {
                    let hash = try peer.contentHash()
                    let left = session.scale.rows - deleted.count
                    guard hash.rows == UInt64(left) else {
                        throw BenchmarkError("\(name): \(metric): \(hash.rows) of \(left) rows")
                    }
                    outcome.checks["f, rows"] = hash.value
                }
                peer = try Peer(directory: folder, options: options)
                try check(peer, "changes")
                if compacts, let reason = Peer.compactionMissing {
                    outcome.missing[Names.compaction] = reason
                    outcome.missing[Names.compactedSize] = reason
                } else if compacts {
                    let time = try timed { try peer.compact() }
                    outcome.readings.append(.time(Names.compaction, time.seconds))
                    try peer.close()
                    let bytes = try bytesOnDisk(folder)
                    outcome.readings.append(.size(Names.compactedSize, Double(bytes)))
                    peer = try Peer(directory: folder, options: options)
                    try check(peer, "compaction")
                }
                try peer.close()
                return outcome
            }
        )
    }
}
