// Automatic steps between schemas, and what is refused.

import Testing
import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

@Suite(.verified) struct SchemaEvolutionTests {
    private func problems(_ body: () throws -> Void) -> [String] {
        do {
            try body()
            return []
        } catch RecordError.schemaMismatch(let problems) {
            return problems
        } catch RecordError.invalidSchema(let problems) {
            return problems
        } catch {
            Issue.record(error)
            return []
        }
    }

    private func schema(_ version: UInt32, _ entities: EntityDescription...) -> SchemaDescription {
        SchemaDescription(version: version, entities: entities)
    }

    private func item(_ attributes: AttributeDescription...) -> EntityDescription {
        EntityDescription(name: "Item", attributes: attributes)
    }

    @Test func `Opening again with the same schema writes nothing`() throws {
        let directory = TestDirectory()
        let first = try directory.open(Cities.schema)
        #expect(try first.snapshot().number.rawValue == 1)
        try first.close()
        let second = try directory.open(Cities.schema)
        #expect(try second.snapshot().number.rawValue == 1)
        #expect(try second.schema.fingerprint == first.schema.fingerprint)
        try second.close()
        #expect(try RecordStore.planMigration(directory.location, schema: Cities.schema).isEmpty)
    }

    @Test func `Attributes are added with their default, renamed, widened and dropped`() throws {
        let directory = TestDirectory()
        let before = schema(
            1,
            item(
                AttributeDescription(name: "title", type: .text),
                AttributeDescription(name: "size", type: .int16),
                AttributeDescription(name: "gone", type: .text, isOptional: true)
            )
        )
        var id = ObjectID(0)
        do {
            let store = try directory.open(before)
            id = try store.insert(
                "Item",
                [
                    ("title", .text("t")), ("size", .int(7)),
                    ("gone", .text(String(repeating: "g", count: 9_000))),
                ]
            )
            try store.close()
        }
        var after = schema(
            2,
            item(
                AttributeDescription(name: "name", originalNames: ["title"], type: .text),
                AttributeDescription(name: "size", type: .int64),
                AttributeDescription(name: "rank", type: .int32, defaultValue: .int(5))
            )
        )
        after.entities[0].indexes = [IndexDescription("rank")]
        let steps = try RecordStore.planMigration(directory.location, schema: after)
        #expect(
            steps.map(\.description) == [
                "Item: rename attribute title -> name",
                "Item: change attribute size: Int16 -> Int64",
                "Item: add attribute rank", "Item: drop attribute and its values gone",
                "Item: build index (rank)", "set version 1 -> 2",
            ]
        )
        let store = try directory.open(after, removing: ["Item.gone"])
        let item = try store.schema.require("Item")
        let snapshot = try store.snapshot()
        #expect(snapshot.number.rawValue == 3)
        let row = try #require(try snapshot.row(item.id, id))
        #expect(try row.text(item.column("name")) == "t")
        #expect(try row.int(item.column("size")) == 7)
        #expect(try row.int(item.column("rank")) == 5)
        #expect(item.column("rank").rawValue == 3)
        var query = RecordQuery(entity: item.id)
        query.predicate = .compare(PropertyPath("rank"), .equal, .int(5))
        #expect(try snapshot.explain(query).hasPrefix("index"))
        #expect(try snapshot.fetchIDs(query) == [id])
        // The dropped text lay outside its row: nothing of it is left there.
        #expect(try row.values().count == 4)
        #expect(snapshot.storage.count(.largeValues) == 0)
        try store.close()
        // A later change of the default is no change: it holds for new objects, set by the layer
        // above.
        after.entities[0].attributes[2].defaultValue = .int(9)
        let again = try directory.open(after)
        #expect(try again.snapshot().number == snapshot.number)
        #expect(try again.snapshot().row(item.id, id)?.int(item.column("rank")) == 5)
        try again.close()
    }

    @Test func `Entities are added, renamed and dropped with their objects`() throws {
        let directory = TestDirectory()
        let old = EntityDescription(
            name: "Old",
            attributes: [AttributeDescription(name: "data", type: .data, isOptional: true)]
        )
        let thing = EntityDescription(
            name: "Thing",
            attributes: [AttributeDescription(name: "title", type: .text)],
            relationships: [RelationshipDescription(name: "parts", target: "Old", isToMany: true)],
            indexes: [IndexDescription("title")]
        )
        var id = ObjectID(0)
        do {
            let store = try directory.open(schema(1, old, thing))
            id = try store.insert("Thing", [("title", .text("x"))])
            let part = try store.insert(
                "Old",
                [("data", .data([UInt8](repeating: 1, count: 9_000)))]
            )
            let entity = try store.schema.require("Thing")
            let parts = try #require(entity.relationship(named: "parts"))
            _ = try store.write { try $0.addLink(entity, parts, from: id, to: part) }
            try store.close()
        }
        let item = EntityDescription(
            name: "Item",
            originalNames: ["Thing"],
            attributes: [AttributeDescription(name: "title", type: .text)],
            indexes: [IndexDescription("title")]
        )
        let new = EntityDescription(name: "New")
        let store = try directory.open(schema(2, item, new), removing: ["Old"])
        let snapshot = try store.snapshot()
        let entity = try store.schema.require("Item")
        #expect(try snapshot.row(entity.id, id)?.text(entity.column("title")) == "x")
        #expect(try store.schema.entity(named: "Old") == nil)
        #expect(try store.schema.all.filter(\.isHiddenLink).isEmpty)
        #expect(snapshot.storage.count(.largeValues) == 0)
        #expect(try snapshot.count(RecordQuery(entity: try store.schema.require("New").id)) == 0)
        #expect(
            try snapshot.fetchIDs(RecordQuery(entity: entity.id, sort: [SortTerm("title")])) == [id]
        )
        try store.close()
        // What comes back later gets new numbers, not the old rows.
        let again = try directory.open(schema(3, old, item, new))
        #expect(try again.snapshot().count(again.query("Old")) == 0)
        #expect(try again.schema.require("Old").id.rawValue > entity.id.rawValue)
        try again.close()
    }

    @Test func `What cannot be done is named, and nothing happens`() throws {
        let directory = TestDirectory()
        let before = schema(
            2,
            item(
                AttributeDescription(name: "a", type: .text),
                AttributeDescription(name: "b", type: .int64),
                AttributeDescription(name: "c", type: .int32, isOptional: true)
            )
        )
        let number: CommitNumber
        do {
            let store = try directory.open(before)
            try store.insert("Item", [("a", .text("t")), ("b", .int(1))])
            number = try store.snapshot().number
            try store.close()
        }
        let changed = schema(
            3,
            item(
                AttributeDescription(name: "a", type: .int64),
                AttributeDescription(name: "b", type: .int8),
                AttributeDescription(name: "c", type: .int32, isOptional: true)
            )
        )
        let types = problems { _ = try directory.open(changed) }
        #expect(types.count == 2)
        #expect(types[0].contains("Item.a is String in the store and Int64 in the app"))
        let required = schema(
            3,
            item(
                AttributeDescription(name: "a", type: .text),
                AttributeDescription(name: "b", type: .int64),
                AttributeDescription(name: "c", type: .int32),
                AttributeDescription(name: "d", type: .int32)
            )
        )
        let missing = problems { _ = try directory.open(required) }
        #expect(missing.first?.contains("Item.d is new and must have a value") == true)
        var withoutD = required
        withoutD.entities[0].attributes.removeLast()
        let empty = problems { _ = try directory.open(withoutD) }
        #expect(
            empty.first?.contains("Item.c must have a value now, but 1 objects have none") == true
        )
        #expect {
            try directory.open(schema(1, item()))
        } throws: { error in
            guard case RecordError.schemaTooNew(2, 1, _) = error else { return false }
            return true
        }
        let store = try directory.open(before)
        #expect(try store.snapshot().number == number)
        try store.close()
        withoutD.entities[0].attributes[2].defaultValue = .int(8)
        let filled = try directory.open(withoutD)
        let entity = try filled.schema.require("Item")
        let id = try #require(try filled.snapshot().fetchIDs(RecordQuery(entity: entity.id)).first)
        #expect(try filled.snapshot().row(entity.id, id)?.int(entity.column("c")) == 8)
        try filled.close()
    }

    @Test func `Relationships may gain an order and an inverse, but not change their kind`() throws
    {
        let directory = TestDirectory()
        let tag = EntityDescription(name: "Tag")
        var post = EntityDescription(
            name: "Post",
            relationships: [RelationshipDescription(name: "tags", target: "Tag", isToMany: true)]
        )
        var ids: [ObjectID] = []
        do {
            let store = try directory.open(schema(1, post, tag))
            let entity = try store.schema.require("Post")
            let tags = try #require(entity.relationship(named: "tags"))
            ids.append(try store.insert("Post"))
            for _ in 0..<3 { ids.append(try store.insert("Tag")) }
            _ = try store.write { transaction in
                for other in ids[1...].reversed() {
                    try transaction.addLink(entity, tags, from: ids[0], to: other)
                }
            }
            try store.close()
        }
        post.relationships[0].isOrdered = true
        post.relationships[0].inverse = "posts"
        var wide = tag
        wide.relationships = [
            RelationshipDescription(name: "posts", target: "Post", isToMany: true)
        ]
        do {
            let store = try directory.open(schema(2, post, wide))
            let entity = try store.schema.require("Post")
            let tags = try #require(entity.relationship(named: "tags"))
            let other = try store.schema.require("Tag")
            let posts = try #require(other.relationship(named: "posts"))
            let snapshot = try store.snapshot()
            #expect(Set(try snapshot.relatedIDs(entity, tags, of: ids[0])) == Set(ids[1...]))
            #expect(try snapshot.relatedIDs(other, posts, of: ids[2]) == [ids[0]])
            #expect(posts.inverse == "tags")
            _ = try store.write {
                try $0.setOrder(entity, tags, of: ids[0], [ids[3], ids[1], ids[2]])
            }
            #expect(
                try store.snapshot().relatedIDs(entity, tags, of: ids[0]) == [
                    ids[3], ids[1], ids[2],
                ]
            )
            try store.close()
        }
        wide.relationships[0].isToMany = false
        #expect(!problems { _ = try directory.open(schema(3, post, wide)) }.isEmpty)
    }

    @Test func `A schema that contradicts itself is refused with every reason`() throws {
        var city = Cities.city
        city.indexes.append(IndexDescription("nothing"))
        city.indexes.append(IndexDescription("tags"))
        city.attributes.append(AttributeDescription(name: "name", type: .text))
        city.attributes.append(
            AttributeDescription(name: "n", type: .int64, defaultValue: .text("1"))
        )
        city.relationships[0].inverse = "towns"
        city.relationships.append(RelationshipDescription(name: "x", target: "Nowhere"))
        let reasons = problems {
            _ = try Cities.store(schema(1, city, city, Cities.country, Cities.tag))
        }
        for part in [
            "no property nothing", "tags leads to many", "City.name is declared twice",
            "default of City.n is no Int64", "inverse towns, which Country lacks",
            "Nowhere, which is not declared", "entity City is declared twice",
        ] {
            #expect(reasons.contains { $0.contains(part) }, "\(part)")
        }
    }

    @Test func `An index keeps its entries when only its direction turns round`() throws {
        let directory = TestDirectory()
        var item = item(
            AttributeDescription(name: "a", type: .int64),
            AttributeDescription(name: "b", type: .int64)
        )
        item.indexes = [IndexDescription([.init("a"), .init("b", isDescending: true)])]
        try directory.open(schema(1, item)).close()
        item.indexes = [IndexDescription([.init("a", isDescending: true), .init("b")])]
        #expect(try RecordStore.planMigration(directory.location, schema: schema(1, item)).isEmpty)
        item.indexes = [IndexDescription([.init("a"), .init("b")])]
        #expect(
            try RecordStore.planMigration(directory.location, schema: schema(1, item)).map(
                \.description
            )
                == ["Item: build index (a, b)", "Item: drop index (a, b)"]
        )
    }

    @Test func `An old snapshot reads with its own schema`() throws {
        let store = try Cities.store()
        let city = try store.schema.require("City")
        let id = try store.insert("City", [("name", .text("x"))])
        let old = try store.snapshot()
        var changed = Cities.schema
        changed.version = 2
        changed.entities[1].attributes[0].name = "title"
        changed.entities[1].attributes[0].originalNames = ["name"]
        changed.entities[1].indexes[0] = IndexDescription("title")
        let stored = try #require(try store.record(old.storage.schema))
        let checked = try changed.checked()
        let resolution = try SchemaCatalog.resolve(checked, stored: stored)
        _ = try old.row(city.id, id)
        _ = try store.engine.write { transaction in
            try SchemaChange(resolution, stored, checked, RecordOptions())
                .apply(to: transaction, store.counters)
        }
        let new = try store.snapshot()
        #expect(old.schema.entity(city.id)?.attributes[0].name == "name")
        #expect(new.schema.entity(city.id)?.attributes[0].name == "title")
        let query = RecordQuery(
            entity: city.id,
            predicate: .compare(PropertyPath("title"), .equal, .text("x"))
        )
        #expect(try new.fetchIDs(query) == [id])
        #expect(throws: RecordError.self) { try old.fetchIDs(query) }
        #expect(new.cachedRow(city.id, id) == nil)
        // This store's own declaration is older now: it may read, not write.
        #expect(throws: RecordError.self) { try store.write { try $0.delete(city.id, id) } }
    }

    @Test func `A damaged schema record is refused or understood, never a trap`() throws {
        let bytes = try Cities.store().snapshot().storage.schema
        var refused = 0
        for index in bytes.indices {
            for value: UInt8 in [0, 1, 2, 4, 0x7F, 0xFF] {
                var changed = bytes
                changed[index] = value
                do {
                    let record = try SchemaRecord(decoding: changed)
                    let deriver = StoredDeriver(schema: try RecordSchema(record: record))
                    for entity in record.entities {
                        let row = RowCoding.encode([.text(String(repeating: "x", count: 600))])
                        var keys = EntryKeys()
                        try deriver.entries(
                            entity: entity.id,
                            object: ObjectID(1),
                            row: row.span,
                            changed: nil,
                            into: &keys
                        )
                        for index in 0..<keys.count {
                            #expect(keys.key(index).count <= IndexKeys.keyBytesMax)
                        }
                    }
                } catch {
                    refused += 1
                }
            }
        }
        #expect(refused > 100)
    }
}
