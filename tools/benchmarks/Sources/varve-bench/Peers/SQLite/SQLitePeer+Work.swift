// SQLite in the workloads about many rows: late indexes, scans, changes, opening, a reader beside a
// writer, questions.

import BenchmarkHarness
import CSQLite

// Workload a
extension SQLitePeer: LateIndexPeer {
    func insertThenIndex(_ items: [Item]) throws {
        try connection.execute("BEGIN IMMEDIATE")
        let insertion = try connection.statement("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?)")
        for item in items { try insertion.insert(item) }
        try connection.execute(Self.indexes)
        try connection.execute("COMMIT")
    }
}

// Workload d
extension SQLitePeer: OrderedScanPeer {
    func scanSorted() throws -> RowFold {
        try fold("SELECT \(Self.columns) FROM item ORDER BY timestamp")
    }

    func page(offset: Int, limit: Int) throws -> RowFold {
        try fold("SELECT \(Self.columns) FROM item ORDER BY timestamp LIMIT ? OFFSET ?") { rows in
            sqlite3_bind_int64(rows.handle, 1, Int64(limit))
            sqlite3_bind_int64(rows.handle, 2, Int64(offset))
        }
    }

    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        try fold(
            "SELECT \(Self.columns) FROM item WHERE timestamp >= ? ORDER BY timestamp LIMIT ?"
        ) { rows in
            sqlite3_bind_double(rows.handle, 1, timestamp)
            sqlite3_bind_int64(rows.handle, 2, Int64(limit))
        }
    }

    /// Statements are prepared once, as every app does that repeats them.
    private func fold(_ sql: String, _ bind: (SQLiteStatement) -> Void = { _ in }) throws
        -> RowFold
    {
        let rows = try connection.cachedStatement(sql)
        bind(rows)
        var fold = RowFold()
        while try rows.step() { rows.fold(as: 0, into: &fold) }
        rows.reset()
        return fold
    }
}

// Workloads f and j
extension SQLitePeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try change("UPDATE item SET count = ? WHERE id = ?", changes) { handle, change in
            sqlite3_bind_int64(handle, 1, Int64(change.value))
            sqlite3_bind_int64(handle, 2, change.id)
        }
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        try change("UPDATE item SET timestamp = ? WHERE id = ?", changes) { handle, change in
            sqlite3_bind_double(handle, 1, change.value)
            sqlite3_bind_int64(handle, 2, change.id)
        }
    }

    func delete(_ ids: [Int64]) throws {
        try change("DELETE FROM item WHERE id = ?", ids) { handle, id in
            sqlite3_bind_int64(handle, 1, id)
        }
    }

    private func change<Change>(
        _ sql: String,
        _ changes: [Change],
        _ bind: (OpaquePointer, Change) -> Void
    ) throws {
        try connection.execute("BEGIN IMMEDIATE")
        let statement = try connection.cachedStatement(sql)
        for change in changes {
            bind(statement.handle, change)
            try statement.run()
        }
        try connection.execute("COMMIT")
    }

    func compact() throws {
        try connection.execute("VACUUM")
        try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }
}

// Workload h
extension SQLitePeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String { String(id) }

    func read(savedName: String) throws -> RowFold {
        try readIsolated(ids: [Int64(savedName) ?? 0])
    }
}

// Workload i
extension SQLitePeer: MixedPeer {
    /// A connection of its own, as readers beside a writer need.
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        let reader = try SQLitePeer(directory: directory, options: options)
        return { try reader.readIsolated(ids: $0) }
    }
}

// Workload k
extension SQLitePeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        let rows = try connection.cachedStatement(
            "SELECT count(*) FROM item WHERE timestamp BETWEEN ? AND ?"
        )
        sqlite3_bind_double(rows.handle, 1, timestamps.lowerBound)
        sqlite3_bind_double(rows.handle, 2, timestamps.upperBound)
        return try one(rows) { Int(sqlite3_column_int64($0, 0)) }
    }

    func rows(count: Int) throws -> RowFold {
        try fold("SELECT \(Self.columns) FROM item WHERE count = ? ORDER BY id") { rows in
            sqlite3_bind_int64(rows.handle, 1, Int64(count))
        }
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        // Two questions: SQLite answers either from an end of the index, but not both in one.
        let least = try connection.cachedStatement("SELECT min(timestamp) FROM item")
        let greatest = try connection.cachedStatement("SELECT max(timestamp) FROM item")
        let lower = try one(least) { sqlite3_column_double($0, 0) }
        return lower...(try one(greatest) { sqlite3_column_double($0, 0) })
    }

    func distinctCounts() throws -> Int {
        let rows = try connection.cachedStatement("SELECT count(DISTINCT count) FROM item")
        return try one(rows) { Int(sqlite3_column_int64($0, 0)) }
    }

    private func one<Value>(
        _ rows: SQLiteStatement,
        _ value: (OpaquePointer) -> Value
    ) throws -> Value {
        guard try rows.step() else { throw BenchmarkError("SQLite: no row") }
        defer { rows.reset() }
        return value(rows.handle)
    }
}
