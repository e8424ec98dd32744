// Workload s: 1,000 objects are read together with what one of their relationships leads to.

extension Workload {
    /// Names of workload s's numbers.
    public enum Prefetching {
        /// Photos, each with its author; new connection.
        public static let toOne = "s, 1,000 objects with a to-one"
        /// The same again on the same connection.
        public static let toOneRepeated = "s, 1,000 objects with a to-one, repeated"
        /// People, each with some ten photos; new connection.
        public static let toMany = "s, 1,000 objects with a to-many"
        /// The same again on the same connection.
        public static let toManyRepeated = "s, 1,000 objects with a to-many, repeated"
    }
}

/// Workload s: photos and people that are read with what they lead to. Sums are made with
/// `GraphPhoto.readingSum`, after every property was read.
public protocol PrefetchPeer: GraphStore {
    /// The first photos by ID, and the author of each.
    func photosWithAuthors(_ limit: Int) throws -> (photos: Int, sum: UInt64)
    /// The first people by ID, and all photos of each.
    func peopleWithPhotos(_ limit: Int) throws -> (photos: Int, sum: UInt64)
}

extension GraphPhoto {
    /// What a photo and the name of its author add. Order does not matter. Cheap: it is part of
    /// what is timed.
    @inlinable public static func readingSum(_ title: String, _ stars: Int, _ author: String)
        -> UInt64
    {
        let texts = RowFold.digest(title) &* 31 &+ RowFold.digest(author)
        return texts &* 31 &+ UInt64(stars)
    }
}

extension Contestant {
    /// A peer in workload s.
    public static func prefetching<Peer: PrefetchPeer>(
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
            stock: .people(type, options),
            measure: { session in
                typealias Names = Workload.Prefetching
                let count = session.scale.prefetched
                var outcome = Outcome()
                var peer = try Peer(graphDirectory: session.stock, options: options)
                func work(_ metric: String) throws -> Double {
                    let time = try timed {
                        try metric == Names.toOne
                            ? peer.photosWithAuthors(count) : peer.peopleWithPhotos(count)
                    }
                    outcome.checks[metric] = time.result.sum &+ UInt64(time.result.photos)
                    return time.seconds
                }
                func append(_ times: [Double], _ metric: String) {
                    guard let median = Summary(times)?.median else { return }
                    outcome.readings.append(.time(metric, median))
                }
                for (metric, again) in [
                    (Names.toOne, Names.toOneRepeated), (Names.toMany, Names.toManyRepeated),
                ] {
                    // The code is warm.
                    _ = try work(metric)
                    var times: [Double] = []
                    for _ in 0..<session.scale.openings {
                        try peer.close()
                        peer = try Peer(graphDirectory: session.stock, options: options)
                        times.append(try work(metric))
                    }
                    append(times, metric)
                    times = []
                    for _ in 0..<session.scale.listRepeats { times.append(try work(metric)) }
                    append(times, again)
                }
                try peer.close()
                return outcome
            }
        )
    }
}

extension Stock {
    /// Twice as many people as are read, with ten photos each on average.
    fileprivate static func people<Peer: GraphStore>(
        _ type: Peer.Type,
        _ options: PeerOptions
    ) -> Stock {
        Stock("people") { session in
            let people = session.scale.prefetched * 2
            let albums = max(1, people / 10)
            var random = session.random(23)
            let photos = (1...Int64(people * 10)).map {
                GraphPhoto($0, albums: albums, people: people, &random)
            }
            let peer = try Peer(graphDirectory: session.directory, options: options)
            try peer.insertGroups(albums: albums, people: people)
            try peer.insert(photos)
            try peer.close()
        }
    }
}
