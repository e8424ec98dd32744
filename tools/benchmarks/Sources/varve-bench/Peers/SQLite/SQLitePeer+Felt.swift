// SQLite in the workloads about what users feel. An app that uses it through C makes structs of its
// rows by hand: the benchmark's own `Item`.

import BenchmarkHarness
import CSQLite

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
