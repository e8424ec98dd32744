// Workload o: objects with relationships, written one by one as apps write them.

extension Workload {
    /// Names of workload o's numbers.
    public enum ObjectGraph {
        /// All photos, each with an album and an author, in one durable save.
        public static let insert = "o, objects with two relationships inserted"
        /// One property of many photos, each looked up by its ID, in one durable save.
        public static let update = "o, objects changed by property"
        /// One photo changed and saved.
        public static let saveOne = "o, one changed object saved"
        /// What that costs this process on the processors, without waiting for the disk.
        public static let saveOneProcessor = "o, processor time of one changed object's save"
        /// All albums are deleted, which takes every photo along, in one durable save.
        public static let cascade = "o, objects deleted by cascade"
    }
}

/// A photo of workload o.
public struct GraphPhoto: Sendable {
    /// From 1 on.
    public var number: Int64
    /// Its title, some 20 bytes.
    public var title: String
    /// Stars that it got.
    public var stars: Int
    /// Its album, from 0 on.
    public var album: Int
    /// Who took it, from 0 on.
    public var author: Int

    /// The photo of a number.
    init(_ number: Int64, albums: Int, people: Int, _ random: inout SeededRandom) {
        self.number = number
        title = "photo \(number) \(random.next() & 0xFFFF_FFFF)"
        stars = Int(random.below(6))
        album = Int(random.below(UInt64(albums)))
        author = Int(random.below(UInt64(people)))
    }
}

/// Workloads o and s: albums and people, and photos that have one of each. An album that is deleted
/// takes its photos along; a person leaves them without an author. Both sides can be followed.
public protocol GraphStore: AnyObject, SendableMetatype {
    /// Opens or makes the store.
    init(graphDirectory: String, options: PeerOptions) throws
    /// Albums and people by number, in one durable commit.
    func insertGroups(albums: Int, people: Int) throws
    /// All photos, one by one, in one durable commit.
    func insert(_ photos: [GraphPhoto]) throws
    /// Closes the store.
    func close() throws
}

/// Workload o: photos that are changed and deleted.
public protocol GraphPeer: GraphStore {
    /// What is needed to find photos by number; not measured.
    func prepareToFind(photos: Int) throws
    /// Sets the stars of photos, each looked up by number, in one durable commit.
    func rate(_ changes: [RowChange<Int>]) throws
    /// Deletes all albums, one by one, in one durable commit.
    func deleteAlbums() throws
    /// A sum over all photos: title, stars, names of album and author.
    func photoSum() throws -> (photos: Int, sum: UInt64)
    /// How many photos people still have.
    func photosOfPeople() throws -> Int
}

extension GraphPhoto {
    /// What `photoSum` adds for a photo. Order does not matter.
    public static func sum(_ title: String, _ stars: Int, _ album: String, _ author: String)
        -> UInt64
    {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for text in [title, album, author] {
            for byte in text.utf8 { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        return sum &* 31 &+ UInt64(stars)
    }
}

extension Contestant {
    /// A peer in workload o.
    public static func objectGraph<Peer: GraphPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        Contestant(name: name, level: level, missing: missing) { session in
            typealias Names = Workload.ObjectGraph
            var outcome = Outcome()
            let count = session.scale.photos
            let (albums, people) = (max(1, count / 1_000), max(1, count / 100))
            let folder = try makeFolder(session.directory, "graph")
            var peer = try Peer(graphDirectory: folder, options: options)
            try peer.insertGroups(albums: albums, people: people)
            var random = session.random(21)
            let photos = (1...Int64(count)).map {
                GraphPhoto($0, albums: albums, people: people, &random)
            }
            let insert = try timed { try peer.insert(photos) }
            outcome.readings.append(.time(Names.insert, insert.seconds))

            func check(_ metric: String, photos expected: Int) throws {
                let found = try peer.photoSum()
                guard found.photos == expected else {
                    throw BenchmarkError("\(name): \(metric): \(found.photos) of \(expected)")
                }
                outcome.checks[metric] = found.sum
                let reached = try peer.photosOfPeople()
                guard reached == expected else {
                    throw BenchmarkError("\(name): \(metric): people have \(reached) photos")
                }
            }
            func reopen() throws {
                try peer.close()
                peer = try Peer(graphDirectory: folder, options: options)
            }
            try reopen()
            try check(Names.insert, photos: count)

            try peer.prepareToFind(photos: count)
            let changes = (0..<session.scale.ratings).map { _ in
                RowChange(
                    id: 1 + Int64(random.below(UInt64(count))),
                    value: Int(random.below(1_000))
                )
            }
            let update = try timed { try peer.rate(changes) }
            outcome.readings.append(.time(Names.update, update.seconds))
            var times: [Double] = []
            let before = ProcessCounters.processorSeconds
            for var change in changes.prefix(session.scale.graphSaves) {
                // Another value than the one that it has.
                change.value += 1_000
                times.append(try timed { try peer.rate([change]) }.seconds)
            }
            let processor = ProcessCounters.processorSeconds - before
            if let median = Summary(times)?.median {
                outcome.readings.append(.time(Names.saveOne, median))
                outcome.readings.append(
                    .time(Names.saveOneProcessor, processor / Double(times.count))
                )
            }
            try reopen()
            try check(Names.update, photos: count)

            let cascade = try timed { try peer.deleteAlbums() }
            outcome.readings.append(.time(Names.cascade, cascade.seconds))
            try reopen()
            try check(Names.cascade, photos: 0)
            try peer.close()
            try removeFolder(folder)
            return outcome
        }
    }
}
