// The workloads, and who takes part in them with which settings. A new peer is one line in
// `everybody`, a new workload one `Event` and one entry in `workloads`.

import BenchmarkHarness

private typealias Peers = Goal.Peers

/// What every contestant of rows can do.
typealias RowPeer = LateIndexPeer & DurableCommitPeer & PointReadPeer & OrderedScanPeer
    & SortedFetchPeer & CompactingPeer & OpeningPeer & MixedPeer & QueryPeer

/// What contestants with objects can do beyond that.
typealias ObjectPeer = LiveListPeer & LongListPeer

/// What contestants of the work that users feel can do.
typealias FeltPeer = FilledObjectsPeer & ScrollingPeer & BusySavePeer

/// One contestant's line in the registry.
struct Entry {
    var name: String
    var level: Level
    /// What a measurement runs with unless it says otherwise.
    var options: PeerOptions
    /// The same with no more cache than any other contestant has.
    var modest: PeerOptions
    /// The same with memory for all data.
    var roomy: PeerOptions
    var missing: String?
}

/// A workload as a function of the contestant. Swift has no generic closures: a method is generic
/// in their place.
protocol Event {
    func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant
}

/// The same for work that libraries below objects do not do.
protocol ObjectEvent {
    func contestant<Peer: ObjectPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant
}

/// The same for work that users feel: objects, and structs that are made by hand.
protocol FeltEvent {
    func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant
}

enum Registry {
    static let usual = PeerOptions()
    /// Best settings, with the cache that the libraries' authors recommend for such data.
    static let best = PeerOptions().with {
        $0.tuning = .best
        $0.cacheBytes = 512 << 20
    }
    private static let bestModest = PeerOptions().with { $0.tuning = .best }
    private static let roomy = PeerOptions().with {
        $0.tuning = .best
        $0.cacheBytes = 1 << 30
    }
    private static let usualRoomy = PeerOptions().with { $0.cacheBytes = 1 << 30 }

    static let workloads = [
        Workload(
            id: "a",
            title: "all rows in one durable transaction",
            alsoMeasures: ["j"],
            contestants: everybody(Events.BulkInsert())
                + objectByObject(Events.BulkInsert()) + [.sequentialWrite]
        ),
        Workload(
            id: "b",
            title: "one-row durable commits",
            contestants: everybody(Events.DurableCommits()) + [.syncedOverwrite, .syncedAppend]
        ),
        Workload(
            id: "c",
            title: "random reads by ID",
            contestants: everybody(Events.RandomReads()) + unpacked(Events.RandomReads())
                + [.rowCopy]
        ),
        Workload(
            id: "d",
            title: "rows in the order of timestamps",
            contestants: everybody(Events.OrderedScan()) + unpacked(Events.OrderedScan())
                + [.rowWalk]
        ),
        Workload(
            id: "e",
            title: "the whole list in the order of timestamps",
            contestants: everybody(Events.SortedFetch()) + unpacked(Events.SortedFetch())
                + [.rowBuilding]
        ),
        Workload(
            id: "f",
            title: "many rows changed and deleted",
            alsoMeasures: ["j"],
            contestants: everybody(Events.BulkChanges())
                + objectByObject(Events.BulkChanges()) + [.changedRows]
        ),
        Workload(id: "g", title: "large values", contestants: blobs + [.largeValues]),
        Workload(
            id: "h",
            title: "opening and a first read",
            contestants: everybody(Events.Opening()) + unpacked(Events.Opening()) + [.coldRead]
        ),
        Workload(
            id: "i",
            title: "reads beside a writer",
            contestants: everybody(Events.MixedWork()) + [.syncedRows]
        ),
        Workload(
            id: "k",
            title: "questions about many rows",
            contestants: everybody(Events.Queries()) + unpacked(Events.Queries()) + [.rowFilter]
        ),
        Workload(
            id: "l",
            title: "a list that follows commits",
            contestants: objects(Events.LiveList())
        ),
        Workload(
            id: "m",
            title: "many lists that follow commits",
            contestants: objects(Events.ManyLists())
        ),
        Workload(
            id: "n",
            title: "a list of all rows is opened and looked at",
            contestants: objects(Events.LongList())
        ),
        Workload(id: "o", title: "objects with relationships", contestants: graphs),
        Workload(
            id: "p",
            title: "from nothing open to the first 50 objects",
            contestants: felt(Events.FirstScreen())
        ),
        Workload(
            id: "q",
            title: "a list is scrolled beside a writer",
            contestants: felt(Events.Scrolling())
        ),
        Workload(
            id: "r",
            title: "memory of many objects",
            contestants: felt(Events.ObjectMemory())
        ),
        Workload(
            id: "s",
            title: "objects read with what they lead to",
            contestants: prefetchers
        ),
        Workload(
            id: "t",
            title: "saves beside a compaction",
            contestants: felt(Events.BusySaves())
        ),
        Workload(
            id: "u",
            title: "the file after many small edits",
            roundsMax: 1,
            contestants: felt(Events.SmallEdits())
        ),
    ]

    /// The chart over size: the work in stores of one size.
    static func scaleChart(rows: Int) -> Workload {
        Workload(
            id: "scale-\(rows)",
            title: "the same work in a store of \(rows) rows",
            roundsMax: rows < 1_000_000 ? .max : 1,
            contestants: everybody(Events.ScaleChart(rows: rows))
        )
    }

    /// The workload of an ID, as a run's own processes ask for it.
    static func workload(_ id: String) -> Workload? {
        if let known = workloads.first(where: { $0.id == id }) { return known }
        guard id.hasPrefix("scale-"), let rows = Int(id.dropFirst(6)), rows > 0 else { return nil }
        return scaleChart(rows: rows)
    }

    private static func entry(
        _ name: String,
        _ level: Level,
        isBest: Bool = false,
        missing: String? = nil
    ) -> Entry {
        Entry(
            name: name,
            level: level,
            options: isBest ? best : usual,
            modest: isBest ? bestModest : usual,
            roomy: isBest ? roomy : usualRoomy,
            missing: missing
        )
    }

    /// All contestants of rows, in the order in which they take turns.
    static func everybody(_ event: some Event) -> [Contestant] {
        engines(event) + [
            event.contestant(entry(Report.varve, .object), VarveObjectPeer.self),
            event.contestant(entry(Peers.grdbRecords, .object), GRDBPeer.self),
            event.contestant(entry(Peers.grdbPrepared, .object, isBest: true), GRDBPeer.self),
        ]
    }

    /// Contestants with objects.
    static func objects(_ event: some ObjectEvent) -> [Contestant] {
        [
            event.contestant(entry(Report.varve, .object), VarveObjectPeer.self),
            event.contestant(entry(Peers.grdbRecords, .object), GRDBPeer.self),
            event.contestant(entry(Peers.grdbPrepared, .object, isBest: true), GRDBPeer.self),
        ]
    }

    /// Contestants of the work that users feel. SQLite makes structs of its rows by hand.
    static func felt(_ event: some FeltEvent) -> [Contestant] {
        [
            event.contestant(entry(Report.varve, .object), VarveObjectPeer.self),
            event.contestant(entry(Peers.grdbRecords, .object), GRDBPeer.self),
            event.contestant(entry(Peers.grdbPrepared, .object, isBest: true), GRDBPeer.self),
            event.contestant(entry(Peers.sqliteUsual, .object), SQLitePeer.self),
            event.contestant(entry(Peers.sqliteBest, .object, isBest: true), SQLitePeer.self),
        ]
    }

    /// Varve as apps change objects one by one, where `everybody` uses batches.
    static func objectByObject(_ event: some Event) -> [Contestant] {
        var own = entry(Report.varve + ", object by object", .object)
        own.options.makesObjects = true
        return [event.contestant(own, VarveObjectPeer.self)]
    }

    /// Varve with leaves as savers write them: what packing them costs and brings.
    static func unpacked(_ event: some Event) -> [Contestant] {
        var records = entry(Report.varve + ", not packed", .engine)
        var objects = entry(Report.varve + ", not packed", .object)
        for options in [\Entry.options, \.modest, \.roomy] {
            records[keyPath: options].packsLeaves = false
            objects[keyPath: options].packsLeaves = false
        }
        return [
            event.contestant(records, VarveRecordPeer.self),
            event.contestant(objects, VarveObjectPeer.self),
        ]
    }

    /// Contestants below objects.
    static func engines(_ event: some Event) -> [Contestant] {
        let lmdb = entry(Peers.lmdb, .engine, missing: LMDBLibrary.missing)
        let rocksDB = entry(Peers.rocksDB, .engine, missing: RocksDBLibrary.missing)
        return [
            event.contestant(entry(Report.varve, .engine), VarveRecordPeer.self),
            event.contestant(entry(Peers.sqliteUsual, .engine), SQLitePeer.self),
            event.contestant(entry(Peers.sqliteBest, .engine, isBest: true), SQLitePeer.self),
            event.contestant(lmdb, LMDBPeer.self),
            event.contestant(rocksDB, RocksDBPeer.self),
        ]
    }

    private static let graphs: [Contestant] = [
        .objectGraph(Report.varve, .object, VarveGraphPeer.self, usual),
        .objectGraph(Peers.grdbRecords, .object, GRDBGraphPeer.self, usual),
        .objectGraph(Peers.grdbPrepared, .object, GRDBGraphPeer.self, best),
    ]

    private static let prefetchers: [Contestant] = [
        .prefetching(Report.varve, .object, VarveGraphPeer.self, usual),
        .prefetching(Peers.grdbRecords, .object, GRDBGraphPeer.self, usual),
        .prefetching(Peers.grdbPrepared, .object, GRDBGraphPeer.self, best),
        .prefetching(Peers.sqliteUsual, .object, SQLiteGraphPeer.self, usual),
        .prefetching(Peers.sqliteBest, .object, SQLiteGraphPeer.self, best),
    ]

    private static let blobs: [Contestant] = [
        .blobs(Report.varve, .engine, VarveRecordBlobPeer.self, usual),
        .blobs(Report.varve + ", digest checked", .engine, VarveRecordBlobPeer.self, best),
        .blobs(Peers.sqliteUsual, .engine, SQLiteBlobPeer.self, usual),
        .blobs(Peers.sqliteBest, .engine, SQLiteBlobPeer.self, best),
        .blobs(Peers.lmdb, .engine, LMDBBlobPeer.self, missing: LMDBLibrary.missing),
        .blobs(Peers.rocksDB, .engine, RocksDBBlobPeer.self, missing: RocksDBLibrary.missing),
        .blobs(Report.varve, .object, VarveObjectBlobPeer.self, usual),
        .blobs(Report.varve + ", digest checked", .object, VarveObjectBlobPeer.self, best),
        .blobs(Peers.grdbRecords, .object, GRDBBlobPeer.self, usual),
        .blobs(Peers.grdbPrepared, .object, GRDBBlobPeer.self, best),
    ]
}
