// What a schema leaves out is kept, unless somebody said that it goes; names are found again.

import Testing
import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

@Suite(.verified) struct SchemaRemovalTests {
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

    private let tag = EntityDescription(
        name: "Tag",
        attributes: [AttributeDescription(name: "name", type: .text, defaultValue: .text(""))]
    )
    private let note = EntityDescription(
        name: "Note",
        attributes: [
            AttributeDescription(name: "title", type: .text, defaultValue: .text("")),
            AttributeDescription(name: "rank", type: .int64, isOptional: true),
        ],
        relationships: [
            RelationshipDescription(name: "first", target: "Tag"),
            RelationshipDescription(name: "tags", target: "Tag", isToMany: true),
        ]
    )

    private func schema(_ version: UInt32, _ entities: EntityDescription...) -> SchemaDescription {
        SchemaDescription(version: version, entities: entities)
    }

    private func filled() throws -> (TestDirectory, CommitNumber) {
        let directory = TestDirectory()
        let store = try directory.open(schema(1, note, tag))
        let target = try store.insert("Tag", [("name", .text("red"))])
        let entity = try store.schema.require("Note")
        let tags = try #require(entity.relationship(named: "tags"))
        for number in 0..<3 {
            let id = try store.insert(
                "Note",
                [
                    ("title", .text("n\(number)")), ("rank", number == 2 ? .int(7) : .null),
                    ("first", number == 1 ? .reference(target) : .null),
                ]
            )
            if number == 0 {
                _ = try store.write { try $0.addLink(entity, tags, from: id, to: target) }
            }
        }
        let commit = try store.snapshot().number
        try store.close()
        return (directory, commit)
    }

    @Test func anEntityWithObjectsThatTheSchemaForgotIsKept() throws {
        let (directory, commit) = try filled()
        // The same version: an older build, or a list that forgot an entity.
        var alone = tag
        alone.attributes.append(AttributeDescription(name: "new", type: .int64, isOptional: true))
        for version: UInt32 in [1, 2] {
            let found = problems { _ = try directory.open(schema(version, alone)) }
            #expect(found.first?.hasPrefix("Note has 3 objects in the store") == true)
            #expect(found.contains { $0.contains("\"Note\" in the option `removing`") })
            // The whole difference is printed.
            #expect(found.contains { $0.contains("Tag: add attribute new") })
            #expect(
                !problems { _ = try directory.open(schema(version, alone), removing: ["Tag"]) }
                    .isEmpty
            )
        }
        let same = try directory.open(schema(1, note, tag))
        #expect(try same.snapshot().number == commit)
        #expect(try same.snapshot().count(same.query("Note")) == 3)
        try same.close()
        let store = try directory.open(schema(2, alone), removing: ["Note"])
        #expect(try store.schema.entity(named: "Note") == nil)
        try store.close()
        // The option may stay.
        try directory.open(schema(2, alone), removing: ["Note", "Nothing"]).close()
    }

    @Test func anEntityWithoutObjectsGoesByItself() throws {
        let directory = TestDirectory()
        try directory.open(schema(1, note, tag)).close()
        let store = try directory.open(schema(1, tag))
        #expect(try store.schema.entity(named: "Note") == nil)
        try store.close()
    }

    @Test(arguments: ["title", "rank", "first", "tags"])
    func aPropertyWithDataThatTheSchemaForgotIsKept(name: String) throws {
        let (directory, commit) = try filled()
        var changed = note
        changed.attributes.removeAll { $0.name == name }
        changed.relationships.removeAll { $0.name == name }
        let found = problems { _ = try directory.open(schema(2, changed, tag)) }
        #expect(found.first?.hasPrefix("Note.\(name) ") == true)
        let same = try directory.open(schema(1, note, tag))
        #expect(try same.snapshot().number == commit)
        try same.close()
        let store = try directory.open(schema(2, changed, tag), removing: ["Note.\(name)"])
        #expect(try store.snapshot().count(store.query("Note")) == 3)
        try store.close()
    }

    @Test func aPropertyThatNoObjectEverHadGoesByItself() throws {
        let directory = TestDirectory()
        let store = try directory.open(schema(1, note, tag))
        try store.insert("Note", [("title", .text("x"))])
        try store.close()
        var changed = note
        changed.attributes.removeAll { $0.name == "rank" }
        changed.relationships = []
        try directory.open(schema(2, changed, tag)).close()
    }

    @Test func whatLeadsToAnEntityThatWasNamedGoesWithIt() throws {
        let (directory, _) = try filled()
        var changed = note
        changed.relationships = []
        try directory.open(schema(2, changed), removing: ["Tag"]).close()
    }

    @Test func aNameIsFoundAgainOverAVersionThatWasSkipped() throws {
        let (directory, _) = try filled()
        let page = EntityDescription(
            name: "Page",
            originalNames: ["Sheet", "Note"],
            attributes: [
                AttributeDescription(
                    name: "headline",
                    originalNames: ["heading", "title"],
                    type: .text,
                    defaultValue: .text("")
                ),
                AttributeDescription(name: "rank", type: .int64, isOptional: true),
            ],
            relationships: [
                RelationshipDescription(
                    name: "main",
                    originalNames: ["leading", "first"],
                    target: "Tag"
                ),
                RelationshipDescription(
                    name: "labels",
                    originalNames: ["marks", "tags"],
                    target: "Tag",
                    isToMany: true
                ),
            ]
        )
        let store = try directory.open(schema(3, page, tag))
        let entity = try store.schema.require("Page")
        let snapshot = try store.snapshot()
        let ids = try snapshot.fetchIDs(store.query("Page"))
        let titles = try ids.map {
            try snapshot.row(entity.id, $0)?.text(entity.column("headline"))
        }
        #expect(titles == ["n0", "n1", "n2"])
        let labels = try #require(entity.relationship(named: "labels"))
        #expect(try snapshot.relatedIDs(entity, labels, of: ids[0]).count == 1)
        try store.close()
    }

    @Test func aSwapOfNamesIsRefused() throws {
        var swapped = note
        swapped.attributes[0].originalNames = ["rank"]
        let found = problems { _ = try Cities.store(schema(2, swapped, tag)) }
        #expect(found.first?.contains("Note.title was called rank") == true)
        var entities = [note, tag]
        entities[1].originalNames = ["Note"]
        let both = problems {
            _ = try Cities.store(SchemaDescription(version: 2, entities: entities))
        }
        #expect(both.first?.contains("entity Tag was called Note") == true)
    }

    @Test func aDefaultThatDiffersIsMadeForEachRow() throws {
        let (directory, _) = try filled()
        var changed = note
        changed.attributes.append(
            AttributeDescription(name: "serial", type: .int64, defaultValue: .int(0))
        )
        changed.attributes.append(
            AttributeDescription(name: "color", type: .int64, defaultValue: .int(5))
        )
        changed.uniqueConstraints = [UniqueConstraintDescription(["serial"])]
        let options = RecordOptions(
            varyingDefault: { entity, attribute in
                guard entity == "Note", attribute == "serial" else { return nil }
                var next: Int64 = 100
                return {
                    next += 1
                    return .int(next)
                }
            }
        )
        let store = try RecordStore.open(
            directory.location,
            schema: schema(2, changed, tag),
            options: options
        )
        let entity = try store.schema.require("Note")
        let snapshot = try store.snapshot()
        let rows = try snapshot.fetchIDs(store.query("Note")).map {
            try #require(try snapshot.row(entity.id, $0))
        }
        #expect(try rows.map { try $0.int(entity.column("serial")) } == [101, 102, 103])
        #expect(try rows.map { try $0.int(entity.column("color")) } == [5, 5, 5])
        try store.close()
    }
}
