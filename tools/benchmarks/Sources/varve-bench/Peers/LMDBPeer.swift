// LMDB: rows as packed bytes under integer keys, indexes as trees of their own.
//
// One setting, its best fair one: synchronous commits, sorted append of rows, long read
// transactions where the workload allows them, no read-ahead.

import BenchmarkHarness

final class LMDBPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    private let library: LMDBLibrary
    private let environment: LMDBLibrary.Handle
    private var rows: UInt32 = 0
    private var byTimestamp: UInt32 = 0
    private var byTitle: UInt32 = 0
    private let indexed: Bool

    init(directory: String, options: PeerOptions) throws {
        library = try LMDBLibrary.found.get()
        indexed = options.indexed
        var handle: LMDBLibrary.Handle?
        try Self.check(library.environmentCreate(&handle), "create")
        guard let handle else { throw BenchmarkError("LMDB: no environment") }
        environment = handle
        try Self.check(library.setMapSize(handle, 16 << 30), "map size")
        try Self.check(library.setMaxDatabases(handle, 4), "databases")
        let flags = LMDBLibrary.noSubdirectory | LMDBLibrary.noReadAhead
        try Self.check(
            library.environmentOpen(handle, directory + "/items.lmdb", flags, 0o600),
            "open"
        )
        try write { transaction in
            rows = try database(transaction, "rows", LMDBLibrary.integerKey)
            guard indexed else { return }
            byTimestamp = try database(transaction, "timestamp", 0)
            byTitle = try database(transaction, "title", 0)
        }
    }

    func insert(_ items: [Item]) throws {
        try write { transaction in
            var row: [UInt8] = []
            var key: [UInt8] = []
            for item in items {
                row.removeAll(keepingCapacity: true)
                PackedRow.append(item, to: &row)
                var id = UInt64(bitPattern: item.id)
                try withUnsafeMutableBytes(of: &id) { id in
                    try put(transaction, rows, id, &row, LMDBLibrary.append)
                }
                guard indexed else { continue }
                try putIndexEntries(transaction, item, &key)
            }
        }
    }

    private func putIndexEntries(
        _ transaction: LMDBLibrary.Handle,
        _ item: Item,
        _ key: inout [UInt8]
    ) throws {
        var nothing: [UInt8] = []
        key.removeAll(keepingCapacity: true)
        Self.append(Self.ordered(item.timestamp), to: &key)
        Self.append(UInt64(bitPattern: item.id), to: &key)
        try key.withUnsafeMutableBytes { try put(transaction, byTimestamp, $0, &nothing, 0) }
        key.removeAll(keepingCapacity: true)
        key.append(contentsOf: item.title.utf8)
        key.append(0)
        Self.append(UInt64(bitPattern: item.id), to: &key)
        try key.withUnsafeMutableBytes { try put(transaction, byTitle, $0, &nothing, 0) }
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        try read { transaction in
            try scan(transaction, rows) { key, value in
                let id = key.loadUnaligned(as: Int64.self)
                try body(PackedRow(bytes: value).item(id: id))
            }
        }
    }

    func close() throws { library.environmentClose(environment) }

    // Workload b
    func commit(_ item: Item) throws { try insert([item]) }

    // Workload c
    func prepareToRead(rows: Int) throws {}

    func read(ids: [Int64]) throws -> RowFold {
        try read { transaction in
            var fold = RowFold()
            for id in ids { try get(transaction, id, into: &fold) }
            return fold
        }
    }

    /// The reader's slot is kept between the transactions, as LMDB's documentation advises.
    func readIsolated(ids: [Int64]) throws -> RowFold {
        try read { transaction in
            var fold = RowFold()
            for id in ids {
                library.reset(transaction)
                try Self.check(library.renew(transaction), "renew")
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
        try read { transaction in
            try scan(transaction, byTimestamp) { key, _ in ids.append(Self.trailingID(key)) }
        }
        return .ids(ids)
    }

    func fetchFilled() throws -> List {
        var fold = RowFold()
        try read { transaction in
            try scan(transaction, byTimestamp) { key, _ in
                try get(transaction, Self.trailingID(key), as: 0, into: &fold)
            }
        }
        return .folded(fold)
    }

    func readEveryProperty(_ list: List) throws -> RowFold {
        switch list {
        case .folded(let fold): return fold
        case .ids(let ids):
            return try read { transaction in
                var fold = RowFold()
                for id in ids { try get(transaction, id, as: 0, into: &fold) }
                return fold
            }
        }
    }

    // Steps
    @inline(__always)
    private func get(
        _ transaction: LMDBLibrary.Handle,
        _ id: Int64,
        as name: Int64? = nil,
        into fold: inout RowFold
    ) throws {
        var number = id
        var value = LMDBValue()
        let result = withUnsafeMutablePointer(to: &number) { pointer in
            var key = LMDBValue(size: 8, data: UnsafeMutableRawPointer(pointer))
            return library.get(transaction, rows, &key, &value)
        }
        if result == LMDBLibrary.notFound { return }
        try Self.check(result, "get")
        PackedRow(bytes: value.bytes).fold(id: name ?? id, into: &fold)
    }

    private func put(
        _ transaction: LMDBLibrary.Handle,
        _ database: UInt32,
        _ key: UnsafeMutableRawBufferPointer,
        _ value: inout [UInt8],
        _ flags: UInt32
    ) throws {
        var key = LMDBValue(size: key.count, data: key.baseAddress)
        let result = value.withUnsafeMutableBytes { bytes in
            var value = LMDBValue(size: bytes.count, data: bytes.baseAddress)
            return library.put(transaction, database, &key, &value, flags)
        }
        try Self.check(result, "put")
    }

    private func scan(
        _ transaction: LMDBLibrary.Handle,
        _ database: UInt32,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        var handle: LMDBLibrary.Handle?
        try Self.check(library.cursorOpen(transaction, database, &handle), "cursor")
        guard let handle else { throw BenchmarkError("LMDB: no cursor") }
        defer { library.cursorClose(handle) }
        var key = LMDBValue()
        var value = LMDBValue()
        while true {
            let result = library.cursorGet(handle, &key, &value, LMDBLibrary.cursorNext)
            if result == LMDBLibrary.notFound { return }
            try Self.check(result, "next")
            try body(key.bytes, value.bytes)
        }
    }

    private func read<R>(_ body: (LMDBLibrary.Handle) throws -> R) throws -> R {
        let transaction = try begin(LMDBLibrary.readOnly)
        defer { library.abort(transaction) }
        return try body(transaction)
    }

    private func write(_ body: (LMDBLibrary.Handle) throws -> Void) throws {
        let transaction = try begin(0)
        do {
            try body(transaction)
        } catch {
            library.abort(transaction)
            throw error
        }
        try Self.check(library.commit(transaction), "commit")
    }

    private func begin(_ flags: UInt32) throws -> LMDBLibrary.Handle {
        var handle: LMDBLibrary.Handle?
        try Self.check(library.begin(environment, nil, flags, &handle), "begin")
        guard let handle else { throw BenchmarkError("LMDB: no transaction") }
        return handle
    }

    private func database(
        _ transaction: LMDBLibrary.Handle,
        _ name: String,
        _ flags: UInt32
    ) throws -> UInt32 {
        var number: UInt32 = 0
        try Self.check(
            library.openDatabase(transaction, name, flags | LMDBLibrary.create, &number),
            name
        )
        return number
    }

    private static func check(_ result: Int32, _ place: String) throws {
        guard result == 0 else { throw BenchmarkError("LMDB: \(place): error \(result)") }
    }

    /// Bits whose unsigned order is the order of the numbers.
    private static func ordered(_ value: Double) -> UInt64 {
        let bits = value.bitPattern
        return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    }

    private static func append(_ word: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func trailingID(_ key: UnsafeRawBufferPointer) -> Int64 {
        Int64(bigEndian: key.loadUnaligned(fromByteOffset: key.count - 8, as: Int64.self))
    }
}
