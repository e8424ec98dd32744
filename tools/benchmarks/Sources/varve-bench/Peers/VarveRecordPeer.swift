// Varve's records layer: rows of entities and their indexes, without objects.

import BenchmarkHarness
import VarveTesting

final class VarveRecordPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    private let store: RecordStore
    private let entity: EntityID
    private let columns: Columns
    private let sorted: RecordQuery
    private var ids: [ObjectID] = []

    /// The columns' numbers, asked for once.
    private struct Columns {
        let timestamp, title, note, count, flag, pictureID: ColumnID

        init(_ entity: RecordEntity) throws {
            func column(_ name: String) throws -> ColumnID {
                guard let attribute = entity.attribute(named: name) else {
                    throw BenchmarkError("Varve: no attribute \(name)")
                }
                return attribute.column
            }
            timestamp = try column("timestamp")
            title = try column("title")
            note = try column("note")
            count = try column("count")
            flag = try column("flag")
            pictureID = try column("pictureID")
        }
    }

    init(directory: String, options: PeerOptions) throws {
        let description = EntityDescription(
            name: "Item",
            attributes: [
                AttributeDescription(name: "timestamp", type: .double),
                AttributeDescription(name: "title", type: .text),
                AttributeDescription(name: "note", type: .text),
                AttributeDescription(name: "count", type: .int64),
                AttributeDescription(name: "flag", type: .bool),
                AttributeDescription(name: "pictureID", type: .int64),
            ],
            indexes: options.indexed
                ? [IndexDescription("timestamp"), IndexDescription("title")] : []
        )
        var settings = RecordOptions()
        let rowBytes = options.rowCacheBytes ?? settings.unreferencedRowBytes
        settings.unreferencedRowBytes = rowBytes
        settings.engine.nodeCacheBytes = options.cacheBytes - min(rowBytes, options.cacheBytes / 2)
        store = try RecordStore.open(
            .file(directory: directory, name: "items"),
            schema: SchemaDescription(version: 1, entities: [description]),
            options: settings
        )
        guard let item = try store.schema.entity(named: "Item") else {
            throw BenchmarkError("Varve: no entity Item")
        }
        entity = item.id
        columns = try Columns(item)
        sorted = RecordQuery(entity: item.id, sort: [SortTerm("timestamp")])
    }

    func insert(_ items: [Item]) throws {
        let first = store.allocateObjectIDs(items.count).rawValue
        _ = try store.write { transaction in
            for (index, item) in items.enumerated() {
                try transaction.insert(entity, ObjectID(first + UInt64(index)), values(item))
            }
        }
    }

    private func values(_ item: Item) -> [ColumnValue] {
        [
            ColumnValue(columns.timestamp, .double(item.timestamp)),
            ColumnValue(columns.title, .text(item.title)),
            ColumnValue(columns.note, .text(item.note)),
            ColumnValue(columns.count, .int(Int64(item.count))),
            ColumnValue(columns.flag, .bool(item.flag)),
            ColumnValue(columns.pictureID, .int(item.pictureID)),
        ]
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        let snapshot = try store.snapshot()
        let ids = try snapshot.fetchIDs(RecordQuery(entity: entity))
        for (index, id) in ids.enumerated() {
            guard let row = try snapshot.row(entity, id) else { continue }
            try body(
                Item(
                    id: Int64(index + 1),
                    timestamp: row.double(columns.timestamp) ?? 0,
                    title: row.text(columns.title) ?? "",
                    note: row.text(columns.note) ?? "",
                    count: Int(row.int(columns.count) ?? 0),
                    flag: row.bool(columns.flag) ?? false,
                    pictureID: row.int(columns.pictureID) ?? 0
                )
            )
        }
    }

    func close() throws { try store.close() }

    // Workload b
    func commit(_ item: Item) throws { try insert([item]) }

    // Workload c
    func prepareToRead(rows: Int) throws {
        ids = try store.snapshot().fetchIDs(RecordQuery(entity: entity))
        guard ids.count == rows else { throw BenchmarkError("\(ids.count) of \(rows) IDs") }
    }

    func read(ids numbers: [Int64]) throws -> RowFold {
        let snapshot = try store.snapshot()
        var fold = RowFold()
        for number in numbers {
            guard let row = try snapshot.row(entity, ids[Int(number) - 1]) else { continue }
            try add(row, as: number, to: &fold)
        }
        return fold
    }

    func readIsolated(ids numbers: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for number in numbers {
            guard let row = try store.snapshot().row(entity, ids[Int(number) - 1]) else { continue }
            try add(row, as: number, to: &fold)
        }
        return fold
    }

    // Workload e
    enum List {
        case ids([ObjectID])
        case rows([CachedRow?])
    }

    func fetchFaults() throws -> List { .ids(try store.snapshot().fetchIDs(sorted)) }

    func fetchFilled() throws -> List {
        let snapshot = try store.snapshot()
        return .rows(try snapshot.rows(entity, snapshot.fetchIDs(sorted)))
    }

    func readEveryProperty(_ list: List) throws -> RowFold {
        var fold = RowFold()
        switch list {
        case .ids(let ids):
            for row in try store.snapshot().rows(entity, ids) {
                if let row { try add(row, as: 0, to: &fold) }
            }
        case .rows(let rows):
            for row in rows {
                if let row { try add(row, as: 0, to: &fold) }
            }
        }
        return fold
    }

    /// Texts are read in place, as the C libraries' are.
    @inline(__always)
    private func add(_ row: CachedRow, as id: Int64, to fold: inout RowFold) throws {
        let view = row.view
        fold.add(
            id: id,
            timestamp: try view.double(view.slot(columns.timestamp)),
            title: digest(view, columns.title),
            note: digest(view, columns.note),
            count: Int(try view.int(view.slot(columns.count))),
            flag: try view.bool(view.slot(columns.flag)),
            pictureID: try view.int(view.slot(columns.pictureID))
        )
    }

    @inline(__always)
    private func digest(_ view: RowView, _ column: ColumnID) -> UInt64 {
        let range = view.bodyRange(view.slot(column))
        return RowFold.digest(
            count: range.count,
            first: view.bytes[range.lowerBound],
            last: view.bytes[range.upperBound - 1]
        )
    }
}
