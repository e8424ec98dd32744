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
        /// Synced log, LZ4, bloom filters, sorted files for loads into an empty store.
        public static let rocksDB = "RocksDB"
        /// Records with the query interface, synchronous=FULL.
        public static let grdbRecords = "GRDB records"
        /// Cached statements and records decoded by position.
        public static let grdbPrepared = "GRDB prepared"
        /// Varve without the disturbance that a number is about.
        public static let itselfAlone = "itself alone"
    }

    /// One line of the goals: engine level for the C libraries, object level for GRDB. A line
    /// without settings means the usual ones.
    private struct Line {
        var metric: String
        var usual: Double?
        var best: Double?
        var lmdb: Double?
        var rocksDB: Double?
        var records: Double?
        var prepared: Double?

        init(
            _ metric: String,
            _ usual: Double? = nil,
            best: Double? = nil,
            lmdb: Double? = nil,
            rocksDB: Double? = nil,
            records: Double? = nil,
            prepared: Double? = nil
        ) {
            self.metric = metric
            self.usual = usual
            self.best = best
            self.lmdb = lmdb
            self.rocksDB = rocksDB
            self.records = records
            self.prepared = prepared
        }

        var goals: [Goal] {
            let sides: [(String, Level, Double?)] = [
                (Peers.sqliteUsual, .engine, usual), (Peers.sqliteBest, .engine, best),
                (Peers.lmdb, .engine, lmdb), (Peers.rocksDB, .engine, rocksDB),
                (Peers.grdbRecords, .object, records), (Peers.grdbPrepared, .object, prepared),
            ]
            return sides.compactMap { peer, level, ratio in
                ratio.map { Goal(metric: metric, level: level, peer: peer, ratio: $0) }
            }
        }
    }

    /// Every goal there is, in the order of the workloads.
    public static let all: [Goal] = {
        let tenMillion = Workload.ScaleChart.metric(.insert, rows: 10_000_000)
        typealias A = Workload.BulkInsert
        typealias B = Workload.DurableCommits
        typealias C = Workload.RandomReads
        typealias D = Workload.OrderedScan
        typealias E = Workload.SortedFetch
        typealias F = Workload.BulkChanges
        typealias G = Workload.Blobs
        typealias H = Workload.Opening
        typealias I = Workload.MixedWork
        typealias K = Workload.Queries
        typealias L = Workload.LiveLists
        typealias O = Workload.ObjectGraph
        typealias P = Workload.FirstScreen
        typealias Q = Workload.Scrolling
        typealias R = Workload.ObjectMemory
        typealias S = Workload.Prefetching
        typealias T = Workload.BusySaves
        typealias U = Workload.SmallEdits
        let lines = [
            Line(A.indexed, 3.5, best: 3, lmdb: 2, rocksDB: 8, records: 7),
            Line(A.plain, 2.2, lmdb: 0.6, rocksDB: 1, records: 9),
            Line(A.memory, 2, lmdb: 6, rocksDB: 10, records: 2),
            Line(tenMillion, 3, lmdb: 1, rocksDB: 2, records: 4),
            Line(B.mean, 1.2, lmdb: 2.5, rocksDB: 1.4, records: 1.5),
            Line(B.throughput(16), 5, lmdb: 12, rocksDB: 1.4, records: 5),
            Line(B.bytes, 10, lmdb: 20, rocksDB: 0.6, records: 10),
            Line(C.snapshot, best: 1.7, lmdb: 1, rocksDB: 4, records: 15, prepared: 2),
            Line(C.memory, best: 1.7, lmdb: 1.2, rocksDB: 3),
            Line(C.rowCache, 5, lmdb: 3, rocksDB: 10, records: 60, prepared: 8),
            Line(C.isolated, 3, lmdb: 0.6, rocksDB: 3, records: 12),
            Line(D.all, best: 2, lmdb: 1.5, rocksDB: 7, records: 2),
            Line(D.first, 3, lmdb: 0.8, rocksDB: 10, records: 4),
            Line(D.middle, 2000, lmdb: 1000, rocksDB: 8000, records: 1500),
            Line(E.faults, records: 9),
            Line(E.filled, records: 2),
            Line(E.filledRepeated, records: 3),
            Line(F.plain, 4, best: 3, lmdb: 2, rocksDB: 3, records: 12),
            Line(F.indexed, 3, best: 2.5, lmdb: 1.5, rocksDB: 3.5, records: 9),
            Line(F.delete, 3, best: 2, lmdb: 1.8, rocksDB: 3.5, records: 5),
            Line(G.writeLarge, 1.8, lmdb: 0.5, rocksDB: 1.1, records: 2),
            Line(G.readLarge, 1.7, lmdb: 0.5, rocksDB: 20, records: 2.5),
            Line(G.readSmall, 1.5, lmdb: 0.4, rocksDB: 3, records: 6),
            Line(G.writeSmall, 2, lmdb: 0.6, rocksDB: 1.3, records: 2),
            Line(H.cold, 2, lmdb: 1, rocksDB: 30, records: 4.5),
            Line(H.warm, 2.5, lmdb: 0.5, rocksDB: 40, records: 5),
            Line(I.alone, 3, lmdb: 0.5, rocksDB: 2, records: 25),
            Line(I.beside, 5, lmdb: 0.7, rocksDB: 2, records: 30),
            Line(I.commits, 10, lmdb: 10, rocksDB: 1.8, records: 8),
            Line(A.size, 2.8, lmdb: 4, rocksDB: 1.8, records: 2.8),
            Line(F.size, 1.1, lmdb: 3, rocksDB: 0.9, records: 1.1),
            Line(F.compactedSize, 2.8, lmdb: 4, rocksDB: 1.6, records: 2.8),
            Line(F.compaction, 2, lmdb: 0.6, rocksDB: 4, records: 2),
            Line(K.rangeCount, 4000, lmdb: 1500, rocksDB: 15000, records: 2500),
            Line(K.predicateScan, 4, lmdb: 2, rocksDB: 15, records: 4),
            Line(K.distinct, 4, lmdb: 2, rocksDB: 8, records: 4),
            Line(L.tenChanged, records: 20),
            Line(L.thousandLists, records: 20),
            Line(O.insert, records: 2),
            Line(O.update, records: 3),
            Line(O.cascade, records: 2),
            Line(P.cold, records: 5),
            Line(Q.p99, records: 10),
            Line(R.object, records: 1),
            Line(S.toOne, records: 4),
            Line(S.toMany, records: 4),
            Line(T.p99, records: 5),
            Line(U.file, records: 1),
        ]
        let alone = [
            Goal(metric: I.share, level: .engine, peer: Peers.itselfAlone, ratio: 0.85)
        ]
        return lines.flatMap(\.goals) + alone
    }()
}
