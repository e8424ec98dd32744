// SQLite in the workloads about what users feel. An app that uses it through C makes structs of its
// rows by hand: the benchmark's own `Item`.

import BenchmarkHarness
import CSQLite
import Foundation

// Workloads p and r
extension SQLitePeer: FilledObjectsPeer {
    func firstObjects(_ limit: Int) throws -> [Item] {
        let rows = try connection.cachedStatement(
            "SELECT \(Self.columns) FROM item ORDER BY timestamp LIMIT ?"
        )
        sqlite3_bind_int64(rows.handle, 1, Int64(limit))
        var items: [Item] = []
        while try rows.step() { items.append(rows.item()) }
        rows.reset()
        return items
    }

    func readEveryProperty(of objects: [Item]) -> RowFold {
        var fold = RowFold()
        for item in objects {
            fold.add(
                id: 0,
                timestamp: item.timestamp,
                title: item.title,
                note: item.note,
                count: item.count,
                flag: item.flag,
                pictureID: item.pictureID
            )
        }
        return fold
    }
}

// Workload q: all IDs, and a row by its ID when it is shown.
extension SQLitePeer: ScrollingPeer {
    /// IDs, and a connection that the writer does not use.
    struct ScrollList {
        let ids: [Int64]
        let reader: SQLitePeer
    }

    func openScrollList() throws -> ScrollList {
        let reader = try SQLitePeer(directory: directory, options: options)
        let rows = try reader.connection.statement("SELECT id FROM item ORDER BY timestamp")
        var ids: [Int64] = []
        while try rows.step() { ids.append(sqlite3_column_int64(rows.handle, 0)) }
        return ScrollList(ids: ids, reader: reader)
    }

    func touch(_ position: Int, in list: ScrollList, _ fold: inout RowFold) throws {
        let rows = try list.reader.connection.cachedStatement(
            "SELECT \(Self.columns) FROM item WHERE id = ?"
        )
        sqlite3_bind_int64(rows.handle, 1, list.ids[position])
        defer { rows.reset() }
        guard try rows.step() else { return }
        let item = rows.item()
        fold.touch(
            timestamp: item.timestamp,
            title: item.title,
            note: item.note,
            count: item.count,
            flag: item.flag,
            pictureID: item.pictureID
        )
    }
}

// Workload t
extension SQLitePeer: BusySavePeer {
    /// VACUUM holds the lock of writers from beginning to end. What runs beside them is the same
    /// work into another file, which is a long read transaction, and a checkpoint of the log that
    /// could not be taken up again meanwhile.
    func compactBesideSaves(scratch: String) throws {
        let other = try SQLiteConnection(path: directory + "/items.sqlite")
        let copy = scratch + "/copy.sqlite"
        try other.execute("PRAGMA busy_timeout=60000")
        try other.execute("VACUUM INTO '\(copy)'")
        try other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        try other.close()
        try FileManager.default.removeItem(atPath: copy)
    }
}
