// Workloads l to n: lists that follow commits, many of them at once, and a list that opens.

extension Workload {
    /// Names of the numbers of workloads l, m and n.
    public enum LiveLists {
        /// A list of 100,000 rows is kept up to date; a commit changes ten of them: from the end of
        /// the commit until the change was told.
        public static let tenChanged = "l, ten of 100,000 rows changed"
        /// 1,000 lists over 40,000 rows; a commit changes one row: until all are up to date.
        public static let thousandLists = "m, one row changed, 1,000 lists"
        /// A sorted list of all rows, with its length and its first row.
        public static let open = "n, list opened"
        /// The same again on the same connection.
        public static let openAgain = "n, list opened again"
        /// One row in the middle of the list, or at another random place.
        public static let jump = "n, jump in the list"
        /// The first ten rows by two columns without an index.
        public static let firstTen = "n, ten by two columns"
        /// How many rows have a text in their note, byte by byte; no index.
        public static let containing = "n, notes with a text"
        /// The same without regard to case.
        public static let containingAnyCase = "n, notes with a text in any case"
    }
}

/// Workload l and m: what follows commits.
public protocol LiveListPeer: BulkChangePeer {
    /// Lists that are kept up to date.
    associatedtype LiveLists
    /// The list of all rows by timestamp.
    func followAll() throws -> LiveLists
    /// A list for each range of timestamps.
    func follow(ranges: [Range<Double>]) throws -> LiveLists
    /// Waits until all lists show the last commit, and have told it. Returns the seconds since that
    /// commit could be read: some libraries bring lists along before the commit returns.
    func catchUp(_ lists: LiveLists) throws -> Double
    /// The timestamps in the lists, one list after the other.
    func timestamps(_ lists: LiveLists) throws -> [Double]
}

/// Workload n: a list of all rows by timestamp that is looked at here and there.
public protocol LongListPeer: PointReadPeer {
    /// The list.
    associatedtype LongList
    /// Opens the list, and reads its length and its first row.
    func openLongList() throws -> (list: LongList, count: Int, first: Double)
    /// The timestamp at a position of the list.
    func timestamp(at position: Int, in list: LongList) throws -> Double
    /// The timestamps of the first rows by count, the largest first, then by note.
    func firstByCountAndNote(limit: Int) throws -> [Double]
    /// How many rows have a text in their note.
    func countNotes(with text: String, ignoringCase: Bool) throws -> Int
}

extension Contestant {
    /// A peer in workload l.
    public static func liveList<Peer: LiveListPeer>(
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
            stock: .items(type, options, name: "live") { $0.liveRows },
            measure: { session in
                let metric = Workload.LiveLists.tenChanged
                return try following(
                    type,
                    options,
                    session,
                    metric,
                    rows: session.scale.liveRows
                ) { peer, random in
                    let ids = session.random(UInt64(random.below(1 << 32)))
                        .different(10, of: session.scale.liveRows)
                    try peer.updateTimestamps(
                        ids.map { RowChange(id: $0, value: random.timestamp()) }
                    )
                } lists: { peer in
                    try peer.followAll()
                }
            }
        )
    }

    /// A peer in workload m.
    public static func manyLists<Peer: LiveListPeer>(
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
            stock: .items(type, options, name: "list") { $0.listRows },
            measure: { session in
                let metric = Workload.LiveLists.thousandLists
                return try following(
                    type,
                    options,
                    session,
                    metric,
                    rows: session.scale.listRows
                ) { peer, random in
                    let id = 1 + Int64(random.below(UInt64(session.scale.listRows)))
                    try peer.updateTimestamps([RowChange(id: id, value: random.timestamp())])
                } lists: { peer in
                    let width = SeededRandom.timestamps / Double(session.scale.lists)
                    return try peer.follow(
                        ranges: (0..<session.scale.lists).map {
                            Double($0) * width..<Double($0 + 1) * width
                        }
                    )
                }
            }
        )
    }

    /// Lists that follow commits: the median time from the end of a commit on.
    private static func following<Peer: LiveListPeer>(
        _ type: Peer.Type,
        _ options: PeerOptions,
        _ session: Session,
        _ metric: String,
        rows: Int,
        change: (Peer, inout SeededRandom) throws -> Void,
        lists: (Peer) throws -> Peer.LiveLists
    ) throws -> Outcome {
        var outcome = Outcome()
        let peer = try Peer(directory: try session.copyOfStock(), options: options)
        try peer.prepareToRead(rows: rows)
        let followed = try lists(peer)
        var random = session.random(12)
        var times: [Double] = []
        for _ in 0..<session.scale.liveCommits {
            try change(peer, &random)
            times.append(try peer.catchUp(followed))
        }
        outcome.checks[metric] = try peer.timestamps(followed).reduce(0) {
            $0 &* 31 &+ $1.bitPattern
        }
        if let median = Summary(times)?.median { outcome.readings.append(.time(metric, median)) }
        try peer.close()
        return outcome
    }
}

extension Contestant {
    /// A peer in workload n.
    public static func longList<Peer: LongListPeer>(
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
                typealias Names = Workload.LiveLists
                var outcome = Outcome()
                let rows = session.scale.rows
                let peer = try Peer(directory: session.stock, options: options)
                func open() throws -> (list: Peer.LongList, count: Int, first: Double) {
                    let opened = try peer.openLongList()
                    guard opened.count == rows else {
                        throw BenchmarkError("\(name): \(opened.count) of \(rows) rows")
                    }
                    return opened
                }
                let first = try timed(open)
                outcome.readings.append(.time(Names.open, first.seconds))
                outcome.checks[Names.open] = first.result.first.bitPattern
                var times: [Double] = []
                for _ in 0..<session.scale.jumps { times.append(try timed(open).seconds) }
                append(times, Names.openAgain)
                var random = session.random(14)
                var sum: UInt64 = 0
                times = []
                for _ in 0..<session.scale.jumps {
                    let position = Int(random.below(UInt64(rows)))
                    let row = try timed { try peer.timestamp(at: position, in: first.result.list) }
                    times.append(row.seconds)
                    sum = sum &* 31 &+ row.result.bitPattern
                }
                append(times, Names.jump)
                outcome.checks[Names.jump] = sum
                times = []
                for _ in 0..<session.scale.queries {
                    let ten = try timed { try peer.firstByCountAndNote(limit: 10) }
                    times.append(ten.seconds)
                    outcome.checks[Names.firstTen] = ten.result.reduce(0) {
                        $0 &* 31 &+ $1.bitPattern
                    }
                }
                append(times, Names.firstTen)
                for (metric, ignoringCase) in [
                    (Names.containing, false), (Names.containingAnyCase, true),
                ] {
                    let word = String(Item(id: 1, seed: session.seed).note.dropFirst(9).prefix(6))
                    let text = ignoringCase ? word.uppercased() : word
                    times = []
                    for _ in 0..<session.scale.queries {
                        let found = try timed {
                            try peer.countNotes(with: text, ignoringCase: ignoringCase)
                        }
                        times.append(found.seconds)
                        outcome.checks[metric] = UInt64(found.result)
                    }
                    append(times, metric)
                }
                try peer.close()
                return outcome

                func append(_ times: [Double], _ metric: String) {
                    guard let median = Summary(times)?.median else { return }
                    outcome.readings.append(.time(metric, median))
                }
            }
        )
    }
}

extension SeededRandom {
    /// Timestamps of rows lie below this.
    static var timestamps: Double { 315_360_000 }

    /// A timestamp that a row could have.
    fileprivate mutating func timestamp() -> Double { Double(below(315_360_000_000)) / 1_000 }

    /// Different IDs of rows.
    fileprivate func different(_ count: Int, of rows: Int) -> [Int64] {
        var random = self
        var ids: Set<Int64> = []
        while ids.count < min(count, rows) { ids.insert(1 + Int64(random.below(UInt64(rows)))) }
        return ids.sorted()
    }
}
