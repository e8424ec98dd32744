// Who takes part in which workload. A new peer or workload is one file and one line here.

import BenchmarkHarness

private typealias Peers = Goal.Peers

enum Registry {
    static let workloads = [bulkInsert, durableCommits, randomReads, sortedFetch]

    private static let usual = PeerOptions()
    private static let best = PeerOptions().with {
        $0.tuning = .best
        $0.cacheBytes = 512 << 20
    }
    /// Best settings, with no more cache than the other side has.
    private static let bestSmall = PeerOptions().with { $0.tuning = .best }
    /// All data fits in memory.
    private static let roomy = PeerOptions().with {
        $0.tuning = .best
        $0.cacheBytes = 1 << 30
    }
    private static let rowsCached = PeerOptions().with {
        $0.tuning = .best
        $0.cacheBytes = 1 << 30
        $0.rowCacheBytes = 1 << 30
    }

    private static let bulkInsert = Workload(
        id: "a",
        title: "all rows in one durable transaction",
        contestants: [
            .bulkInsert(Report.varve, .engine, VarveRecordPeer.self, usual),
            .bulkInsert(Peers.sqliteUsual, .engine, SQLitePeer.self, usual),
            .bulkInsert(Peers.sqliteBest, .engine, SQLitePeer.self, best),
            .bulkInsert(Peers.lmdb, .engine, LMDBPeer.self, missing: LMDBLibrary.missing),
            .bulkInsert(Report.varve, .object, VarveObjectPeer.self, usual),
            .bulkInsert(Peers.grdbRecords, .object, GRDBPeer.self, usual),
            .bulkInsert(Peers.grdbPrepared, .object, GRDBPeer.self, best),
            .sequentialWrite,
        ]
    )

    private static let durableCommits = Workload(
        id: "b",
        title: "one-row durable commits",
        contestants: [
            .durableCommits(Report.varve, .engine, VarveRecordPeer.self, usual),
            .durableCommits(Peers.sqliteUsual, .engine, SQLitePeer.self, usual),
            .durableCommits(Peers.sqliteBest, .engine, SQLitePeer.self, best),
            .durableCommits(Peers.lmdb, .engine, LMDBPeer.self, missing: LMDBLibrary.missing),
            .durableCommits(Report.varve, .object, VarveObjectPeer.self, usual),
            .durableCommits(Peers.grdbRecords, .object, GRDBPeer.self, usual),
            .durableCommits(Peers.grdbPrepared, .object, GRDBPeer.self, best),
            .syncedOverwrite,
            .syncedAppend,
        ]
    )

    private static let randomReads = Workload(
        id: "c",
        title: "random reads by ID",
        contestants: [
            .randomReads(
                Report.varve,
                .engine,
                VarveRecordPeer.self,
                usual,
                roomy: roomy,
                rowCache: rowsCached
            ),
            .randomReads(
                Peers.sqliteUsual,
                .engine,
                SQLitePeer.self,
                usual,
                roomy: usual,
                rowCache: usual
            ),
            .randomReads(
                Peers.sqliteBest,
                .engine,
                SQLitePeer.self,
                bestSmall,
                roomy: roomy,
                rowCache: roomy
            ),
            .randomReads(
                Peers.lmdb,
                .engine,
                LMDBPeer.self,
                usual,
                roomy: usual,
                rowCache: usual,
                missing: LMDBLibrary.missing
            ),
            .randomReads(
                Report.varve,
                .object,
                VarveObjectPeer.self,
                usual,
                roomy: roomy,
                rowCache: rowsCached
            ),
            .randomReads(
                Peers.grdbRecords,
                .object,
                GRDBPeer.self,
                usual,
                roomy: usual,
                rowCache: usual
            ),
            .randomReads(
                Peers.grdbPrepared,
                .object,
                GRDBPeer.self,
                bestSmall,
                roomy: roomy,
                rowCache: roomy
            ),
            .rowCopy,
        ]
    )

    private static let sortedFetch = Workload(
        id: "e",
        title: "the whole list in the order of timestamps",
        contestants: [
            .sortedFetch(Report.varve, .engine, VarveRecordPeer.self, usual),
            .sortedFetch(Peers.sqliteUsual, .engine, SQLitePeer.self, usual),
            .sortedFetch(Peers.sqliteBest, .engine, SQLitePeer.self, best),
            .sortedFetch(Peers.lmdb, .engine, LMDBPeer.self, missing: LMDBLibrary.missing),
            .sortedFetch(Report.varve, .object, VarveObjectPeer.self, usual),
            .sortedFetch(Peers.grdbRecords, .object, GRDBPeer.self, usual),
            .sortedFetch(Peers.grdbPrepared, .object, GRDBPeer.self, best),
            .rowBuilding,
        ]
    )
}
