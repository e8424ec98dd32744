// GRDB in the workloads about many rows: late indexes, scans, changes, opening, a reader beside a
// writer, questions.

import BenchmarkHarness
import GRDB

// Workload a
extension GRDBPeer: LateIndexPeer {
    func insertThenIndex(_ items: [Item]) throws {
        try pool.write { database in
            try insert(items, database)
            try Self.createIndexes(database)
        }
    }
}

// Workload d
extension GRDBPeer: OrderedScanPeer {
    private static let sortedAll = "SELECT * FROM item ORDER BY timestamp"
    private static let sortedPage = "SELECT * FROM item ORDER BY timestamp LIMIT ? OFFSET ?"

    /// With a cursor, as the documentation advises for more rows than one wants in memory.
    func scanSorted() throws -> RowFold {
        try pool.read { database in
            var fold = RowFold()
            switch tuning {
            case .usual:
                let request = ItemRecord.order(ItemRecord.Columns.timestamp)
                let records = try request.fetchCursor(database)
                while let record = try records.next() { record.fold(as: 0, into: &fold) }
            case .best:
                let statement = try database.cachedStatement(sql: Self.sortedAll)
                let records = try ItemRecord.fetchCursor(statement)
                while let record = try records.next() { record.fold(as: 0, into: &fold) }
            }
            return fold
        }
    }

    func page(offset: Int, limit: Int) throws -> RowFold {
        try pool.read { database in
            let records: [ItemRecord]
            switch tuning {
            case .usual:
                let request = ItemRecord.order(ItemRecord.Columns.timestamp)
                records = try request.limit(limit, offset: offset).fetchAll(database)
            case .best:
                let statement = try database.cachedStatement(sql: Self.sortedPage)
                records = try ItemRecord.fetchAll(statement, arguments: [limit, offset])
            }
            var fold = RowFold()
            for record in records { record.fold(as: 0, into: &fold) }
            return fold
        }
    }
}

extension GRDBPeer {
    private static let sortedFrom =
        "SELECT * FROM item WHERE timestamp >= ? ORDER BY timestamp LIMIT ?"

    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        try pool.read { database in
            let records: [ItemRecord]
            switch tuning {
            case .usual:
                let column = ItemRecord.Columns.timestamp
                let request = ItemRecord.filter(column >= timestamp).order(column)
                records = try request.limit(limit).fetchAll(database)
            case .best:
                let statement = try database.cachedStatement(sql: Self.sortedFrom)
                records = try ItemRecord.fetchAll(statement, arguments: [timestamp, limit])
            }
            var fold = RowFold()
            for record in records { record.fold(as: 0, into: &fold) }
            return fold
        }
    }
}

// Workloads f and j
extension GRDBPeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for change in changes {
                    var record = try ItemRecord.find(database, key: change.id)
                    try record.updateChanges(database) { $0.count = change.value }
                }
            case .best:
                let sql = "UPDATE item SET count = ? WHERE id = ?"
                let statement = try database.cachedStatement(sql: sql)
                for change in changes {
                    try statement.execute(arguments: [change.value, change.id])
                }
            }
        }
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for change in changes {
                    var record = try ItemRecord.find(database, key: change.id)
                    try record.updateChanges(database) { $0.timestamp = change.value }
                }
            case .best:
                let sql = "UPDATE item SET timestamp = ? WHERE id = ?"
                let statement = try database.cachedStatement(sql: sql)
                for change in changes {
                    try statement.execute(arguments: [change.value, change.id])
                }
            }
        }
    }

    func delete(_ ids: [Int64]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for id in ids { _ = try ItemRecord.deleteOne(database, key: id) }
            case .best:
                let statement = try database.cachedStatement(sql: "DELETE FROM item WHERE id = ?")
                for id in ids { try statement.execute(arguments: [id]) }
            }
        }
    }

    func compact() throws {
        try pool.vacuum()
        _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    }
}

// Workload h
extension GRDBPeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String { String(id) }

    func read(savedName: String) throws -> RowFold {
        try readIsolated(ids: [Int64(savedName) ?? 0])
    }
}

// Workload i
extension GRDBPeer: MixedPeer {
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        { [self] in try readIsolated(ids: $0) }
    }
}

// Workload k
extension GRDBPeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        try pool.read { database in
            switch tuning {
            case .usual:
                let column = ItemRecord.Columns.timestamp
                return try ItemRecord.filter(timestamps.contains(column)).fetchCount(database)
            case .best:
                let sql = "SELECT count(*) FROM item WHERE timestamp BETWEEN ? AND ?"
                let statement = try database.cachedStatement(sql: sql)
                let ends: StatementArguments = [timestamps.lowerBound, timestamps.upperBound]
                return try Int.fetchOne(statement, arguments: ends) ?? 0
            }
        }
    }

    func rows(count: Int) throws -> RowFold {
        try pool.read { database in
            let records: [ItemRecord]
            switch tuning {
            case .usual:
                let request = ItemRecord.filter(ItemRecord.Columns.count == count)
                records = try request.order(ItemRecord.Columns.id).fetchAll(database)
            case .best:
                let sql = "SELECT * FROM item WHERE count = ? ORDER BY id"
                let statement = try database.cachedStatement(sql: sql)
                records = try ItemRecord.fetchAll(statement, arguments: [count])
            }
            var fold = RowFold()
            for record in records { record.fold(as: 0, into: &fold) }
            return fold
        }
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        try pool.read { database in
            let column = ItemRecord.Columns.timestamp
            let least = try Double.fetchOne(database, ItemRecord.select(min(column)))
            let greatest = try Double.fetchOne(database, ItemRecord.select(max(column)))
            guard let least, let greatest else { throw BenchmarkError("GRDB: no rows") }
            return least...greatest
        }
    }

    func distinctCounts() throws -> Int {
        try pool.read { database in
            let request = ItemRecord.select(count(distinct: ItemRecord.Columns.count))
            return try Int.fetchOne(database, request) ?? 0
        }
    }
}
