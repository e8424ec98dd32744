// The store of the long run and the model beside it: inserts, updates and deletes that keep the
// number of rows where it is.

import BenchmarkHarness
import VarveTesting

/// A store of items with a model that knows every row.
final class ChurnStore {
    private let store: RecordStore
    private let record: RecordEntity
    private let columns: VarveRecordPeer.Columns
    private let seed: UInt64
    private let rows: Int
    private var random: BenchmarkHarness.SeededRandom
    private var live: [(object: ObjectID, item: Item)] = []
    private var nextItem: Int64 = 1
    /// A reader that stays for some saves, as apps have them.
    private var reader: (snapshot: RecordSnapshot, until: Int)?
    private var saves = 0

    init(_ directory: String, rows: Int, seed: UInt64) throws {
        self.seed = seed
        self.rows = rows
        random = BenchmarkHarness.SeededRandom(seed: seed)
        store = try VarveRecordPeer.open(directory, "churn", 1, true, RecordOptions())
        guard let item = try store.schema.entity(named: "Item") else {
            throw BenchmarkError("Varve: no entity Item")
        }
        record = item
        columns = try VarveRecordPeer.Columns(item)
        try write { transaction in
            for _ in 0..<rows { try insert(transaction) }
        }
    }

    private var entity: EntityID { record.id }

    var statistics: EngineStatistics { store.statistics.engine }

    func close() throws {
        reader = nil
        try store.close()
    }

    /// One save: mostly one change, now and then a hundred.
    func save() throws {
        saves += 1
        if let reader, reader.until <= saves { self.reader = nil }
        if reader == nil, random.below(500) == 0 {
            reader = (try store.snapshot(), saves + 200)
        }
        let changes = random.below(100) == 0 ? 100 : 1
        try write { transaction in
            for _ in 0..<changes { try change(transaction) }
        }
    }

    private func write(_ body: (RecordTransaction) throws -> Void) throws {
        _ = try store.write { try body($0) }
    }

    private func change(_ transaction: RecordTransaction) throws {
        // As many inserts as deletes on average, pulled back to the number of rows.
        let share = random.below(100)
        if share < 20, live.count < rows + rows / 20 || share < 10 {
            return try insert(transaction)
        }
        let index = Int(random.below(UInt64(live.count)))
        if share < 40, live.count > rows - rows / 20 {
            try transaction.delete(entity, live[index].object)
            live.swapAt(index, live.count - 1)
            live.removeLast()
        } else if share < 70 {
            live[index].item.count = Int(random.below(1000))
            let value = ColumnValue(columns.count, .int(Int64(live[index].item.count)))
            try transaction.update(entity, live[index].object, [value])
        } else {
            live[index].item.timestamp = Double(random.below(315_360_000_000)) / 1000
            let value = ColumnValue(columns.timestamp, .double(live[index].item.timestamp))
            try transaction.update(entity, live[index].object, [value])
        }
    }

    private func insert(_ transaction: RecordTransaction) throws {
        let item = Item(id: nextItem, seed: seed)
        nextItem += 1
        let object = store.allocateObjectIDs(1)
        var row = RecordRow(record)
        columns.fill(&row, item)
        try transaction.insert(&row, object)
        live.append((object, item))
    }

    /// How many rows of the model the store does not have, or has otherwise; rows that it has too
    /// many count as well.
    func wrongRows() throws -> Int {
        let snapshot = try store.snapshot()
        var wrong = abs(try snapshot.count(RecordQuery(entity: entity)) - live.count)
        for (object, item) in live {
            guard let row = try snapshot.row(entity, object),
                try columns.item(row) == item
            else {
                wrong += 1
                continue
            }
        }
        return wrong
    }

    /// Bytes of a new store with the same rows.
    func liveBytes(in directory: String) throws -> UInt64 {
        let peer = try VarveRecordPeer(directory: directory, options: PeerOptions())
        try peer.insert(live.map(\.item))
        try peer.close()
        return try bytesOnDisk(directory)
    }
}
