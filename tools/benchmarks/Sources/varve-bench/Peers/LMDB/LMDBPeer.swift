// LMDB: rows as packed bytes under integer keys, indexes as trees of their own.
//
// One setting, its best fair one: synchronous commits, sorted append of rows, long read
// transactions where the workload allows them, no read-ahead.

import BenchmarkHarness

final class LMDBPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    let store: LMDBStore
    private(set) var rows: UInt32 = 0
    private(set) var byTimestamp: UInt32 = 0
    private(set) var byTitle: UInt32 = 0
    private let indexed: Bool
    let directory: String

    init(directory: String, options: PeerOptions) throws {
        indexed = options.indexed
        self.directory = directory
        store = try LMDBStore(path: directory + "/items.lmdb")
        try store.write { transaction in
            rows = try transaction.database("rows", LMDBLibrary.integerKey)
            if indexed { try openIndexes(transaction) }
        }
    }

    func openIndexes(_ transaction: LMDBTransaction) throws {
        byTimestamp = try transaction.database("timestamp")
        byTitle = try transaction.database("title")
    }

    func insert(_ items: [Item]) throws { try insert(items, LMDBLibrary.append) }

    /// - Parameter flags: `append` when no higher ID is there, which fills pages well.
    private func insert(_ items: [Item], _ flags: UInt32) throws {
        try store.write { transaction in
            var row: [UInt8] = []
            var key: [UInt8] = []
            for item in items {
                row.removeAll(keepingCapacity: true)
                PackedRow.append(item, to: &row)
                try putRow(transaction, item.id, row, flags)
                guard indexed else { continue }
                try putTimestamp(transaction, item.timestamp, item.id, &key)
                try putTitle(transaction, item.title, item.id, &key)
            }
        }
    }

    func putRow(
        _ transaction: LMDBTransaction,
        _ id: Int64,
        _ row: [UInt8],
        _ flags: UInt32
    ) throws {
        var id = UInt64(bitPattern: id)
        try withUnsafeBytes(of: &id) { id in
            try row.withUnsafeBytes { try transaction.put(rows, id, $0, flags) }
        }
    }

    func putTimestamp(
        _ transaction: LMDBTransaction,
        _ timestamp: Double,
        _ id: Int64,
        _ key: inout [UInt8],
        _ flags: UInt32 = 0
    ) throws {
        key.removeAll(keepingCapacity: true)
        KeyBytes.append(timestamp: timestamp, id: id, to: &key)
        try key.withUnsafeBytes {
            try transaction.put(byTimestamp, $0, LMDBTransaction.nothing, flags)
        }
    }

    private func putTitle(
        _ transaction: LMDBTransaction,
        _ title: String,
        _ id: Int64,
        _ key: inout [UInt8]
    ) throws {
        key.removeAll(keepingCapacity: true)
        KeyBytes.append(title: title, id: id, to: &key)
        try key.withUnsafeBytes { try transaction.put(byTitle, $0, LMDBTransaction.nothing, 0) }
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        try store.read { transaction in
            try transaction.scan(rows) { key, value in
                let id = key.loadUnaligned(as: Int64.self)
                try body(PackedRow(bytes: value).item(id: id))
                return true
            }
        }
    }

    func close() throws { store.close() }

    // Workload b
    func commit(_ item: Item) throws { try insert([item]) }

    /// LMDB has one writer at a time by itself. Savers come in any order: no append.
    func makeSaver() throws -> (Item) throws -> Void { { [self] in try insert([$0], 0) } }

    // Workload c
    func prepareToRead(rows: Int) throws {}

    func read(ids: [Int64]) throws -> RowFold {
        try store.read { transaction in
            var fold = RowFold()
            for id in ids { try get(transaction, id, into: &fold) }
            return fold
        }
    }

    /// The reader's slot is kept between the transactions, as LMDB's documentation advises.
    func readIsolated(ids: [Int64]) throws -> RowFold {
        try store.read { transaction in
            var fold = RowFold()
            for id in ids {
                try transaction.renew()
                try get(transaction, id, into: &fold)
            }
            return fold
        }
    }

    // Workload e, as SQLite's: IDs, or every row decoded.
    enum List {
        case ids([Int64])
        case folded(RowFold)
    }

    func fetchFaults() throws -> List {
        var ids: [Int64] = []
        try store.read { transaction in
            try transaction.scan(byTimestamp) { key, _ in
                ids.append(KeyBytes.trailingID(key))
                return true
            }
        }
        return .ids(ids)
    }

    func fetchFilled() throws -> List {
        var fold = RowFold()
        try store.read { transaction in
            try transaction.scan(byTimestamp) { key, _ in
                try get(transaction, KeyBytes.trailingID(key), as: 0, into: &fold)
                return true
            }
        }
        return .folded(fold)
    }

    func readEveryProperty(_ list: List) throws -> RowFold {
        switch list {
        case .folded(let fold): return fold
        case .ids(let ids):
            return try store.read { transaction in
                var fold = RowFold()
                for id in ids { try get(transaction, id, as: 0, into: &fold) }
                return fold
            }
        }
    }

    @inline(__always)
    func get(
        _ transaction: LMDBTransaction,
        _ id: Int64,
        as name: Int64? = nil,
        into fold: inout RowFold
    ) throws {
        guard let row = try row(transaction, id) else { return }
        PackedRow(bytes: row).fold(id: name ?? id, into: &fold)
    }

    /// The packed row in place, until the transaction ends or writes.
    @inline(__always)
    func row(_ transaction: LMDBTransaction, _ id: Int64) throws -> UnsafeRawBufferPointer? {
        var number = UInt64(bitPattern: id)
        return try withUnsafeBytes(of: &number) { try transaction.get(rows, $0) }
    }
}
