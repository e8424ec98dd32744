// What a store should hold, kept outside of the disk that fails.

import VarveTesting

/// The rows of one commit.
struct Model: Equatable {
    struct Item: Equatable {
        var title: String
        var rank: Int64
        var code: Int64?
        var body: String?
        var picture: BlobReference?
        var folder: UInt64?
    }
    var items: [UInt64: Item] = [:]
    var folders: [UInt64: String] = [:]
}

/// The contents of blobs: made from a size and a letter, so that the same ones meet again.
enum Picture {
    static let externalLimit = 500
    static let sizes = [40, 90, 420, 700, 1400]

    static func bytes(size: Int, letter: UInt8) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) &+ letter }
    }
}

/// The schema of the campaign's stores: indexes, a constraint, a relationship, large values, blobs.
enum Library {
    static let description = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "Folder",
                attributes: [AttributeDescription(name: "title", type: .text)],
                relationships: [
                    RelationshipDescription(
                        name: "items",
                        target: "Item",
                        inverse: "folder",
                        isToMany: true
                    )
                ],
                uniqueConstraints: [UniqueConstraintDescription(["title"])]
            ),
            EntityDescription(
                name: "Item",
                attributes: [
                    AttributeDescription(name: "title", type: .text),
                    AttributeDescription(name: "rank", type: .int64),
                    AttributeDescription(name: "code", type: .int64, isOptional: true),
                    AttributeDescription(name: "body", type: .text, isOptional: true),
                    AttributeDescription(
                        name: "picture",
                        type: .blob,
                        isOptional: true,
                        externalLimit: UInt64(Picture.externalLimit)
                    ),
                ],
                relationships: [
                    RelationshipDescription(name: "folder", target: "Folder", inverse: "items")
                ],
                indexes: [IndexDescription("title"), IndexDescription("rank", "title")],
                uniqueConstraints: [UniqueConstraintDescription(["code"])]
            ),
        ]
    )
}

/// The columns of an open store.
struct Columns {
    let item, folder: RecordEntity
    let title, rank, code, body, picture, inFolder, folderTitle: ColumnID

    init(_ store: RecordStore) throws {
        let schema = try store.schema
        func entity(_ name: String) throws -> RecordEntity {
            guard let entity = schema.entity(named: name) else {
                throw RecordError.unknownEntity(name)
            }
            return entity
        }
        func column(_ entity: RecordEntity, _ name: String) throws -> ColumnID {
            if let attribute = entity.attribute(named: name) { return attribute.column }
            if case .column(let column, _)? = entity.relationship(named: name)?.storage {
                return column
            }
            throw RecordError.unknownProperty(entity: entity.name, property: name)
        }
        item = try entity("Item")
        folder = try entity("Folder")
        title = try column(item, "title")
        rank = try column(item, "rank")
        code = try column(item, "code")
        body = try column(item, "body")
        picture = try column(item, "picture")
        inFolder = try column(item, "folder")
        folderTitle = try column(folder, "title")
    }

    func values(_ item: Model.Item) -> [ColumnValue] {
        [
            ColumnValue(title, .text(item.title)), ColumnValue(rank, .int(item.rank)),
            ColumnValue(code, item.code.map { .int($0) } ?? .null),
            ColumnValue(body, item.body.map { .text($0) } ?? .null),
            ColumnValue(picture, item.picture.map { .blob($0) } ?? .null),
            ColumnValue(inFolder, item.folder.map { .reference(ObjectID($0)) } ?? .null),
        ]
    }
}

extension Model {
    /// Why a snapshot does not hold exactly this; nil when it does.
    ///
    /// - Parameter contents: the bytes of every blob there ever was.
    /// - Throws: what reading throws.
    func difference(
        _ snapshot: RecordSnapshot,
        _ columns: Columns,
        _ contents: [BlobReference: [UInt8]]
    ) throws -> String? {
        let folderIDs = try snapshot.fetchIDs(RecordQuery(entity: columns.folder.id))
        if Set(folderIDs.map(\.rawValue)) != Set(folders.keys) {
            return "\(folderIDs.count) folders, not \(folders.count)"
        }
        for (id, row) in zip(folderIDs, try snapshot.rows(columns.folder.id, folderIDs)) {
            guard let row, case .text(let title) = try row.value(columns.folderTitle),
                title == folders[id.rawValue]
            else { return "folder \(id.rawValue) is another one" }
        }
        let itemIDs = try snapshot.fetchIDs(RecordQuery(entity: columns.item.id))
        if Set(itemIDs.map(\.rawValue)) != Set(items.keys) {
            return "\(itemIDs.count) items, not \(items.count)"
        }
        for (id, row) in zip(itemIDs, try snapshot.rows(columns.item.id, itemIDs)) {
            guard let row, let item = items[id.rawValue] else {
                return "item \(id.rawValue) is missing"
            }
            for expected in columns.values(item) {
                guard try snapshot.value(of: row, expected.column) == expected.value else {
                    return "item \(id.rawValue), column \(expected.column.rawValue)"
                }
            }
            guard let picture = item.picture else { continue }
            guard let bytes = try snapshot.storage.blob(picture)?.readAll() else {
                return "item \(id.rawValue): its blob is not there"
            }
            if bytes != contents[picture] { return "item \(id.rawValue): its blob is another one" }
        }
        return nil
    }
}
