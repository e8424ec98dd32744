// The stores that are kept for ever: how they are made. They are made once per format version;
// changing this file changes no store that is kept.

import Foundation
import VarveBase
import VarveEngine
import VarveIO
import VarveRecords
import VarveTesting

@testable import VarveEngine

/// Makes one store in an empty folder, as "store.varve".
struct GoldenStore: Sendable, CustomStringConvertible {
    let name: String
    /// Of the format that it shows.
    var version = 1
    let make: @Sendable (URL) throws -> Void
    var description: String { name }

    static let first = [
        GoldenStore(name: "types") { try Maker($0, seed: 1).makeTypes() },
        GoldenStore(name: "log") { try Maker($0, seed: 2).makeLog() },
        GoldenStore(name: "compacted") { try Maker($0, seed: 3).makeCompacted() },
        GoldenStore(name: "unclean") { try Maker($0, seed: 4).makeUnclean() },
        GoldenStore(name: "backup") { try Maker($0, seed: 5).makeBackup() },
        GoldenStore(name: "packed", version: 3) { try Maker($0, seed: 6).makePacked() },
    ]
    static let all = first + logs
}

/// The steps of one store. Everything comes from the seed: the same bytes in every run.
private final class Maker {
    private let folder: URL
    private let seed: UInt64
    private let environment: FixedEnvironment
    private var random: SeededRandom

    init(_ folder: URL, seed: UInt64) {
        self.folder = folder
        self.seed = seed
        environment = FixedEnvironment(seed: seed)
        random = SeededRandom(seed: seed &+ 100)
    }

    // MARK: Schema

    private static let types: [(String, AttributeType)] = [
        ("bool", .bool), ("int8", .int8), ("int16", .int16), ("int32", .int32),
        ("int64", .int64), ("uint8", .uint8), ("uint16", .uint16), ("uint32", .uint32),
        ("uint64", .uint64), ("float", .float), ("double", .double), ("date", .date),
        ("text", .text), ("data", .data), ("uuid", .uuid), ("decimal", .decimal),
        ("url", .url), ("blob", .blob),
    ]

    private static let schema = SchemaDescription(
        version: 3,
        entities: [
            EntityDescription(
                name: "Item",
                attributes: types.map { name, type in
                    AttributeDescription(
                        name: name,
                        type: type,
                        isOptional: true,
                        externalLimit: type == .blob ? 4096 : nil
                    )
                } + [
                    AttributeDescription(
                        name: "note",
                        type: .text,
                        defaultValue: .text("none")
                    )
                ],
                relationships: [
                    RelationshipDescription(name: "group", target: "Group", inverse: "items"),
                    RelationshipDescription(
                        name: "tags",
                        target: "Tag",
                        inverse: "items",
                        isToMany: true,
                        isOrdered: true
                    ),
                ],
                indexes: types.filter { $0.1 != .blob }.map { IndexDescription($0.0) } + [
                    IndexDescription([
                        IndexDescription.Term("int32", isDescending: true),
                        IndexDescription.Term("text"),
                        IndexDescription.Term("decimal"),
                    ])
                ]
            ),
            EntityDescription(
                name: "Group",
                attributes: [AttributeDescription(name: "name", type: .text)],
                relationships: [
                    RelationshipDescription(
                        name: "items",
                        target: "Item",
                        inverse: "group",
                        isToMany: true,
                        deleteRule: .cascade
                    )
                ],
                uniqueConstraints: [UniqueConstraintDescription(["name"])]
            ),
            EntityDescription(
                name: "Tag",
                attributes: [AttributeDescription(name: "label", type: .text)],
                relationships: [
                    RelationshipDescription(
                        name: "items",
                        target: "Item",
                        inverse: "tags",
                        isToMany: true
                    )
                ]
            ),
        ]
    )

    private func open(_ adjust: (inout EngineOptions) -> Void = { _ in }) throws -> RecordStore {
        var options = RecordOptions()
        options.engine.environment = environment
        options.engine.creator = "golden stores"
        options.engine.maintenance = .inline
        options.engine.retention = .all
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 4 << 10
        options.engine.tailReserve = 0
        options.engine.compactsAutomatically = false
        adjust(&options.engine)
        return try RecordStore.open(
            .file(directory: folder.path, name: "store"),
            schema: Self.schema,
            options: options
        )
    }

    private func values(
        _ store: RecordStore,
        _ entity: String,
        _ fields: [(String, StoredValue)]
    ) throws -> [ColumnValue] {
        guard let entity = try store.schema.entity(named: entity) else {
            throw RecordError.unknownEntity(entity)
        }
        return try fields.map { name, value in
            if let attribute = entity.attribute(named: name) {
                return ColumnValue(attribute.column, value)
            }
            guard case .column(let column, _)? = entity.relationship(named: name)?.storage else {
                throw RecordError.unknownProperty(entity: entity.name, property: name)
            }
            return ColumnValue(column, value)
        }
    }

    private func entity(_ name: String, _ store: RecordStore) throws -> RecordEntity {
        guard let entity = try store.schema.entity(named: name) else {
            throw RecordError.unknownEntity(name)
        }
        return entity
    }

    private func put(
        _ store: RecordStore,
        _ transaction: RecordTransaction,
        _ name: String,
        _ id: UInt64,
        _ fields: [(String, StoredValue)]
    ) throws {
        try transaction.insert(
            try entity(name, store).id,
            ObjectID(id),
            try values(store, name, fields)
        )
    }

    private func blob(_ store: RecordStore, _ count: Int) throws -> PendingBlob {
        let writer = try store.engine.makeBlobWriter(externalLimit: 4096)
        try writer.append(random.bytes(count))
        return try writer.finish()
    }

    private func unsigned(_ value: UInt64) -> StoredValue {
        .int(Int64(bitPattern: value ^ 1 << 63))
    }

    // MARK: Stores

    /// Every type with its extremes, nulls, defaults, special numbers, large values, blobs in the
    /// log and in files, relationships of all kinds; rows changed and deleted afterwards.
    func makeTypes() throws {
        let store = try open()
        _ = store.allocateObjectIDs(40)
        let (small, large) = (try blob(store, 1000), try blob(store, 5000))
        _ = try store.write(author: "first") { transaction in
            try put(store, transaction, "Group", 1, [("name", .text("a"))])
            try put(store, transaction, "Group", 2, [("name", .text("b"))])
            for (id, label) in [(3, "red"), (4, "grün"), (5, "blå")] as [(UInt64, String)] {
                try put(store, transaction, "Tag", id, [("label", .text(label))])
            }
            try put(store, transaction, "Item", 10, lowest)
            try put(store, transaction, "Item", 11, highest)
            try put(store, transaction, "Item", 12, Self.types.map { ($0.0, .null) })
            try put(store, transaction, "Item", 13, [])
            try put(store, transaction, "Item", 14, special)
            try put(store, transaction, "Item", 15, long)
            try put(store, transaction, "Item", 16, [("blob", .blob(small.reference))])
            try put(store, transaction, "Item", 17, [("blob", .blob(large.reference))])
            try put(
                store,
                transaction,
                "Item",
                18,
                [("blob", .blob(large.reference)), ("note", .text("the same blob"))]
            )
            let item = try entity("Item", store)
            if let tags = item.relationship(named: "tags") {
                let members: [ObjectID] = [ObjectID(5), ObjectID(3), ObjectID(4)]
                try transaction.setOrder(item, tags, of: ObjectID(10), members)
                try transaction.setOrder(item, tags, of: ObjectID(11), [ObjectID(3)])
            }
        }
        withExtendedLifetime((small, large)) {}
        try store.engine.checkpoint()
        _ = try store.write(author: "second") { transaction in
            let item = try entity("Item", store)
            try transaction.update(
                item.id,
                ObjectID(13),
                try values(
                    store,
                    "Item",
                    [
                        ("text", .text("changed")), ("int8", .int(-7)),
                        ("group", .reference(.init(2))),
                    ]
                )
            )
            try transaction.delete(item.id, ObjectID(18))
            if let tags = item.relationship(named: "tags") {
                try transaction.removeLink(item, tags, from: ObjectID(10), to: ObjectID(3))
            }
        }
        try store.close()
    }

    private var lowest: [(String, StoredValue)] {
        [
            ("bool", .bool(false)), ("int8", .int(-128)), ("int16", .int(-32_768)),
            ("int32", .int(Int64(Int32.min))), ("int64", .int(.min)), ("uint8", .int(0)),
            ("uint16", .int(0)), ("uint32", .int(0)), ("uint64", unsigned(0)),
            ("float", .float(-.greatestFiniteMagnitude)),
            ("double", .double(-.greatestFiniteMagnitude)), ("date", .date(-1e10)),
            ("text", .text("")), ("data", .data([])), ("uuid", .uuid(UUIDValue(high: 0, low: 0))),
            (
                "decimal",
                .decimal(
                    DecimalValue(
                        isNegative: true,
                        exponent: 127,
                        digits: [UInt8](repeating: 9, count: 38)
                    )
                )
            ), ("url", .text("https://example.org/?a=b#c")), ("group", .reference(ObjectID(1))),
        ]
    }

    private var highest: [(String, StoredValue)] {
        [
            ("bool", .bool(true)), ("int8", .int(127)), ("int16", .int(32_767)),
            ("int32", .int(Int64(Int32.max))), ("int64", .int(.max)), ("uint8", .int(255)),
            ("uint16", .int(65_535)), ("uint32", .int(4_294_967_295)), ("uint64", unsigned(.max)),
            ("float", .float(.infinity)), ("double", .double(.infinity)),
            ("date", .date(800_000_000.25)), ("text", .text("Wisława \"S\" \u{1F600}")),
            ("data", .data([0, 255, 0])), ("uuid", .uuid(UUIDValue(high: .max, low: .max))),
            (
                "decimal",
                .decimal(DecimalValue(isNegative: false, exponent: -128, digits: [1, 2, 5]))
            ), ("url", .text("file:///tmp/x")), ("note", .text("highest")),
            ("group", .reference(ObjectID(1))),
        ]
    }

    private var special: [(String, StoredValue)] {
        [
            ("float", .float(-0.0)), ("double", .double(.nan)), ("int64", .int(1)),
            ("int32", .int(300)), ("uint64", unsigned(1 << 63)),
            ("text", .text("a\u{0}b")),
            ("decimal", .decimal(DecimalValue(isNegative: false, exponent: 0, digits: []))),
            ("date", .date(0)), ("group", .reference(ObjectID(2))),
        ]
    }

    /// Beyond what a key keeps, beyond what a row keeps, and a run of zeros.
    private var long: [(String, StoredValue)] {
        [
            ("text", .text(String(repeating: "Längeres. ", count: 60))),
            ("data", .data([UInt8](repeating: 0, count: 3000))),
            ("url", .text("https://example.org/" + String(repeating: "x", count: 2500))),
        ]
    }

    private func number(_ id: UInt64, _ value: Int64) -> [(String, StoredValue)] {
        [
            ("int64", .int(value)), ("text", .text("item \(value)")),
            ("double", .double(Double(value) / 3)), ("group", .reference(ObjectID(1))),
        ]
    }

    /// A TREE, checkpoints and DELTAs in turn, with trees of three levels, and a clean end.
    func makeLog() throws {
        let store = try open {
            $0.nodeWeightMax = 512
            $0.deltaBytesMax = 2 << 10
        }
        _ = store.allocateObjectIDs(400)
        _ = try store.write(author: "import") { transaction in
            try put(store, transaction, "Group", 1, [("name", .text("all"))])
            for id in UInt64(10)..<90 {
                try put(store, transaction, "Item", id, number(id, Int64(id) * 7 % 31))
            }
        }
        let item = try entity("Item", store)
        for step in UInt64(0)..<12 {
            _ = try store.write(author: "step \(step)") { transaction in
                try put(store, transaction, "Item", 200 + step, number(0, Int64(step)))
                try transaction.update(
                    item.id,
                    ObjectID(10 + step * 5),
                    try values(store, "Item", [("int64", .int(Int64(step) - 6))])
                )
                try transaction.delete(item.id, ObjectID(13 + step * 5))
            }
            if step == 4 { try store.engine.checkpoint() }
        }
        try store.close()
    }

    /// A compaction that keeps every commit, commits behind it, and its blobs.
    func makeCompacted() throws {
        let store = try open()
        _ = store.allocateObjectIDs(100)
        let blobs = try (0..<3).map { try blob(store, 600 + 2500 * $0) }
        let item = try entity("Item", store)
        _ = try store.write(author: "begin") { transaction in
            try put(store, transaction, "Group", 1, [("name", .text("all"))])
            for (index, blob) in blobs.enumerated() {
                let id = UInt64(10 + index)
                try put(
                    store,
                    transaction,
                    "Item",
                    id,
                    [("blob", .blob(blob.reference)), ("text", .text("blob \(index)"))]
                )
            }
        }
        for step in UInt64(0)..<6 {
            _ = try store.write(author: "step \(step)") { transaction in
                try put(store, transaction, "Item", 20 + step, number(0, Int64(step)))
                if step == 3 { try transaction.delete(item.id, ObjectID(10)) }
            }
            if step == 2 { try store.engine.checkpoint() }
        }
        withExtendedLifetime(blobs) {}
        _ = try store.compact()
        for step in UInt64(6)..<9 {
            _ = try store.write(author: "step \(step)") { transaction in
                try put(store, transaction, "Item", 20 + step, number(0, Int64(step)))
                try transaction.update(
                    item.id,
                    ObjectID(20),
                    try values(store, "Item", [("text", .text("step \(step)"))])
                )
            }
        }
        try store.close()
    }

    /// Leaves of layout 1 with and without symbol tables, all types among their rows; leaves of
    /// layout 2 that changed some of them after the compaction, twice. That of version 2 was made
    /// in the same way: its later leaves have layout 0.
    func makePacked() throws {
        let store = try open {
            $0.packsAnyLeaf = true
            // Commits that are kept apart are written as savers write them.
            $0.retention = .newest
        }
        _ = store.allocateObjectIDs(2000)
        let words = ["harbour", "lighthouse", "tide", "Überfahrt", "anchor"]
        let item = try entity("Item", store)
        _ = try store.write(author: "import") { transaction in
            try put(store, transaction, "Group", 1, [("name", .text("all"))])
            try put(store, transaction, "Group", 2, [("name", .text("none"))])
            try put(store, transaction, "Item", 10, lowest)
            try put(store, transaction, "Item", 11, highest)
            try put(store, transaction, "Item", 12, Self.types.map { ($0.0, .null) })
            try put(store, transaction, "Item", 13, [])
            try put(store, transaction, "Item", 14, special)
            try put(store, transaction, "Item", 15, long)
            for id in UInt64(20)..<200 {
                let text = (0..<id % 6 + 4).map { words[Int((id / 2 + $0 * $0) % 5)] }
                var fields = number(id, Int64(id) * 7 % 31)
                fields[1].1 = .text(text.joined(separator: " "))
                fields.append(("date", .date(700_000_000 + Double(id) * 60.5)))
                if id % 3 == 0 { fields.append(("uuid", .uuid(UUIDValue(high: id, low: 7)))) }
                try put(store, transaction, "Item", id + id / 50 * 100, fields)
            }
        }
        _ = try store.write(author: "later") { transaction in
            try transaction.update(
                item.id,
                ObjectID(30),
                try values(store, "Item", [("bool", .bool(true))])
            )
        }
        _ = try store.compact()
        _ = try store.write(author: "after") { transaction in
            try transaction.delete(item.id, ObjectID(31))
            try put(store, transaction, "Item", 1900, number(0, 5))
        }
        try store.engine.checkpoint()
        _ = try store.write(author: "and after") { transaction in
            try transaction.delete(item.id, ObjectID(155))
            try transaction.update(
                item.id,
                ObjectID(345),
                try values(store, "Item", [("int32", .int(7))])
            )
        }
        try store.engine.checkpoint()
        try store.close()
    }

    /// A copy of the file while a writer has it open: the newest commit has no witness.
    func makeUnclean() throws {
        let store = try open()
        _ = store.allocateObjectIDs(100)
        _ = try store.write(author: "first") { transaction in
            try put(store, transaction, "Group", 1, [("name", .text("all"))])
            for id in UInt64(10)..<20 {
                try put(store, transaction, "Item", id, number(id, Int64(id)))
            }
        }
        try store.engine.checkpoint()
        let item = try entity("Item", store)
        for step in UInt64(0)..<3 {
            _ = try store.write(author: "step \(step)") { transaction in
                try put(store, transaction, "Item", 20 + step, number(0, Int64(step)))
                try transaction.delete(item.id, ObjectID(10 + step))
            }
        }
        let file = folder.appending(path: "store.varve")
        var bytes = [UInt8](try Data(contentsOf: file))
        try store.close()
        // The beginning of a write that a crash cut short.
        let end = bytes.count - (bytes.reversed().firstIndex { $0 != 0 } ?? 0)
        let torn: [UInt8] = [0x46, 0x56, 0x01, 0x02, 0x90]
        let start = (end + 7) & ~7
        bytes.replaceSubrange(start..<(start + torn.count), with: torn)
        try Data(bytes).write(to: file)
    }

    /// A backup, and an increment of it.
    func makeBackup() throws {
        let place = folder.appending(path: "origin", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        let origin = Maker(place, seed: seed)
        let store = try origin.open()
        _ = store.allocateObjectIDs(100)
        let blobs = [try blob(store, 700), try blob(store, 4500), try blob(store, 4600)]
        let backup = StoreLocation.file(directory: folder.path, name: "store")
        for (step, blob) in blobs.enumerated() {
            _ = try store.write(author: "step \(step)") { transaction in
                try put(
                    store,
                    transaction,
                    "Item",
                    UInt64(10 + step),
                    [("blob", .blob(blob.reference)), ("int16", .int(Int64(step)))]
                )
            }
            _ = try store.backup(to: backup)
        }
        withExtendedLifetime(blobs) {}
        try store.close()
        try FileManager.default.removeItem(at: place)
    }
}
