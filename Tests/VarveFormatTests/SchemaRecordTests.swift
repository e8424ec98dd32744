// The stored schema: round trip, and refusal of bytes that are not one.

import Testing
import VarveBase
import VarveFormat

@Suite struct SchemaRecordTests {
    private var sample: SchemaRecord {
        var record = SchemaRecord(version: 3)
        record.revision = 2
        record.nextEntity = 3
        record.nextTree = 30
        var item = SchemaRecord.Entity(
            id: EntityID(1),
            name: "Item",
            tree: TreeID(16),
            isHiddenLink: false,
            nextColumn: 4
        )
        item.attributes = [
            .init(
                column: ColumnID(0),
                name: "title",
                typeCode: 13,
                isOptional: false,
                defaultValue: .text("none"),
                externalLimit: nil
            ),
            .init(
                column: ColumnID(2),
                name: "data",
                typeCode: 18,
                isOptional: true,
                defaultValue: .null,
                externalLimit: 102_400
            ),
        ]
        item.relationships = [
            .init(
                name: "parent",
                target: EntityID(1),
                inverse: "children",
                isToMany: false,
                isOrdered: false,
                deleteRule: 1,
                links: .column(ColumnID(3), index: TreeID(18))
            ),
            .init(
                name: "children",
                target: EntityID(1),
                inverse: "parent",
                isToMany: true,
                isOrdered: false,
                deleteRule: 2,
                links: .inverse
            ),
            .init(
                name: "tags",
                target: EntityID(1),
                inverse: nil,
                isToMany: true,
                isOrdered: true,
                deleteRule: 1,
                links: .rows(EntityID(2), side: 0)
            ),
        ]
        item.indexes = [
            .init(
                tree: TreeID(18),
                terms: [.init(column: ColumnID(3), isDescending: false)],
                isUnique: false
            ),
            .init(
                tree: TreeID(20),
                terms: [
                    .init(column: ColumnID(0), isDescending: true),
                    .init(column: ColumnID(3), isDescending: false),
                ],
                isUnique: true
            ),
        ]
        let hidden = SchemaRecord.Entity(
            id: EntityID(2),
            name: "Item.tags",
            tree: TreeID(22),
            isHiddenLink: true
        )
        record.entities = [item, hidden]
        return record
    }

    @Test func `A record survives encoding`() throws {
        let record = sample
        #expect(try SchemaRecord(decoding: record.encoded()) == record)
        let empty = SchemaRecord(version: 1)
        #expect(try SchemaRecord(decoding: empty.encoded()) == empty)
    }

    @Test func `No shortened or changed record traps`() {
        let bytes = sample.encoded()
        for count in 0..<bytes.count {
            #expect(throws: FormatError.self) {
                try SchemaRecord(decoding: Array(bytes[..<count]))
            }
        }
        for index in bytes.indices {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                var changed = bytes
                changed[index] = value
                _ = try? SchemaRecord(decoding: changed)
            }
        }
    }

    @Test func `A tree in use twice is refused`() {
        var record = sample
        record.entities[1].tree = TreeID(16)
        #expect(throws: FormatError.self) { try SchemaRecord(decoding: record.encoded()) }
    }

    /// Found by a fuzzer: keys that were cut went into the tree of an entity's rows.
    @Test func `The number after that of an index is its own, too`() throws {
        for tree: UInt32 in [17, 19, 21, 29] {
            var record = sample
            record.entities[1].tree = TreeID(tree)
            let isFree = tree == 17 || tree == 29
            let decoded = try? SchemaRecord(decoding: record.encoded())
            #expect((decoded != nil) == isFree, "rows in tree \(tree)")
        }
        for (index, tree) in [(0, UInt32(19)), (0, 21), (0, 15), (1, 21), (1, 29), (1, 30)] {
            var record = sample
            record.entities[0].indexes[index].tree = TreeID(tree)
            #expect(throws: FormatError.self, "index \(index) in tree \(tree)") {
                try SchemaRecord(decoding: record.encoded())
            }
        }
        var record = sample
        record.entities[0].indexes[1].tree = TreeID(28)
        #expect(try SchemaRecord(decoding: record.encoded()) == record)
        // The last number of all has none after it.
        record.nextTree = .max
        record.entities[0].indexes[1].tree = TreeID(.max - 1)
        #expect(throws: FormatError.self) { try SchemaRecord(decoding: record.encoded()) }
    }
}
