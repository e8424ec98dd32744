// GRDB in the workloads about what users feel: the first screen, scrolling, memory, saves beside a
// compaction.

import BenchmarkHarness
import Foundation
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

// Workload q. There is no list that reads on demand. All IDs, and a record by its ID when it is
// shown, are faster than pages by offset.
extension GRDBPeer: ScrollingPeer {
    func openScrollList() throws -> [Int64] {
        let request = ItemRecord.order(ItemRecord.Columns.timestamp).select(
            ItemRecord.Columns.id,
            as: Int64.self
        )
        return try pool.read { try request.fetchAll($0) }
    }

    func touch(_ position: Int, in list: [Int64], _ fold: inout RowFold) throws {
        let record = try pool.read { database in
            switch tuning {
            case .usual: return try ItemRecord.fetchOne(database, key: list[position])
            case .best:
                let sql = "SELECT * FROM item WHERE id = ?"
                let statement = try database.cachedStatement(sql: sql)
                return try ItemRecord.fetchOne(statement, arguments: [list[position]])
            }
        }
        guard let record else { return }
        fold.touch(
            timestamp: record.timestamp,
            title: record.title,
            note: record.note,
            count: record.count,
            flag: record.flag,
            pictureID: record.pictureID
        )
    }
}

// Workload t
extension GRDBPeer: BusySavePeer {
    /// A compact copy, and a checkpoint of the log that grew meanwhile, as `SQLitePeer` has them.
    func compactBesideSaves(scratch: String) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(60)
        let queue = try DatabaseQueue(path: pool.path, configuration: configuration)
        let copy = scratch + "/copy.sqlite"
        try queue.vacuum(into: copy)
        try queue.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA wal_checkpoint(PASSIVE)")
        }
        try queue.close()
        try FileManager.default.removeItem(atPath: copy)
    }
}
