// Payload of a DELTA frame after the commit record: where new values lie, then row changes.
//
// Invariants
// - Replaying the operations on the state before gives the state after: index entries and blob
//   reference counts follow from rows and schema and are not logged.
// - Places come first, so that a replay knows them when it meets their rows.
// Format.md, chapter "Row changes".

public import VarveBase

/// Where a value that is too large for its row was put by this commit.
public enum NewPlace: Hashable, Sendable {
    /// A `String` or `Data` of one row's column, in a VALUE frame.
    case largeValue(entity: EntityID, object: ObjectID, column: ColumnID, place: ValuePlace)
    /// A small blob in a VALUE frame.
    case blobFrame(BlobReference, ValuePlace)
    /// A large blob in a file of its own.
    case blobFile(BlobReference)

    static let largeValueTag: UInt8 = 1
    static let blobFrameTag: UInt8 = 2
    static let blobFileTag: UInt8 = 3
}

/// One row change, or one change of a fact in the catalog.
public enum DeltaOperation: Hashable, Sendable {
    /// A new row.
    case insert(entity: EntityID, object: ObjectID, row: [UInt8])
    /// New values for some columns, in the encoding of `RowPatch`.
    case update(entity: EntityID, object: ObjectID, patch: [UInt8])
    /// A row that goes.
    case delete(entity: EntityID, object: ObjectID)
    /// A fact in a tree that holds no rows.
    case put(tree: TreeID, key: [UInt8], value: [UInt8])
    /// A fact that goes.
    case remove(tree: TreeID, key: [UInt8])

    static let insertTag: UInt8 = 1
    static let updateTag: UInt8 = 2
    static let deleteTag: UInt8 = 3
    static let putTag: UInt8 = 4
    static let removeTag: UInt8 = 5
}

/// Encoding of places and operations.
public enum DeltaOps {
    /// Longest key of any tree, in bytes.
    public static let keyBytesMax = 1024

    /// Appends the number of places and each place.
    public static func append(places: [NewPlace], to writer: inout ByteWriter) {
        writer.count(places.count)
        for place in places {
            switch place {
            case .largeValue(let entity, let object, let column, let place):
                writer.u8(NewPlace.largeValueTag)
                writer.varint(UInt64(entity.rawValue))
                writer.varint(object.rawValue)
                writer.varint(UInt64(column.rawValue))
                place.append(to: &writer)
            case .blobFrame(let reference, let place):
                writer.u8(NewPlace.blobFrameTag)
                append(reference, to: &writer)
                place.append(to: &writer)
            case .blobFile(let reference):
                writer.u8(NewPlace.blobFileTag)
                append(reference, to: &writer)
            }
        }
    }

    /// Appends one operation.
    public static func append(_ operation: DeltaOperation, to writer: inout ByteWriter) {
        switch operation {
        case .insert(let entity, let object, let row):
            writer.u8(DeltaOperation.insertTag)
            writer.varint(UInt64(entity.rawValue))
            writer.varint(object.rawValue)
            writer.sizedBytes(row)
        case .update(let entity, let object, let patch):
            writer.u8(DeltaOperation.updateTag)
            writer.varint(UInt64(entity.rawValue))
            writer.varint(object.rawValue)
            writer.sizedBytes(patch)
        case .delete(let entity, let object):
            writer.u8(DeltaOperation.deleteTag)
            writer.varint(UInt64(entity.rawValue))
            writer.varint(object.rawValue)
        case .put(let tree, let key, let value):
            writer.u8(DeltaOperation.putTag)
            writer.varint(UInt64(tree.rawValue))
            writer.sizedBytes(key)
            writer.sizedBytes(value)
        case .remove(let tree, let key):
            writer.u8(DeltaOperation.removeTag)
            writer.varint(UInt64(tree.rawValue))
            writer.sizedBytes(key)
        }
    }

    /// Reads the places of a frame at `offset`; their frames must lie below it.
    public static func decodePlaces(
        _ reader: inout ByteReader,
        below offset: FileOffset
    ) throws(FormatError) -> [NewPlace] {
        let count = try reader.count("place count", limit: reader.remaining / 4)
        var places: [NewPlace] = []
        places.reserveCapacity(count)
        for _ in 0..<count {
            let tag = try reader.u8("place")
            switch tag {
            case NewPlace.largeValueTag:
                let entity = try entity(&reader)
                let object = try object(&reader)
                let column = try reader.varint("column")
                guard let column = UInt16(exactly: column) else {
                    throw reader.error("column", "\(column)", "at most 65535")
                }
                places.append(
                    .largeValue(
                        entity: entity,
                        object: object,
                        column: ColumnID(column),
                        place: try ValuePlace(from: &reader, below: offset)
                    )
                )
            case NewPlace.blobFrameTag:
                let reference = try blob(&reader)
                places.append(.blobFrame(reference, try ValuePlace(from: &reader, below: offset)))
            case NewPlace.blobFileTag:
                places.append(.blobFile(try blob(&reader)))
            default:
                throw reader.error("place", "\(tag)", "1 to 3")
            }
        }
        return places
    }

    /// Reads the next operation.
    public static func decodeOperation(
        _ reader: inout ByteReader
    ) throws(FormatError) -> DeltaOperation {
        let tag = try reader.u8("operation")
        switch tag {
        case DeltaOperation.insertTag:
            let entity = try entity(&reader)
            let object = try object(&reader)
            let row = try reader.sizedBytes("row", limit: reader.remaining)
            return .insert(entity: entity, object: object, row: row)
        case DeltaOperation.updateTag:
            let entity = try entity(&reader)
            let object = try object(&reader)
            let patch = try reader.sizedBytes("patch", limit: reader.remaining)
            return .update(entity: entity, object: object, patch: patch)
        case DeltaOperation.deleteTag:
            let entity = try entity(&reader)
            return .delete(entity: entity, object: try object(&reader))
        case DeltaOperation.putTag:
            let tree = try tree(&reader)
            let key = try reader.sizedBytes("key", limit: keyBytesMax)
            let value = try reader.sizedBytes("value", limit: reader.remaining)
            return .put(tree: tree, key: key, value: value)
        case DeltaOperation.removeTag:
            let tree = try tree(&reader)
            return .remove(tree: tree, key: try reader.sizedBytes("key", limit: keyBytesMax))
        default:
            throw reader.error("operation", "\(tag)", "1 to 5")
        }
    }

    /// Object IDs are below this: what counts on from one never overflows.
    public static let objectsEnd: UInt64 = 1 << 62

    /// IDs of objects that are made are below this: the counter is behind them and below 2^62.
    public static let newObjectsEnd = objectsEnd - 1

    private static func object(_ reader: inout ByteReader) throws(FormatError) -> ObjectID {
        let number = try reader.varint("object")
        guard number < objectsEnd else { throw reader.error("object", "\(number)", "below 2^62") }
        return ObjectID(number)
    }

    private static func entity(_ reader: inout ByteReader) throws(FormatError) -> EntityID {
        let number = try reader.varint("entity")
        guard let entity = UInt16(exactly: number) else {
            throw reader.error("entity", "\(number)", "at most 65535")
        }
        return EntityID(entity)
    }

    private static func tree(_ reader: inout ByteReader) throws(FormatError) -> TreeID {
        let number = try reader.varint("tree")
        guard let tree = UInt32(exactly: number) else {
            throw reader.error("tree", "\(number)", "at most 4294967295")
        }
        return TreeID(tree)
    }

    private static func append(_ reference: BlobReference, to writer: inout ByteWriter) {
        let (first, second, third, fourth) = reference.digest.words
        for word in [first, second, third, fourth] { writer.bigEndian64(word) }
        writer.varint(reference.length)
    }

    private static func blob(_ reader: inout ByteReader) throws(FormatError) -> BlobReference {
        let first = try reader.u64("digest").byteSwapped
        let second = try reader.u64("digest").byteSwapped
        let third = try reader.u64("digest").byteSwapped
        let fourth = try reader.u64("digest").byteSwapped
        return BlobReference(
            digest: BlobDigest(first, second, third, fourth),
            length: try reader.varint("blob length")
        )
    }
}
