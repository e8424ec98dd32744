// GRDB: what a Swift developer would pick instead.
//
// A pool in write-ahead mode with synchronous=FULL: GRDB's own default is not durable.
// Usual: records as the documentation writes them. Best: cached statements, rows decoded by
// position, one read block around many reads.

import BenchmarkHarness
import GRDB

final class GRDBPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    let pool: DatabasePool
    let tuning: Tuning

    private static let insertion = "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?)"
    private static let byID = "SELECT * FROM item WHERE id = ?"
    private static let sorted = "SELECT * FROM item ORDER BY timestamp"

    init(directory: String, options: PeerOptions) throws {
        tuning = options.tuning
        pool = try DatabasePool.durable(path: directory + "/items.sqlite", options)
        try pool.write { database in
            try database.create(table: "item", options: .ifNotExists) { table in
                table.primaryKey("id", .integer)
                table.column("timestamp", .double).notNull()
                table.column("title", .text).notNull()
                table.column("note", .text).notNull()
                table.column("count", .integer).notNull()
                table.column("flag", .boolean).notNull()
                table.column("pictureID", .integer).notNull()
            }
            guard options.indexed else { return }
            try Self.createIndexes(database)
        }
    }

    static func createIndexes(_ database: Database) throws {
        try database.create(
            index: "item_timestamp",
            on: "item",
            columns: ["timestamp"],
            options: .ifNotExists
        )
        try database.create(
            index: "item_title",
            on: "item",
            columns: ["title"],
            options: .ifNotExists
        )
    }

    func insert(_ items: [Item]) throws {
        try pool.write { try insert(items, $0) }
    }

    func insert(_ items: [Item], _ database: Database) throws {
        switch tuning {
        case .usual:
            for item in items { try ItemRecord(item).insert(database) }
        case .best:
            let statement = try database.cachedStatement(sql: Self.insertion)
            for item in items { try statement.execute(arguments: Self.arguments(item)) }
        }
    }

    private static func arguments(_ item: Item) -> StatementArguments {
        [
            item.id, item.timestamp, item.title, item.note, item.count, item.flag, item.pictureID,
        ]
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        try pool.read { database in
            let records = try ItemRecord.order(ItemRecord.Columns.id).fetchCursor(database)
            while let record = try records.next() { try body(record.item) }
        }
    }

    /// Leaves no log behind, as SQLite itself does when the last connection goes.
    func close() throws {
        _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        try pool.close()
    }

    // Workload b
    func commit(_ item: Item) throws { try insert([item]) }

    /// The pool makes writers queue.
    func makeSaver() throws -> (Item) throws -> Void { { [self] in try insert([$0]) } }

    // Workload c
    func prepareToRead(rows: Int) throws {}

    func read(ids: [Int64]) throws -> RowFold {
        try pool.read { database in
            var fold = RowFold()
            switch tuning {
            case .usual:
                for id in ids {
                    try ItemRecord.fetchOne(database, key: id)?.fold(into: &fold)
                }
            case .best:
                let statement = try database.cachedStatement(sql: Self.byID)
                for id in ids {
                    try ItemRecord.fetchOne(statement, arguments: [id])?.fold(into: &fold)
                }
            }
            return fold
        }
    }

    func readIsolated(ids: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for id in ids {
            let record = try pool.read { database in
                switch tuning {
                case .usual: return try ItemRecord.fetchOne(database, key: id)
                case .best:
                    let statement = try database.cachedStatement(sql: Self.byID)
                    return try ItemRecord.fetchOne(statement, arguments: [id])
                }
            }
            record?.fold(into: &fold)
        }
        return fold
    }

    // Workload e. GRDB has no faults: a list is its records.
    func fetchFaults() throws -> [ItemRecord] { try fetchFilled() }

    func fetchFilled() throws -> [ItemRecord] {
        try pool.read { database in
            switch tuning {
            case .usual:
                return try ItemRecord.order(ItemRecord.Columns.timestamp).fetchAll(database)
            case .best:
                return try ItemRecord.fetchAll(database.cachedStatement(sql: Self.sorted))
            }
        }
    }

    func readEveryProperty(_ list: [ItemRecord]) throws -> RowFold {
        var fold = RowFold()
        for record in list { record.fold(as: 0, into: &fold) }
        return fold
    }
}

extension DatabasePool {
    /// A pool whose commits are durable, with usual or best settings.
    static func durable(path: String, _ options: PeerOptions) throws -> DatabasePool {
        var configuration = Configuration()
        configuration.prepareDatabase { database in
            let cache = options.cacheBytes / 1024
            try database.execute(sql: "PRAGMA cache_size=-\(cache)")
            if options.tuning == .best {
                try database.execute(sql: "PRAGMA mmap_size=8589934592")
            }
        }
        let pool = try DatabasePool(path: path, configuration: configuration)
        try pool.writeWithoutTransaction { database in
            // After opening: the pool sets NORMAL itself when it turns the log on.
            try database.execute(sql: "PRAGMA synchronous=FULL")
            guard try Int.fetchOne(database, sql: "PRAGMA synchronous") == 2 else {
                throw BenchmarkError("GRDB: commits are not durable")
            }
        }
        return pool
    }
}
