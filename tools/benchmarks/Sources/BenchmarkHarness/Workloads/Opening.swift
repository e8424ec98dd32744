// Workload h: a store is opened and one row read, with and without its pages in the page cache.

extension Workload {
    /// Names of workload h's numbers.
    public enum Opening {
        /// Nothing of the store in memory.
        public static let cold = "h, cold open and first read"
        /// The store's pages in the page cache.
        public static let warm = "h, warm open and first read"
    }
}

extension Contestant {
    /// A peer in workload h.
    ///
    /// The code is warm in both: a small store was opened and read before, so that the numbers are
    /// about the store and not about loading the program.
    public static func opening<Peer: OpeningPeer>(
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
                typealias Names = Workload.Opening
                var outcome = Outcome()
                let rows = session.scale.rows
                let id = session.randomIDs(count: 1)[0]
                let small = try makeFolder(session.directory, "small")
                var peer = try Peer(directory: small, options: options)
                try peer.insert(Item.rows(1...100, seed: session.seed))
                let smallName = try peer.savedName(of: 50, rows: 100)
                try peer.close()
                for _ in 0..<3 {
                    peer = try Peer(directory: small, options: options)
                    _ = try peer.read(savedName: smallName)
                    try peer.close()
                }
                peer = try Peer(directory: session.stock, options: options)
                let name = try peer.savedName(of: id, rows: rows)
                try peer.close()
                var fold = RowFold()
                func openings(_ prepare: () throws -> Bool) throws -> Double? {
                    var times: [Double] = []
                    for _ in 0..<session.scale.openings {
                        guard try prepare() else { return nil }
                        let time = try timed {
                            let peer = try Peer(directory: session.stock, options: options)
                            fold = try peer.read(savedName: name)
                            return peer
                        }
                        times.append(time.seconds)
                        try time.result.close()
                    }
                    return Summary(times)?.median
                }
                if let cold = try openings({ try dropFromPageCache(session.stock) }) {
                    outcome.readings.append(.time(Names.cold, cold))
                } else {
                    outcome.missing[Names.cold] = "the page cache keeps the files' pages here"
                }
                if let warm = try openings({ true }) {
                    outcome.readings.append(.time(Names.warm, warm))
                }
                guard fold.rows == 1 else { throw BenchmarkError("\(name): no row was read") }
                outcome.checks[Names.warm] = fold.value
                return outcome
            }
        )
    }
}
