// The kept stores whose log, catalog or schema is what matters: a settle behind a void, torn saves,
// several openings, dropped blobs, a schema that changed.

import Foundation
import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords
import VarveTesting

extension GoldenStore {
    static let logs = [
        GoldenStore(name: "settled") { try LogMaker($0, seed: 6).makeSettled() },
        GoldenStore(name: "torn") { try LogMaker($0, seed: 7).makeTorn() },
        GoldenStore(name: "reopened") { try LogMaker($0, seed: 8).makeReopened() },
        GoldenStore(name: "dropped") { try LogMaker($0, seed: 9).makeDropped() },
        GoldenStore(name: "schema") { try LogMaker($0, seed: 10).makeSchema() },
    ]
}

/// The steps of one store. Everything comes from the seed.
private final class LogMaker {
    private let folder: URL
    private let environment: FixedEnvironment
    private var random: SeededRandom

    init(_ folder: URL, seed: UInt64) {
        self.folder = folder
        environment = FixedEnvironment(seed: seed)
        random = SeededRandom(seed: seed &+ 100)
    }

    private var file: URL { folder.appending(path: "store.varve") }

    private static func item(_ attributes: [AttributeDescription], _ indexes: [IndexDescription])
        -> EntityDescription
    {
        EntityDescription(
            name: "Item",
            attributes: [AttributeDescription(name: "text", type: .text, isOptional: true)]
                + attributes,
            indexes: indexes
        )
    }

    private static let schema = SchemaDescription(
        version: 3,
        entities: [
            item(
                [
                    AttributeDescription(name: "count", type: .int64, isOptional: true),
                    AttributeDescription(name: "data", type: .data, isOptional: true),
                    AttributeDescription(
                        name: "blob",
                        type: .blob,
                        isOptional: true,
                        externalLimit: 4096
                    ),
                ],
                [IndexDescription("count")]
            ),
            EntityDescription(
                name: "Note",
                attributes: [AttributeDescription(name: "title", type: .text)]
            ),
        ]
    )

    private func open(
        _ schema: SchemaDescription = schema,
        removing: Set<String> = []
    ) throws -> RecordStore {
        var options = RecordOptions()
        options.removing = removing
        options.engine.environment = environment
        options.engine.creator = "golden stores"
        options.engine.maintenance = .inline
        options.engine.retention = .all
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 4 << 10
        options.engine.tailReserve = 0
        options.engine.compactsAutomatically = false
        return try RecordStore.open(
            .file(directory: folder.path, name: "store"),
            schema: schema,
            options: options
        )
    }

    /// Saves one new object.
    private func save(
        _ store: RecordStore,
        _ id: UInt64,
        _ fields: [(String, StoredValue)],
        of name: String = "Item",
        durability: Durability = .full
    ) throws {
        guard let entity = try store.schema.entity(named: name) else {
            throw RecordError.unknownEntity(name)
        }
        let values = try fields.map { field, value in
            guard let attribute = entity.attribute(named: field) else {
                throw RecordError.unknownProperty(entity: name, property: field)
            }
            return ColumnValue(attribute.column, value)
        }
        _ = try store.write(author: "save \(id)", durability: durability) {
            try $0.insert(entity.id, ObjectID(id), values)
        }
    }

    private func delete(_ store: RecordStore, _ id: UInt64) throws {
        guard let entity = try store.schema.entity(named: "Item") else {
            throw RecordError.unknownEntity("Item")
        }
        _ = try store.write(author: "delete \(id)") { try $0.delete(entity.id, ObjectID(id)) }
    }

    private func blob(_ store: RecordStore, _ count: Int) throws -> PendingBlob {
        let writer = try store.engine.makeBlobWriter(externalLimit: 4096)
        try writer.append(random.bytes(count))
        return try writer.finish()
    }

    /// Ends the store as if its process had been killed, with other bytes in its file.
    private func kill(_ store: RecordStore, _ change: (inout [UInt8]) throws -> Void) throws {
        var bytes = [UInt8](try Data(contentsOf: file))
        try store.close()
        try change(&bytes)
        try Data(bytes).write(to: file)
    }

    /// Where the data of a file ends, at the next multiple of 8.
    private func end(_ bytes: [UInt8]) -> Int {
        ((bytes.lastIndex { $0 != 0 } ?? 0) + 8) & ~7
    }

    private func text(_ text: String) -> (String, StoredValue) { ("text", .text(text)) }

    // MARK: Stores

    /// Two saves that nothing proves, with a value and a blob of their own, and the beginning of a
    /// third; opened again, so that a settle stands behind the void.
    func makeSettled() throws {
        var store = try open()
        _ = store.allocateObjectIDs(20)
        try save(store, 1, [text("one"), ("count", .int(1))])
        try store.engine.checkpoint()
        try save(store, 2, [text("two"), ("count", .int(2))])
        let small = try blob(store, 700)
        try save(
            store,
            3,
            [text("three"), ("data", .data(random.bytes(2500)))],
            durability: .relaxed
        )
        try save(
            store,
            4,
            [text("four"), ("blob", .blob(small.reference))],
            durability: .relaxed
        )
        withExtendedLifetime(small) {}
        let kept = end([UInt8](try Data(contentsOf: file)))
        try save(store, 5, [text("five")], durability: .relaxed)
        try kill(store) { bytes in
            for place in (kept + 64)..<bytes.count { bytes[place] = 0 }
        }
        store = try open()
        try save(store, 6, [text("six"), ("count", .int(6))])
        try store.close()
    }

    /// Two saves of one batch, of which the first lost a sector: both count for nothing.
    func makeTorn() throws {
        let store = try open()
        _ = store.allocateObjectIDs(20)
        try save(store, 1, [text("one"), ("count", .int(1))])
        try save(store, 2, [text("two")])
        let kept = end([UInt8](try Data(contentsOf: file)))
        for id in UInt64(3)...4 {
            let data = StoredValue.data(random.bytes(1500))
            try save(store, id, [text("torn \(id)"), ("data", data)], durability: .relaxed)
        }
        try kill(store) { bytes in
            let sector = (kept + 128 + 511) / 512 * 512
            for place in sector..<(sector + 512) { bytes[place] = 0 }
        }
    }

    /// Three openings, each closed: voids behind CLOSE frames, a catalog that knows the openings,
    /// and entries that later versions may keep.
    func makeReopened() throws {
        var store = try open()
        _ = store.allocateObjectIDs(20)
        try save(store, 1, [text("one"), ("count", .int(1))])
        try store.close()
        store = try open()
        try save(store, 2, [text("two")])
        _ = try store.engine.write(author: "put") { transaction in
            try transaction.put(.catalog, Array("later/a".utf8), [1, 2, 3])
            try transaction.put(.catalog, Array("later/b".utf8), [4])
            try transaction.put(TreeID(5), [7], [8, 9])
        }
        try store.engine.checkpoint()
        _ = try store.engine.write(author: "remove") { transaction in
            try transaction.remove(.catalog, Array("later/b".utf8))
            try transaction.put(.catalog, Array("later/a".utf8), [])
            try transaction.remove(TreeID(5), [6])
        }
        try store.close()
        store = try open()
        try delete(store, 1)
        try store.close()
    }

    /// Blobs in files that no row names any more, one of them named again since.
    func makeDropped() throws {
        let store = try open()
        _ = store.allocateObjectIDs(20)
        let blobs = [try blob(store, 4200), try blob(store, 4300), try blob(store, 600)]
        for (index, blob) in blobs.enumerated() {
            try save(
                store,
                UInt64(1 + index),
                [text("blob \(index)"), ("blob", .blob(blob.reference))]
            )
        }
        try store.engine.checkpoint()
        for id in UInt64(1)...3 { try delete(store, id) }
        try save(store, 4, [text("again"), ("blob", .blob(blobs[1].reference))])
        withExtendedLifetime(blobs) {}
        try store.close()
    }

    /// A schema in its third revision: attributes and an entity that went, others that came, and
    /// rows of all times.
    func makeSchema() throws {
        var store = try open()
        _ = store.allocateObjectIDs(20)
        try save(store, 1, [text("one"), ("count", .int(1))])
        try save(store, 2, [("title", .text("a note"))], of: "Note")
        try store.close()
        let rank = AttributeDescription(name: "rank", type: .int64, defaultValue: .int(7))
        store = try open(
            SchemaDescription(version: 9, entities: [Self.item([rank], [])]),
            removing: ["Item.count", "Note"]
        )
        try save(store, 3, [text("three"), ("rank", .int(3))])
        try save(store, 4, [text("four")])
        try store.close()
        store = try open(
            SchemaDescription(
                version: 12,
                entities: [
                    Self.item(
                        [
                            AttributeDescription(
                                name: "place",
                                originalNames: ["rank"],
                                type: .int64,
                                defaultValue: .int(8)
                            )
                        ],
                        [IndexDescription("place")]
                    )
                ]
            )
        )
        try save(store, 5, [text("five"), ("place", .int(5))])
        try store.close()
    }
}
