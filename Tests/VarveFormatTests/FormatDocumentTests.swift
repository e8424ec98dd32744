// Format.md says what the code does: every table of it is compared with the constants.

import Testing
import VarveBase
import VarveRecords

@testable import VarveEngine
@testable import VarveFormat

@Suite struct FormatDocumentTests {
    private let document: FormatDocument

    init() throws { document = try FormatDocument() }

    /// A new table needs a test: its heading belongs here.
    static let compared: Set<String> = [
        "XXH64 primes", "XXH64 examples", "Block limits", "Row tags", "Row limits",
        "Row examples", "Key tags", "Key content", "Key decimal signs", "Key examples",
        "Schema constants", "Schema flags", "Attribute types", "Delete rules", "Blob names",
        // LogDocumentTests.swift
        "File header fields", "File header constants", "Frame header fields", "Frame constants",
        "Frame kinds", "Frame flags", "Commit record fields", "Changes", "New places",
        "Operations", "Page front fields", "Tree limits", "Value front fields", "Engine trees",
        "Blob places", "Lock file fields", "Lock bytes", "Counter file fields", "Counters",
        // Leaves/LeafDocumentTests.swift
        "Leaf front fields", "Leaf plan fields", "Leaf types", "Leaf specials", "Leaf codings",
        "Leaf limits", "Symbol set limits",
        // CompatibilityTests/VerdictTests.swift
        "Verdicts",
    ]

    @Test func everyTableIsCompared() {
        #expect(Set(document.tableNames) == Self.compared)
        #expect(document.tableNames.count == Self.compared.count)
    }

    @Test func theHashIsXXH64() throws {
        #expect(
            try document.table("XXH64 primes").numbers() == [
                "prime1": FrameHash.prime1, "prime2": FrameHash.prime2,
                "prime3": FrameHash.prime3, "prime4": FrameHash.prime4,
                "prime5": FrameHash.prime5,
            ]
        )
        for row in try document.table("XXH64 examples").rows {
            let input = try #require(row["Input"])
            let bytes = input == "(nothing)" ? [] : Array(input.utf8)
            let seed = try #require(FormatDocument.number(row["Seed"] ?? ""))
            let hash = try #require(FormatDocument.number(row["Hash"] ?? ""))
            #expect(FrameHash.xxh64(bytes, seed: seed) == hash, "\(input)")
        }
        #expect(
            try document.table("Block limits").numbers()
                == ["rawBytesMax": UInt64(BlockCompression.rawBytesMax)]
        )
    }

    @Test func rowTagsAndTheirBodiesAreThoseOfTheCode() throws {
        let table = try document.table("Row tags")
        let tags = try table.numbers()
        #expect(
            tags == [
                "absent": RowTag.absent, "null": RowTag.null, "false": RowTag.false,
                "true": RowTag.true, "zero": RowTag.zero, "one": RowTag.one,
                "int8": RowTag.int8, "int16": RowTag.int16, "int32": RowTag.int32,
                "int64": RowTag.int64, "float": RowTag.float, "double": RowTag.double,
                "date": RowTag.date, "uuid": RowTag.uuid, "decimal64": RowTag.decimal64,
                "decimal128": RowTag.decimal128, "reference32": RowTag.reference32,
                "reference64": RowTag.reference64, "blob": RowTag.blob,
                "outsideText": RowTag.outsideText, "outsideData": RowTag.outsideData,
                "textBase": RowTag.textBase, "dataBase": RowTag.dataBase,
            ]
        )
        let bodies = try table.numbers("Value", "Body bytes")
        for tag in UInt64(0)...33 {
            let size = bodies["\(tag)"].map(Int.init) ?? -1
            #expect(RowTag.bodySize(tag) == size, "tag \(tag)")
        }
        #expect(
            try document.table("Row limits").numbers() == [
                "columnsMax": UInt64(RowCoding.columnsMax),
                "outsidePrefixBytes": UInt64(RowTag.outsidePrefixBytes),
            ]
        )
    }

    @Test func rowExamplesAreWhatTheCodeWrites() throws {
        let decimal = DecimalValue(isNegative: true, exponent: -2, digits: [1, 2, 5])
        let rows: [String: [StoredValue?]] = [
            "null, true, absent, -2, \"hé\"": [.null, .bool(true), nil, .int(-2), .text("hé")],
            "0, 1, 300, data 07": [.int(0), .int(1), .int(300), .data([7])],
            "-1.25 as decimal": [.decimal(decimal)],
        ]
        let table = try document.table("Row examples")
        #expect(table.rows.count == rows.count)
        for example in table.rows {
            let name = try #require(example["Row"])
            let values = try #require(rows[name], "\(name)")
            #expect(try RowCoding.encode(values) == FormatDocument.bytes(example["Bytes"] ?? ""))
        }
    }

    @Test func keyTagsAreThoseOfTheCode() throws {
        #expect(
            try document.table("Key tags").numbers().mapValues(UInt8.init) == [
                "null": KeyCoding.nullTag, "false": KeyCoding.falseTag,
                "true": KeyCoding.trueTag, "int": KeyCoding.intTag,
                "float": KeyCoding.floatTag, "double": KeyCoding.doubleTag,
                "date": KeyCoding.dateTag, "text": KeyCoding.textTag,
                "data": KeyCoding.dataTag, "uuid": KeyCoding.uuidTag,
                "decimal": KeyCoding.decimalTag, "reference": KeyCoding.referenceTag,
                "blob": KeyCoding.blobTag,
            ]
        )
        #expect(
            try document.table("Key content").numbers() == [
                "contentEnd": UInt64(KeyCoding.contentEnd),
                "contentCut": UInt64(KeyCoding.contentCut),
                "escapedZero": UInt64(KeyCoding.escapedZero),
                "contentBytesMax": UInt64(KeyCoding.contentBytesMax),
            ]
        )
        #expect(
            try document.table("Key decimal signs").numbers().mapValues(UInt8.init) == [
                "negative": KeyCoding.decimalNegative, "zero": KeyCoding.decimalZero,
                "positive": KeyCoding.decimalPositive,
            ]
        )
    }

    @Test func keyExamplesAreWhatTheCodeWrites() throws {
        let decimal = DecimalValue(isNegative: false, exponent: -1, digits: [1, 2, 5])
        let keys: [String: (StoredValue, Bool)] = [
            "-1": (.int(-1), false), "\"a\", U+0000, \"b\"": (.text("a\0b"), false),
            "\"a\", downwards": (.text("a"), true), "1.0": (.double(1), false),
            "12.5 as decimal": (.decimal(decimal), false),
        ]
        let table = try document.table("Key examples")
        #expect(table.rows.count == keys.count)
        for example in table.rows {
            let name = try #require(example["Value"])
            let (value, descending) = try #require(keys[name], "\(name)")
            var key: [UInt8] = []
            KeyCoding.append(value, descending: descending, to: &key)
            #expect(try key == FormatDocument.bytes(example["Bytes"] ?? ""), "\(name)")
        }
    }

    @Test func schemaNumbersAreThoseOfTheCode() throws {
        #expect(
            try document.table("Schema constants").numbers() == [
                "layoutVersion": UInt64(SchemaRecord.layoutVersion),
                "derivationVersion": UInt64(SchemaRecord.derivationVersion),
                "entitiesMax": UInt64(SchemaRecord.entitiesMax),
                "indexesMax": UInt64(SchemaRecord.indexesMax),
                "nameBytesMax": UInt64(SchemaRecord.nameBytesMax),
                "defaultBytesMax": UInt64(SchemaRecord.defaultBytesMax),
            ]
        )
        let types = AttributeType.allCases.map { ($0.description, UInt64($0.rawValue)) }
        #expect(
            try document.table("Attribute types").numbers()
                == Dictionary(uniqueKeysWithValues: types)
        )
        let rules: [DeleteRule] = [.nullify, .cascade, .deny, .noAction]
        #expect(
            try document.table("Delete rules").numbers()
                == Dictionary(
                    uniqueKeysWithValues: rules.map { ("\($0)", UInt64($0.rawValue)) }
                )
        )
    }

    /// The flag bytes of a record with one attribute and one relationship.
    private func flags(
        attribute: (inout SchemaRecord.Attribute) -> Void = { _ in },
        relationship: (inout SchemaRecord.Relationship) -> Void = { _ in }
    ) throws -> [String: UInt8] {
        var attributes = [
            SchemaRecord.Attribute(
                column: ColumnID(0),
                name: "a",
                typeCode: 13,
                isOptional: false,
                defaultValue: .null,
                externalLimit: nil
            )
        ]
        var relationships = [
            SchemaRecord.Relationship(
                name: "r",
                target: EntityID(1),
                inverse: nil,
                isToMany: false,
                isOrdered: false,
                deleteRule: 1,
                links: .inverse
            )
        ]
        attribute(&attributes[0])
        relationship(&relationships[0])
        var record = SchemaRecord(version: 1)
        record.entities = [
            SchemaRecord.Entity(
                id: EntityID(1),
                name: "E",
                tree: TreeID(16),
                isHiddenLink: false,
                attributes: attributes,
                relationships: relationships
            )
        ]
        // Behind the record's front come number, name, tree, hidden, next column, count of
        // attributes, then column, name and type of the one.
        let bytes = record.encoded()
        let at = try #require(bytes.firstRange(of: [1, UInt8(ascii: "a"), 13])).upperBound
        // Behind the relationship's name comes its target.
        let to = try #require(bytes.firstRange(of: [1, UInt8(ascii: "r"), 1, 0])).upperBound
        return ["attribute": bytes[at], "relationship": bytes[to]]
    }

    @Test func schemaFlagsAreThoseOfTheCode() throws {
        let none = try flags()
        #expect(none == ["attribute": 0, "relationship": 0])
        let found: [String: [String: UInt8]] = [
            "optional": try flags(attribute: { $0.isOptional = true }),
            "externalLimit": try flags(attribute: { $0.externalLimit = 9 }),
            "toMany": try flags(relationship: { $0.isToMany = true }),
            "ordered": try flags(relationship: { $0.isOrdered = true }),
            "inverse": try flags(relationship: { $0.inverse = "back" }),
        ]
        let rows = try document.table("Schema flags").rows
        #expect(Set(rows.map { $0["Name"] ?? "" }) == Set(found.keys))
        for row in rows {
            let flags = try #require(found[row["Name"] ?? ""])
            let value = try #require(UInt8(row["Value"] ?? ""))
            for (kind, bits) in flags {
                #expect(bits == (kind == row["Of"] ? value : 0), "\(row)")
            }
        }
    }

    @Test func blobNamesAreThoseOfTheCode() throws {
        let names = try document.table("Blob names").rows.reduce(into: [:]) {
            $0[$1["Name"] ?? ""] = $1["Value"]
        }
        let prefix = BlobFiles.temporaryPrefix
        #expect(
            names == [
                "digestHexDigits": "\(BlobDigest(0, 0, 0, 0).hexText.utf8.count)",
                "temporaryPrefix": prefix, "temporaryHexDigits": "16",
            ]
        )
        #expect(BlobFiles.isTemporary(prefix + String(repeating: "a", count: 16)))
        #expect(!BlobFiles.isTemporary(prefix + String(repeating: "a", count: 15)))
    }
}
