// The description of a stored schema declares that schema.

import Testing
import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

@Suite(.verified) struct StoredDescriptionTests {
    private let links = SchemaDescription(
        version: 4,
        entities: [
            EntityDescription(
                name: "Note",
                attributes: [
                    AttributeDescription(name: "title", type: .text, defaultValue: .text("x")),
                    AttributeDescription(name: "rank", type: .int16, isOptional: true),
                    AttributeDescription(name: "picture", type: .blob, isOptional: true),
                ],
                relationships: [
                    RelationshipDescription(name: "folder", target: "Folder", inverse: "notes"),
                    RelationshipDescription(
                        name: "tags",
                        target: "Folder",
                        isToMany: true,
                        isOrdered: true,
                        deleteRule: .deny
                    ),
                ],
                indexes: [
                    IndexDescription([.init("rank", isDescending: true), .init("title")])
                ],
                uniqueConstraints: [UniqueConstraintDescription(["title", "folder"])]
            ),
            EntityDescription(
                name: "Folder",
                relationships: [
                    RelationshipDescription(
                        name: "notes",
                        target: "Note",
                        inverse: "folder",
                        isToMany: true,
                        deleteRule: .cascade
                    )
                ]
            ),
        ]
    )

    @Test func `Declared again, it changes nothing`() throws {
        for schema in [Cities.schema, links] {
            let directory = TestDirectory()
            let store = try directory.open(schema)
            let record = try #require(try store.record(store.engine.snapshot().schema))
            let described = try SchemaDescription(record).checked()
            #expect(try SchemaCatalog.resolve(described, stored: record).record == record)
            #expect(SchemaDifference(from: schema, to: described).isEmpty)
            try store.close()
        }
    }
}
