// Workload t: saves of 100 rows, alone and while the file is compacted.

extension Workload {
    /// Names of workload t's numbers.
    public enum BusySaves {
        /// A save with nothing beside it.
        public static let alone = "t, 100-row save"
        /// A save beside a compaction, or what a peer has in its place.
        public static let beside = "t, 100-row save beside a compaction"
        /// What one save of a hundred takes at least.
        public static let p99 = "t, 100-row save beside a compaction, p99"
        /// The slowest save.
        public static let worst = "t, 100-row save beside a compaction, worst"
        /// A compaction beside the saves.
        public static let pass = "t, compaction beside 100-row saves"
    }
}

/// Workload t: a store that is compacted beside savers.
public protocol BusySavePeer: BulkChangePeer {
    /// Compacts once while another thread saves. A library that cannot do that does what comes
    /// nearest.
    ///
    /// - Parameter scratch: an empty folder for what is thrown away; it is empty afterwards.
    func compactBesideSaves(scratch: String) throws
}

extension Contestant {
    /// A peer in workload t. Objects are changed one by one where there are objects.
    public static func busySaves<Peer: BusySavePeer>(
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
                typealias Names = Workload.BusySaves
                var outcome = Outcome()
                let rows = session.scale.rows
                let peer = try Peer(
                    directory: try session.copyOfStock(),
                    options: options.with { $0.makesObjects = true }
                )
                try peer.prepareToRead(rows: rows)
                var random = session.random(24)
                func save() throws -> Double {
                    let changes = session.countChanges(of: rows, &random)
                    let time = try timed { try peer.updateCounts(changes) }
                    return time.seconds
                }
                let alone = try (0..<session.scale.busySaves).map { _ in try save() }
                let scratch = try makeFolder(session.directory, "scratch")
                let loop = BackgroundLoop { _ in try peer.compactBesideSaves(scratch: scratch) }
                loop.start()
                var beside: [Double] = []
                let saved = Result {
                    for _ in 0..<session.scale.busySaves { beside.append(try save()) }
                    // Saves beside the end of a compaction belong to it: that is when it disturbs.
                    while loop.passes == 0, !loop.hasFailed { beside.append(try lastSave(peer)) }
                }
                let compacted = try loop.stop()
                try saved.get()
                _ = try lastSave(peer)
                beside.sort()
                for (metric, share, times) in [
                    (Names.alone, 0.5, alone.sorted()), (Names.beside, 0.5, beside),
                    (Names.p99, 0.99, beside), (Names.worst, 1.0, beside),
                ] {
                    guard let value = percentile(share, ofSorted: times) else { continue }
                    outcome.readings.append(.time(metric, value))
                }
                let pass = compacted.seconds / Double(compacted.passes)
                outcome.readings.append(.time(Names.pass, pass))
                outcome.checks[Names.beside] = try peer.contentHash().value
                try peer.close()
                return outcome
            }
        )
    }

    /// A save that may be repeated as often as one likes: the rows are the same afterwards.
    private static func lastSave<Peer: BusySavePeer>(_ peer: Peer) throws -> Double {
        let changes = (1...100).map { RowChange(id: $0, value: 1_000) }
        let back = (1...100).map { RowChange(id: $0, value: 1_001) }
        _ = try peer.updateCounts(back)
        return try timed { try peer.updateCounts(changes) }.seconds
    }
}
