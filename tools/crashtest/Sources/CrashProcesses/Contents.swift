// A store of these campaigns: its schema, its settings, and everything that a snapshot of it shows.

import VarveTesting

/// Where a store is.
struct Place {
    var folder: String
    var name = "test"

    var location: StoreLocation { .file(directory: folder, name: name) }
    var path: String { "\(folder)/\(name).varve" }
    var blobs: String { "\(folder)/\(name).varve-blobs" }
}

enum Library {
    static let schema = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "Ledger",
                attributes: [
                    AttributeDescription(name: "writer", type: .int64),
                    AttributeDescription(name: "step", type: .int64),
                    AttributeDescription(name: "count", type: .int64),
                    AttributeDescription(name: "sum", type: .int64),
                ],
                uniqueConstraints: [UniqueConstraintDescription(["writer"])]
            ),
            EntityDescription(
                name: "Item",
                attributes: [
                    AttributeDescription(name: "key", type: .int64),
                    AttributeDescription(name: "rank", type: .int64),
                    AttributeDescription(name: "title", type: .text),
                    AttributeDescription(name: "body", type: .text, isOptional: true),
                    AttributeDescription(
                        name: "picture",
                        type: .blob,
                        isOptional: true,
                        externalLimit: UInt64(Picture.externalLimit)
                    ),
                ],
                indexes: [IndexDescription("title"), IndexDescription("rank", "title")],
                uniqueConstraints: [UniqueConstraintDescription(["key"])]
            ),
            EntityDescription(
                name: "Ballast",
                attributes: [AttributeDescription(name: "weight", type: .text)]
            ),
        ]
    )

    /// Small nodes and little room, so that everything the store does comes within a few saves.
    ///
    /// - Parameter isInline: whether the savers do all work, so that every run makes the same
    ///   calls in the same order.
    static func options(_ mode: StoreOpenMode, isInline: Bool) -> RecordOptions {
        var options = RecordOptions()
        options.mode = mode
        options.engine.nodeWeightMax = 512
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 16 << 10
        options.engine.tailReserve = 2 << 10
        options.engine.checkpointTailMin = 6 << 10
        options.engine.checkpointTailMax = 12 << 10
        options.engine.deltaBytesMax = 3 << 10
        options.engine.inlineValueBytesMax = 256
        options.engine.compactedLeafBytes = 1 << 10
        options.engine.packsAnyLeaf = true
        options.engine.compactionDeadBytesMin = 128 << 10
        options.engine.nodeCacheBytes = 64 << 10
        options.engine.idleMilliseconds = 60
        // Others may have the processor for long; nobody here keeps a turn.
        options.engine.turnMilliseconds = 60_000
        options.engine.maintenance = isInline ? .inline : .background
        options.engine.compactsAutomatically = !isInline
        options.unreferencedRowBytes = 4 << 10
        return options
    }

    static func open(
        _ place: Place,
        _ mode: StoreOpenMode = .createIfMissing,
        isInline: Bool = false,
        isRoomy: Bool = false
    ) throws -> RecordStore {
        var options = options(mode, isInline: isInline)
        if isRoomy {
            // Commits and checkpoints fit into the room, as they do with the default settings.
            options.engine.tailRoomMin = 32 << 10
            options.engine.tailRoomMax = 256 << 10
            options.engine.tailReserve = 16 << 10
            // It would give space back for ever.
            options.engine.compactsAutomatically = false
        }
        return try RecordStore.open(place.location, schema: schema, options: options)
    }
}

/// The columns of an open store.
struct Columns {
    let ledger, item, ballast: RecordEntity
    let writer, step, count, sum, key, rank, title, body, picture, weight: ColumnID

    init(_ store: RecordStore) throws {
        let schema = try store.schema
        func entity(_ name: String) throws -> RecordEntity {
            guard let entity = schema.entity(named: name) else {
                throw RecordError.unknownEntity(name)
            }
            return entity
        }
        func column(_ entity: RecordEntity, _ name: String) throws -> ColumnID {
            guard let attribute = entity.attribute(named: name) else {
                throw RecordError.unknownProperty(entity: entity.name, property: name)
            }
            return attribute.column
        }
        ledger = try entity("Ledger")
        item = try entity("Item")
        writer = try column(ledger, "writer")
        step = try column(ledger, "step")
        count = try column(ledger, "count")
        sum = try column(ledger, "sum")
        key = try column(item, "key")
        rank = try column(item, "rank")
        title = try column(item, "title")
        body = try column(item, "body")
        picture = try column(item, "picture")
        ballast = try entity("Ballast")
        weight = try column(ballast, "weight")
    }

    func values(_ writer: UInt64, _ account: Account) -> [ColumnValue] {
        [
            ColumnValue(self.writer, .int(Int64(writer))),
            ColumnValue(step, .int(Int64(account.step))),
            ColumnValue(count, .int(Int64(account.items.count))),
            ColumnValue(sum, .int(account.sum)),
        ]
    }

    func values(_ key: UInt64, _ item: Item, _ blob: BlobReference?) -> [ColumnValue] {
        [
            ColumnValue(self.key, .int(Int64(key))), ColumnValue(rank, .int(item.rank)),
            ColumnValue(title, .text(item.title)),
            ColumnValue(body, item.body.map { .text($0) } ?? .null),
            ColumnValue(picture, blob.map { .blob($0) } ?? .null),
        ]
    }
}

/// Everything that a snapshot shows.
struct Contents {
    var accounts: [UInt64: Account] = [:]
    var items: [UInt64: ObjectID] = [:]
    var ledgers: [UInt64: ObjectID] = [:]

    /// - Throws: what reading throws; `Violation` when parts of one snapshot contradict each other.
    init(_ snapshot: RecordSnapshot, _ columns: Columns) throws {
        let ledgerIDs = try snapshot.fetchIDs(RecordQuery(entity: columns.ledger.id))
        var said: [UInt64: (count: Int64, sum: Int64)] = [:]
        for (id, row) in zip(ledgerIDs, try snapshot.rows(columns.ledger.id, ledgerIDs)) {
            guard let row, case .int(let writer) = try row.value(columns.writer),
                case .int(let step) = try row.value(columns.step),
                case .int(let count) = try row.value(columns.count),
                case .int(let sum) = try row.value(columns.sum)
            else { throw Violation("ledger \(id.rawValue) is not whole") }
            let number = UInt64(writer)
            if ledgers.updateValue(id, forKey: number) != nil {
                throw Violation("writer \(number) has two ledgers")
            }
            accounts[number] = Account(step: UInt64(step))
            said[number] = (count, sum)
        }
        let itemIDs = try snapshot.fetchIDs(RecordQuery(entity: columns.item.id))
        for (id, row) in zip(itemIDs, try snapshot.rows(columns.item.id, itemIDs)) {
            guard let row else { throw Violation("item \(id.rawValue) has no row") }
            let (key, item) = try Self.item(row, snapshot, columns)
            if items.updateValue(id, forKey: key) != nil {
                throw Violation("two items have the key \(key)")
            }
            accounts[Account.writer(of: key), default: Account()].items[key] = item
        }
        for (number, account) in accounts {
            let said = said[number] ?? (0, 0)
            if said.count != Int64(account.items.count) || said.sum != account.sum {
                throw Violation(
                    "writer \(number), step \(account.step): its ledger says \(said.count) items "
                        + "with sum \(said.sum), there are \(account.items.count) with "
                        + "\(account.sum)"
                )
            }
        }
    }

    /// What whoever opens a store for reading finds in it.
    static func find(_ place: Place) throws -> [UInt64: Account] {
        let store = try Library.open(place, .readOnly)
        let contents = try Contents(try store.snapshot(), try Columns(store))
        try store.close()
        return contents.accounts
    }

    private static func item(
        _ row: CachedRow,
        _ snapshot: RecordSnapshot,
        _ columns: Columns
    ) throws -> (UInt64, Item) {
        guard case .int(let key) = try snapshot.value(of: row, columns.key),
            case .int(let rank) = try snapshot.value(of: row, columns.rank),
            case .text(let title) = try snapshot.value(of: row, columns.title)
        else { throw Violation("item \(row.id.rawValue) is not whole") }
        var item = Item(rank: rank, title: title)
        if case .text(let body) = try snapshot.value(of: row, columns.body) { item.body = body }
        if case .blob(let reference) = try snapshot.value(of: row, columns.picture) {
            guard let bytes = try snapshot.storage.blob(reference)?.readAll(),
                let picture = Picture(bytes)
            else { throw Violation("item \(row.id.rawValue): its blob is not what was saved") }
            item.picture = picture
        }
        return (UInt64(key), item)
    }
}
