// GRDB in the workloads about what users feel: the first screen, scrolling, memory, saves beside a
// compaction.

import BenchmarkHarness
import GRDB

// Workloads p and r
extension GRDBPeer: FilledObjectsPeer {
    private static let sortedFirst = "SELECT * FROM item ORDER BY timestamp LIMIT ?"

    func firstObjects(_ limit: Int) throws -> [ItemRecord] {
        try pool.read { database in
            switch tuning {
            case .usual:
                let request = ItemRecord.order(ItemRecord.Columns.timestamp)
                return try request.limit(limit).fetchAll(database)
            case .best:
                let statement = try database.cachedStatement(sql: Self.sortedFirst)
                return try ItemRecord.fetchAll(statement, arguments: [limit])
            }
        }
    }

    func readEveryProperty(of objects: [ItemRecord]) -> RowFold {
        var fold = RowFold()
        for record in objects { record.fold(as: 0, into: &fold) }
        return fold
    }
}
