// The goals of the engine's issue: how many times better Varve is to be than a peer.

/// A ratio that is asked for. Over 1 = Varve is better.
public struct Goal: Sendable {
    /// Name of the number.
    public var metric: String
    /// Where it is measured.
    public var level: Level
    /// The other side.
    public var peer: String
    /// The least ratio that meets the goal.
    public var ratio: Double

    /// The goal of a comparison, nil when there is none.
    public static func ratio(_ metric: String, _ level: Level, _ peer: String) -> Double? {
        all.first { $0.metric == metric && $0.level == level && $0.peer == peer }?.ratio
    }

    /// Names of the peers, as goals and output write them.
    public enum Peers {
        /// Write-ahead log, synchronous=FULL, otherwise defaults.
        public static let sqliteUsual = "SQLite usual"
        /// Also mapped file, large cache, large log.
        public static let sqliteBest = "SQLite best"
        /// Long read transactions, integer keys.
        public static let lmdb = "LMDB"
        /// Records with the query interface, synchronous=FULL.
        public static let grdbRecords = "GRDB records"
        /// Cached statements and records decoded by position.
        public static let grdbPrepared = "GRDB prepared"
    }

    /// Every goal there is.
    public static let all: [Goal] = {
        typealias A = Workload.BulkInsert
        typealias B = Workload.DurableCommits
        typealias C = Workload.RandomReads
        typealias E = Workload.SortedFetch
        var goals: [Goal] = []
        func engine(_ metric: String, usual: Double?, best: Double?, lmdb: Double?) {
            for (peer, ratio) in [
                (Peers.sqliteUsual, usual), (Peers.sqliteBest, best), (Peers.lmdb, lmdb),
            ] {
                guard let ratio else { continue }
                goals.append(Goal(metric: metric, level: .engine, peer: peer, ratio: ratio))
            }
        }
        func object(_ metric: String, records: Double, prepared: Double? = nil) {
            goals.append(
                Goal(metric: metric, level: .object, peer: Peers.grdbRecords, ratio: records)
            )
            guard let prepared else { return }
            goals.append(
                Goal(metric: metric, level: .object, peer: Peers.grdbPrepared, ratio: prepared)
            )
        }
        engine(A.indexed, usual: 2.5, best: nil, lmdb: 1.5)
        engine(A.plain, usual: 2, best: nil, lmdb: 1)
        engine(A.memory, usual: 1, best: nil, lmdb: 3)
        engine(A.size, usual: 1.5, best: nil, lmdb: 2)
        engine(B.mean, usual: 1.4, best: nil, lmdb: 2.5)
        engine(B.bytes, usual: 25, best: nil, lmdb: 80)
        engine(C.snapshot, usual: nil, best: 1.2, lmdb: 0.8)
        engine(C.rowCache, usual: nil, best: 4, lmdb: 2)
        engine(C.isolated, usual: 3, best: nil, lmdb: 0.9)
        object(A.indexed, records: 5)
        object(A.plain, records: 8)
        object(B.mean, records: 1.5)
        object(C.snapshot, records: 20, prepared: 4)
        object(C.rowCache, records: 40, prepared: 8)
        object(C.isolated, records: 20)
        object(E.faults, records: 12)
        object(E.filled, records: 3)
        return goals
    }()
}
