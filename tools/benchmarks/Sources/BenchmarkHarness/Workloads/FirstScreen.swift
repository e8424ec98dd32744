// Workload p: a store is opened and the first 50 objects of a sorted list are shown.

extension Workload {
    /// Names of workload p's numbers.
    public enum FirstScreen {
        /// Nothing of the store in memory.
        public static let cold = "p, cold open to the first 50 objects"
        /// The store's pages in the page cache.
        public static let warm = "p, warm open to the first 50 objects"
    }
}

/// Workloads p and r: objects, or structs, that have every value in memory.
public protocol FilledObjectsPeer: ItemPeer {
    /// Objects that stay as long as this is held.
    associatedtype Objects
    /// The first rows by timestamp.
    func firstObjects(_ limit: Int) throws -> Objects
    /// Reads every property. The ID counts as 0 in this sum.
    func readEveryProperty(of objects: Objects) -> RowFold
    /// Gives back rows that no object holds, where the library keeps any. Pages stay.
    func trimRows()
}

extension FilledObjectsPeer {
    /// Most libraries keep none.
    public func trimRows() {}
}

extension Contestant {
    /// A peer in workload p. The code is warm, as in workload h.
    public static func firstScreen<Peer: FilledObjectsPeer>(
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
                typealias Names = Workload.FirstScreen
                var outcome = Outcome()
                let small = try makeFolder(session.directory, "small")
                let peer = try Peer(directory: small, options: options)
                try peer.insert(Item.rows(1...100, seed: session.seed))
                try peer.close()
                for _ in 0..<3 { _ = try firstScreen(type, small, options) }
                for (metric, isCold) in [(Names.cold, true), (Names.warm, false)] {
                    var times: [Double] = []
                    for _ in 0..<session.scale.openings {
                        if isCold, try !dropFromPageCache(session.stock) {
                            outcome.missing[metric] = "the page cache keeps the files' pages here"
                            break
                        }
                        let screen = try firstScreen(type, session.stock, options)
                        outcome.checks[metric] = screen.sum
                        times.append(screen.seconds)
                    }
                    guard outcome.missing[metric] == nil, let median = Summary(times)?.median
                    else { continue }
                    outcome.readings.append(.time(metric, median))
                }
                return outcome
            }
        )
    }

    /// From nothing to every property of the first 50 objects.
    private static func firstScreen<Peer: FilledObjectsPeer>(
        _ type: Peer.Type,
        _ directory: String,
        _ options: PeerOptions
    ) throws -> (sum: UInt64, seconds: Double) {
        let time = try timed {
            let peer = try Peer(directory: directory, options: options)
            let fold = peer.readEveryProperty(of: try peer.firstObjects(50))
            return (peer: peer, fold: fold)
        }
        try time.result.peer.close()
        guard time.result.fold.rows == 50 else {
            throw BenchmarkError("\(type): \(time.result.fold.rows) of 50 objects")
        }
        return (time.result.fold.value, time.seconds)
    }
}
