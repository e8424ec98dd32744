// RocksDB: rows as packed bytes, rows and indexes as three ranges of keys of one database.
//
// One setting, its best fair one: a commit is one synced append to a recycled log; loads into an
// empty store are sorted files, taken in at once; LZ4, bloom filters, a block cache as large as
// the others' caches.

import BenchmarkHarness

final class RocksDBPeer: ItemPeer {
    /// First byte of a key: what it belongs to.
    enum Range: UInt8 {
        case rows = 1
        case timestamps = 2
        case titles = 3
        /// Behind all.
        case end = 4
    }

    let database: RocksDBDatabase
    let directory: String
    let indexed: Bool

    init(directory: String, options: PeerOptions) throws {
        self.directory = directory
        indexed = options.indexed
        database = try RocksDBDatabase(
            path: directory + "/items.rocksdb",
            cacheBytes: options.cacheBytes,
            recyclesLogs: options.keepsOldLogs
        )
    }

    func insert(_ items: [Item]) throws {
        // Nothing but sorted rows for an empty store: no log and no memory table is needed.
        if !indexed, items.count > 10_000, try isEmpty() {
            try database.ingest(directory, [rowFile(items)])
            return
        }
        try database.commit { batch in
            var key: [UInt8] = []
            var row: [UInt8] = []
            for item in items {
                row.removeAll(keepingCapacity: true)
                PackedRow.append(item, to: &row)
                batch.put(Self.rowKey(item.id, &key), row)
                guard indexed else { continue }
                batch.put(Self.timestampKey(item.timestamp, item.id, &key), [])
                batch.put(Self.titleKey(item.title, item.id, &key), [])
            }
        }
    }

    private func isEmpty() throws -> Bool {
        var found = false
        try database.newest.scan(from: []) { _, _ in
            found = true
            return false
        }
        return !found
    }

    /// Fills a sorted file with rows that come in the order of their IDs.
    func rowFile(_ items: [Item]) -> (RocksDBDatabase.FileWriter) throws -> Void {
        { file in
            var key: [UInt8] = []
            var row: [UInt8] = []
            for item in items {
                row.removeAll(keepingCapacity: true)
                PackedRow.append(item, to: &row)
                try file.put(Self.rowKey(item.id, &key), row)
            }
        }
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        try database.snapshot { view in
            try view.scan(from: [Range.rows.rawValue]) { key, value in
                guard key[0] == Range.rows.rawValue else { return false }
                try body(PackedRow(bytes: value()).item(id: KeyBytes.trailingID(key)))
                return true
            }
        }
    }

    /// What the library would do in the background by and by.
    func settle() throws { try database.settle() }

    func close() throws { database.close() }

    // Keys
    static func rowKey(_ id: Int64, _ key: inout [UInt8]) -> [UInt8] {
        key.removeAll(keepingCapacity: true)
        key.append(Range.rows.rawValue)
        KeyBytes.append(id: id, to: &key)
        return key
    }

    static func timestampKey(_ value: Double, _ id: Int64, _ key: inout [UInt8]) -> [UInt8] {
        key.removeAll(keepingCapacity: true)
        key.append(Range.timestamps.rawValue)
        KeyBytes.append(timestamp: value, id: id, to: &key)
        return key
    }

    static func titleKey(_ value: [UInt8], _ id: Int64, _ key: inout [UInt8]) -> [UInt8] {
        key.removeAll(keepingCapacity: true)
        key.append(Range.titles.rawValue)
        KeyBytes.append(title: value, id: id, to: &key)
        return key
    }

    static func titleKey(_ value: String, _ id: Int64, _ key: inout [UInt8]) -> [UInt8] {
        key.removeAll(keepingCapacity: true)
        key.append(Range.titles.rawValue)
        KeyBytes.append(title: value, id: id, to: &key)
        return key
    }

    /// Adds the row of an ID to a sum.
    @inline(__always)
    func get(
        _ view: RocksDBView,
        _ id: Int64,
        as name: Int64? = nil,
        into fold: inout RowFold
    ) throws {
        // 1 byte and 8, as `rowKey` makes them, without an array.
        var key = (Range.rows.rawValue, UInt64(bitPattern: id) ^ 1 << 63)
        try withUnsafeTemporaryAllocation(byteCount: 9, alignment: 8) { bytes in
            bytes[0] = key.0
            key.1 = key.1.bigEndian
            withUnsafeBytes(of: &key.1) { word in
                UnsafeMutableRawBufferPointer(rebasing: bytes[1...]).copyMemory(from: word)
            }
            _ = try view.value(UnsafeRawBufferPointer(bytes)) {
                PackedRow(bytes: $0).fold(id: name ?? id, into: &fold)
            }
        }
    }
}

// Workload b
extension RocksDBPeer: DurableCommitPeer {
    func commit(_ item: Item) throws { try insert([item]) }

    /// RocksDB joins the commits of several threads itself.
    func makeSaver() throws -> (Item) throws -> Void { { [self] in try insert([$0]) } }
}

// Workload c
extension RocksDBPeer: PointReadPeer {
    func prepareToRead(rows: Int) throws {}

    func read(ids: [Int64]) throws -> RowFold {
        try database.snapshot { view in
            var fold = RowFold()
            for id in ids { try get(view, id, into: &fold) }
            return fold
        }
    }

    /// A single get sees one state by itself.
    func readIsolated(ids: [Int64]) throws -> RowFold {
        let view = database.newest
        var fold = RowFold()
        for id in ids { try get(view, id, into: &fold) }
        return fold
    }
}

// Workload e, as SQLite's: IDs, or every row decoded.
extension RocksDBPeer: SortedFetchPeer {
    enum List {
        case ids([Int64])
        case folded(RowFold)
    }

    func fetchFaults() throws -> List {
        var ids: [Int64] = []
        try database.snapshot { view in
            try eachSorted(view) {
                ids.append($0)
                return true
            }
        }
        return .ids(ids)
    }

    func fetchFilled() throws -> List {
        try database.snapshot { view in
            var fold = RowFold()
            try eachSorted(view) {
                try get(view, $0, as: 0, into: &fold)
                return true
            }
            return .folded(fold)
        }
    }

    func readEveryProperty(_ list: List) throws -> RowFold {
        switch list {
        case .folded(let fold): return fold
        case .ids(let ids):
            return try database.snapshot { view in
                var fold = RowFold()
                for id in ids { try get(view, id, as: 0, into: &fold) }
                return fold
            }
        }
    }

    func eachSorted(
        _ view: RocksDBView,
        from start: [UInt8] = [Range.timestamps.rawValue],
        _ body: (Int64) throws -> Bool
    ) throws {
        try view.scan(from: start) { key, _ in
            guard key[0] == Range.timestamps.rawValue else { return false }
            return try body(KeyBytes.trailingID(key))
        }
    }
}
