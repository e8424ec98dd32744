// Varve's records layer: rows of entities and their indexes, without objects.

import BenchmarkHarness
import VarveTesting

final class VarveRecordPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    private(set) var store: RecordStore
    private(set) var record: RecordEntity
    private(set) var columns: Columns
    private(set) var sorted: RecordQuery
    private(set) var ids: [ObjectID] = []
    private let directory: String
    private let usesRowCache: Bool
    private let settings: RecordOptions

    var entity: EntityID { record.id }

    /// The columns' numbers, asked for once.
    struct Columns {
        /// What a column is, by its number.
        enum Meaning { case timestamp, title, note, count, flag, pictureID, other }

        let timestamp, title, note, count, flag, pictureID: ColumnID
        let meanings: [Meaning]

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
            var meanings = [Meaning](repeating: .other, count: entity.columnCount)
            meanings[Int(timestamp.rawValue)] = .timestamp
            meanings[Int(title.rawValue)] = .title
            meanings[Int(note.rawValue)] = .note
            meanings[Int(count.rawValue)] = .count
            meanings[Int(flag.rawValue)] = .flag
            meanings[Int(pictureID.rawValue)] = .pictureID
            self.meanings = meanings
        }

        /// An item's values; its ID is in its title.
        func fill(_ row: inout RecordRow, _ item: borrowing Item) {
            row.begin()
            row.set(timestamp, double: item.timestamp)
            row.set(title, text: item.title)
            row.set(note, text: item.note)
            row.set(count, int: Int64(item.count))
            row.set(flag, bool: item.flag)
            row.set(pictureID, int: item.pictureID)
        }

        /// A row as an item.
        func item(_ row: CachedRow) throws -> Item {
            let title = try row.text(title) ?? ""
            return Item(
                id: try Item.id(ofTitle: title),
                timestamp: try row.double(timestamp) ?? 0,
                title: title,
                note: try row.text(note) ?? "",
                count: Int(try row.int(count) ?? 0),
                flag: try row.bool(flag) ?? false,
                pictureID: try row.int(pictureID) ?? 0
            )
        }
    }

    init(directory: String, options: PeerOptions) throws {
        self.directory = directory
        usesRowCache = options.rowCacheBytes != nil
        settings = RecordOptions(options)
        store = try Self.open(directory, "items", 1, options.indexed, settings)
        (record, columns, sorted) = try Self.resolve(store)
    }

    static func open(
        _ directory: String,
        _ name: String,
        _ version: UInt32,
        _ indexed: Bool,
        _ settings: RecordOptions
    ) throws -> RecordStore {
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
            indexes: indexed ? [IndexDescription("timestamp"), IndexDescription("title")] : []
        )
        return try RecordStore.open(
            .file(directory: directory, name: name),
            schema: SchemaDescription(version: version, entities: [description]),
            options: settings
        )
    }

    private static func resolve(
        _ store: RecordStore
    ) throws -> (RecordEntity, Columns, RecordQuery) {
        guard let item = try store.schema.entity(named: "Item") else {
            throw BenchmarkError("Varve: no entity Item")
        }
        let sorted = RecordQuery(entity: item.id, sort: [SortTerm("timestamp")])
        return (item, try Columns(item), sorted)
    }

    /// Opens the store again with a schema that has the indexes, which builds them.
    func reopenWithIndexes() throws {
        try store.close()
        store = try Self.open(directory, "items", 2, true, settings)
        (record, columns, sorted) = try Self.resolve(store)
    }

    func insert(_ items: [Item]) throws {
        let first = store.allocateObjectIDs(items.count).rawValue
        let columns = columns
        _ = try store.write { transaction in
            var row = RecordRow(record)
            for index in items.indices {
                columns.fill(&row, items[index])
                try transaction.insert(&row, ObjectID(first + UInt64(index)))
            }
        }
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        let snapshot = try store.snapshot()
        let ids = try snapshot.fetchIDs(RecordQuery(entity: entity))
        for id in ids {
            guard let row = try snapshot.row(entity, id) else { continue }
            try body(columns.item(row))
        }
    }

    func close() throws { try store.close() }

    /// What the store does by itself once nobody has saved for some seconds.
    func settle() throws { _ = try store.engine.compactIfWorthwhile() }

    // Workload b
    func commit(_ item: Item) throws { try insert([item]) }

    func makeSaver() throws -> (Item) throws -> Void { { [self] in try insert([$0]) } }

    // Workload c
    func prepareToRead(rows: Int) throws {
        ids = try store.snapshot().fetchIDs(RecordQuery(entity: entity))
        guard ids.count == rows else { throw BenchmarkError("\(ids.count) of \(rows) IDs") }
    }

    /// Rows are read where their pages lie in memory; from the row cache where that is asked for.
    func read(ids numbers: [Int64]) throws -> RowFold {
        let snapshot = try store.snapshot()
        var fold = RowFold()
        for number in numbers {
            let id = ids[Int(number) - 1]
            if usesRowCache {
                guard let row = try snapshot.row(entity, id) else { continue }
                try add(row, as: number, to: &fold)
            } else {
                _ = try snapshot.withRow(record, id) { _, layout, row throws(RecordError) in
                    try add(layout, row, as: number, to: &fold)
                }
            }
        }
        return fold
    }

    func readIsolated(ids numbers: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for number in numbers {
            let id = ids[Int(number) - 1]
            _ = try store.snapshot().withRow(record, id) { _, layout, row throws(RecordError) in
                try add(layout, row, as: number, to: &fold)
            }
        }
        return fold
    }

    // Workload e, as SQLite's: IDs, or every row decoded.
    enum List {
        case ids([ObjectID])
        case folded(RowFold)
    }

    func fetchFaults() throws -> List { .ids(try store.snapshot().fetchIDs(sorted)) }

    func fetchFilled() throws -> List { .folded(try fold(sorted)) }

    func readEveryProperty(_ list: List) throws -> RowFold {
        switch list {
        case .folded(let fold): return fold
        case .ids(let ids):
            let snapshot = try store.snapshot()
            var fold = RowFold()
            for id in ids {
                _ = try snapshot.withRow(record, id) { _, layout, row throws(RecordError) in
                    try add(layout, row, as: 0, to: &fold)
                }
            }
            return fold
        }
    }

    /// The rows of a request, every column decoded. IDs count as 0.
    func fold(_ query: RecordQuery) throws -> RowFold {
        var fold = RowFold()
        try store.snapshot().forEachRow(of: query) { _, _, layout, row throws(RecordError) in
            try add(layout, row, as: 0, to: &fold)
            return true
        }
        return fold
    }

    /// Every column in one walk over the row, texts read in place, as the C libraries' are.
    @inline(__always)
    func add(
        _ layout: RowLayout,
        _ row: Span<UInt8>,
        as id: Int64,
        to fold: inout RowFold
    ) throws(RecordError) {
        var (timestamp, title, note) = (0.0, UInt64(0), UInt64(0))
        var (count, flag, pictureID) = (0, false, Int64(0))
        do throws(FormatError) {
            try layout.forEachSlot(in: row) { column, slot throws(FormatError) in
                switch columns.meanings[column] {
                case .timestamp: timestamp = try slot.double(in: row)
                case .title: title = Self.digest(slot.body, row)
                case .note: note = Self.digest(slot.body, row)
                case .count: count = Int(try slot.int(in: row))
                case .flag: flag = try slot.bool(in: row)
                case .pictureID: pictureID = try slot.int(in: row)
                case .other: break
                }
            }
        } catch {
            throw .format(error)
        }
        fold.add(
            id: id,
            timestamp: timestamp,
            title: title,
            note: note,
            count: count,
            flag: flag,
            pictureID: pictureID
        )
    }

    @inline(__always)
    private static func digest(_ range: Range<Int>, _ row: Span<UInt8>) -> UInt64 {
        RowFold.digest(
            count: range.count,
            first: row[range.lowerBound],
            last: row[range.upperBound - 1]
        )
    }

    @inline(__always)
    private func add(_ row: CachedRow, as id: Int64, to fold: inout RowFold) throws {
        try row.withRow { layout, bytes throws(RecordError) in
            try add(layout, bytes, as: id, to: &fold)
        }
    }
}

extension RecordOptions {
    /// Room for rows and nodes together as large as the others' caches.
    init(_ options: PeerOptions) {
        self.init()
        engine.packsLeaves = options.packsLeaves
        unreferencedRowBytes = options.rowCacheBytes ?? unreferencedRowBytes
        engine.nodeCacheBytes =
            options.cacheBytes - min(unreferencedRowBytes, options.cacheBytes / 2)
    }
}
