// Workload u: what a file weighs after many small edits, when the app does nothing more.

import Foundation

extension Workload {
    /// Names of workload u's numbers.
    public enum SmallEdits {
        /// All files of the store, open and left alone.
        public static let file = "u, file after small edits, idle"
        /// The same over what the rows weigh packed, without indexes.
        public static let overLive = "u, file after small edits over its rows, idle"
        /// The most that the files were on the way, over the same.
        public static let most = "u, most of the file during small edits over its rows"
    }
}

extension Contestant {
    /// A peer in workload u. Each save changes ten rows, one column of each.
    public static func smallEdits<Peer: BulkChangePeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        @Sendable func count(_ scale: Scale) -> Int { max(100, scale.rows / 4) }
        return Contestant(
            name: name,
            level: level,
            missing: missing,
            stock: .items(type, options, name: "edited", rows: count),
            measure: { session in
                typealias Names = Workload.SmallEdits
                var outcome = Outcome()
                let rows = count(session.scale)
                let folder = try session.copyOfStock()
                let peer = try Peer(
                    directory: folder,
                    options: options.with { $0.makesObjects = true }
                )
                try peer.prepareToRead(rows: rows)
                let live = Double(packedBytes(rows, session))
                let most = try edit(peer, rows, session, watching: folder)
                let idle = idleBytes(folder, session.scale.idleSeconds)
                outcome.readings.append(.size(Names.file, Double(idle)))
                outcome.readings.append(
                    .number(Names.overLive, Double(idle) / live, unit: "times")
                )
                outcome.readings.append(
                    .number(Names.most, Double(max(most, idle)) / live, unit: "times")
                )
                let hash = try peer.contentHash()
                guard hash.rows == UInt64(rows) else {
                    throw BenchmarkError("\(name): \(hash.rows) of \(rows) rows are there")
                }
                outcome.checks[Names.file] = hash.value
                try peer.close()
                return outcome
            }
        )
    }

    /// The edits, in saves of ten. Returns the most bytes that the folder's files had meanwhile.
    private static func edit<Peer: BulkChangePeer>(
        _ peer: Peer,
        _ rows: Int,
        _ session: Session,
        watching folder: String
    ) throws -> UInt64 {
        var most: UInt64 = 0
        var random = session.random(25)
        let saves = max(2, session.scale.rows / 10)
        let sampled = max(1, saves / 200)
        for index in 0..<saves {
            let ids = session.scattered(10, of: rows, &random)
            // The column with an index every other time.
            if index % 2 == 0 {
                try peer.updateCounts(
                    ids.map { RowChange(id: $0, value: Int(random.below(1_000))) }
                )
            } else {
                try peer.updateTimestamps(
                    ids.map { RowChange(id: $0, value: Double(random.below(1 << 38)) / 1_000) }
                )
            }
            if index % sampled == 0 { most = max(most, bytes(folder)) }
        }
        return most
    }

    private static func packedBytes(_ rows: Int, _ session: Session) -> Int {
        var bytes: [UInt8] = []
        return (1...Int64(rows)).reduce(0) { sum, id in
            bytes.removeAll(keepingCapacity: true)
            PackedRow.append(Item(id: id, seed: session.seed), to: &bytes)
            return sum + bytes.count
        }
    }

    /// Bytes of a folder once they have stayed the same for a while, at most twenty times as long.
    private static func idleBytes(_ folder: String, _ seconds: Double) -> UInt64 {
        var found = bytes(folder)
        var calm = 0
        for _ in 0..<200 where calm < 10 {
            Thread.sleep(forTimeInterval: seconds / 10)
            let now = bytes(folder)
            calm = now == found ? calm + 1 : 0
            found = now
        }
        return found
    }

    /// Bytes of a folder's files; 0 when one of them went while they were counted, as one does at
    /// the end of a compaction.
    private static func bytes(_ folder: String) -> UInt64 { (try? bytesOnDisk(folder)) ?? 0 }
}
