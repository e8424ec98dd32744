// The schema record as bytes (Format.md, "The schema record").
//
// Invariants
// - Every count is compared with a limit and with the bytes left before anything is reserved.
// - Unknown flags and storage kinds are damage. Attribute types and delete rules are numbers that
//   the records layer knows; it rejects those that it does not.

import VarveBase

extension SchemaRecord {
    /// Encodes the record. It must pass `check`.
    public func encode() -> [UInt8] {
        var writer = ByteWriter(capacity: 256)
        writer.u8(Self.encodingVersion)
        writer.varint(UInt64(version))
        writer.varint(UInt64(nextEntity.rawValue))
        writer.varint(UInt64(nextTree.rawValue))
        writer.count(entities.count)
        for entity in entities { Self.encode(entity, &writer) }
        return writer.bytes
    }

    /// Decodes and checks a record.
    public static func decode(_ bytes: [UInt8]) throws(FormatError) -> SchemaRecord {
        guard bytes.count <= bytesMax else {
            throw error("length", "\(bytes.count)", "at most \(bytesMax)")
        }
        var reader = ByteReader(bytes, place: "schema")
        let encoding = try reader.u8("encoding version")
        guard encoding == encodingVersion else {
            throw error("encoding version", "\(encoding)", "\(encodingVersion)")
        }
        var record = SchemaRecord(version: try number(&reader, "schema version"))
        record.nextEntity = EntityID(try number(&reader, "next entity"))
        record.nextTree = TreeID(try number(&reader, "next tree"))
        let count = try reader.count("entity count", limit: entitiesMax)
        for _ in 0..<count { record.entities.append(try decodeEntity(&reader)) }
        try reader.finish()
        try record.check()
        return record
    }

    // MARK: Writing

    private static func encode(_ entity: Entity, _ writer: inout ByteWriter) {
        writer.varint(UInt64(entity.id.rawValue))
        writer.sizedText(entity.name)
        writer.varint(UInt64(entity.tree.rawValue))
        writer.u8(entity.isHiddenLink ? hiddenLinkFlag : 0)
        writer.varint(UInt64(entity.nextColumn.rawValue))
        writer.count(entity.columns.count)
        for column in entity.columns { encode(column, &writer) }
        writer.count(entity.relationships.count)
        for relationship in entity.relationships { encode(relationship, &writer) }
        writer.count(entity.indexes.count)
        for index in entity.indexes { encode(index, &writer) }
    }

    private static func encode(_ column: Column, _ writer: inout ByteWriter) {
        writer.varint(UInt64(column.id.rawValue))
        writer.sizedText(column.name)
        writer.u8(column.typeCode)
        let limitFlag = column.externalLimit == nil ? 0 : externalLimitFlag
        writer.u8((column.isOptional ? optionalFlag : 0) | limitFlag)
        writer.sizedBytes(RowCoding.encode([column.defaultValue]))
        if let limit = column.externalLimit { writer.varint(limit) }
    }

    private static func encode(_ relationship: Relationship, _ writer: inout ByteWriter) {
        writer.sizedText(relationship.name)
        writer.varint(UInt64(relationship.target.rawValue))
        writer.sizedText(relationship.inverse ?? "")
        writer.u8(
            (relationship.isToMany ? toManyFlag : 0) | (relationship.isOrdered ? orderedFlag : 0)
        )
        writer.u8(relationship.deleteRule)
        switch relationship.storage {
        case .column(let column, let index):
            writer.u8(columnStorage)
            writer.varint(UInt64(column.rawValue))
            writer.varint(UInt64(index.rawValue))
        case .inverseColumn(let entity, let column, let index):
            writer.u8(inverseColumnStorage)
            writer.varint(UInt64(entity.rawValue))
            writer.varint(UInt64(column.rawValue))
            writer.varint(UInt64(index.rawValue))
        case .link(let link):
            writer.u8(linkStorage)
            writer.varint(UInt64(link.entity.rawValue))
            writer.varint(UInt64(link.owner.rawValue))
            writer.varint(UInt64(link.target.rawValue))
            writer.varint(UInt64(link.position.rawValue))
            writer.varint(UInt64(link.ownerIndex.rawValue))
            writer.varint(UInt64(link.targetIndex.rawValue))
        }
    }

    private static func encode(_ index: Index, _ writer: inout ByteWriter) {
        writer.varint(UInt64(index.tree.rawValue))
        writer.u8(index.isUnique ? uniqueFlag : 0)
        writer.varint(UInt64(index.derivation))
        writer.count(index.terms.count)
        for term in index.terms {
            writer.varint(UInt64(term.column.rawValue))
            writer.u8(term.isDescending ? 1 : 0)
        }
    }

    // MARK: Reading

    private static func decodeEntity(_ reader: inout ByteReader) throws(FormatError) -> Entity {
        var entity = Entity(
            id: EntityID(try number(&reader, "entity number")),
            name: try reader.sizedText("entity name", limit: nameBytesMax),
            tree: TreeID(try number(&reader, "entity tree"))
        )
        entity.isHiddenLink = try flags(&reader, hiddenLinkFlag) != 0
        entity.nextColumn = ColumnID(try number(&reader, "next column"))
        let columns = try reader.count("column count", limit: RowCoding.columnsMax)
        for _ in 0..<columns { entity.columns.append(try decodeColumn(&reader)) }
        let relationships = try reader.count("relationship count", limit: relationshipsMax)
        for _ in 0..<relationships {
            entity.relationships.append(try decodeRelationship(&reader))
        }
        let indexes = try reader.count("index count", limit: indexesMax)
        for _ in 0..<indexes { entity.indexes.append(try decodeIndex(&reader)) }
        return entity
    }

    private static func decodeColumn(_ reader: inout ByteReader) throws(FormatError) -> Column {
        var column = Column(
            id: ColumnID(try number(&reader, "column number")),
            name: try reader.sizedText("column name", limit: nameBytesMax),
            typeCode: try reader.u8("column type")
        )
        let flags = try flags(&reader, optionalFlag | externalLimitFlag)
        column.isOptional = flags & optionalFlag != 0
        let row = try RowView(try reader.sizedBytes("default value", limit: defaultBytesMax))
        guard row.columnCount == 1, let value = try row.value(ColumnID(0)) else {
            throw reader.error("default value", "\(row.columnCount) columns", "one value")
        }
        column.defaultValue = value
        if flags & externalLimitFlag != 0 {
            column.externalLimit = try reader.varint("external limit")
        }
        return column
    }

    private static func decodeRelationship(
        _ reader: inout ByteReader
    ) throws(FormatError) -> Relationship {
        let name = try reader.sizedText("relationship name", limit: nameBytesMax)
        let target = EntityID(try number(&reader, "relationship target"))
        let inverse = try reader.sizedText("relationship inverse", limit: nameBytesMax)
        let flags = try flags(&reader, toManyFlag | orderedFlag)
        let deleteRule = try reader.u8("delete rule")
        return Relationship(
            name: name,
            target: target,
            inverse: inverse.isEmpty ? nil : inverse,
            isToMany: flags & toManyFlag != 0,
            isOrdered: flags & orderedFlag != 0,
            deleteRule: deleteRule,
            storage: try decodeStorage(&reader)
        )
    }

    private static func decodeStorage(
        _ reader: inout ByteReader
    ) throws(FormatError) -> Storage {
        let kind = try reader.u8("relationship storage")
        switch kind {
        case columnStorage:
            return .column(
                ColumnID(try number(&reader, "column")),
                index: TreeID(try number(&reader, "index"))
            )
        case inverseColumnStorage:
            return .inverseColumn(
                EntityID(try number(&reader, "entity")),
                ColumnID(try number(&reader, "column")),
                index: TreeID(try number(&reader, "index"))
            )
        case linkStorage:
            return .link(
                Link(
                    entity: EntityID(try number(&reader, "link entity")),
                    owner: ColumnID(try number(&reader, "link owner")),
                    target: ColumnID(try number(&reader, "link target")),
                    position: ColumnID(try number(&reader, "link position")),
                    ownerIndex: TreeID(try number(&reader, "link owner index")),
                    targetIndex: TreeID(try number(&reader, "link target index"))
                )
            )
        default: throw reader.error("relationship storage", "\(kind)", "1, 2 or 3")
        }
    }

    private static func decodeIndex(_ reader: inout ByteReader) throws(FormatError) -> Index {
        var index = Index(tree: TreeID(try number(&reader, "index tree")), terms: [])
        index.isUnique = try flags(&reader, uniqueFlag) != 0
        index.derivation = try number(&reader, "derivation version")
        let terms = try reader.count("index terms", limit: termsMax)
        for _ in 0..<terms {
            let column = ColumnID(try number(&reader, "index column"))
            index.terms.append(
                Term(column: column, isDescending: try flags(&reader, 1) != 0)
            )
        }
        return index
    }

    private static func flags(
        _ reader: inout ByteReader,
        _ known: UInt8
    ) throws(FormatError) -> UInt8 {
        let flags = try reader.u8("flags")
        guard flags & ~known == 0 else {
            throw reader.error("flags", "\(flags)", "bits of \(known)")
        }
        return flags
    }

    private static func number<T: FixedWidthInteger & UnsignedInteger>(
        _ reader: inout ByteReader,
        _ field: StaticString
    ) throws(FormatError) -> T {
        let value = try reader.varint(field)
        guard let number = T(exactly: value) else {
            throw reader.error(field, "\(value)", "at most \(T.max)")
        }
        return number
    }
}
