// Varve with large values, through the records layer and through objects: files beside the store
// above 100 KiB, else in the log.
//
// `usual` reads as the others do, without comparing the bytes with their digest; `best` stands for
// the careful way, which compares.

import BenchmarkHarness
import Foundation
import VarveObjects
import VarveTesting

final class VarveRecordBlobPeer: BlobPeer {
    private let records: RecordStore
    private let entity: EntityID
    private let column: ColumnID
    private let checksDigest: Bool
    private var ids: [ObjectID] = []

    init(blobDirectory: String, options: PeerOptions) throws {
        checksDigest = options.tuning == .best
        let description = EntityDescription(
            name: "Blob",
            attributes: [AttributeDescription(name: "bytes", type: .blob)]
        )
        records = try RecordStore.open(
            .file(directory: blobDirectory, name: "blobs"),
            schema: SchemaDescription(version: 1, entities: [description]),
            options: RecordOptions(options)
        )
        guard let blob = try records.schema.entity(named: "Blob"),
            let bytes = blob.attribute(named: "bytes")
        else { throw BenchmarkError("Varve: no entity Blob") }
        entity = blob.id
        column = bytes.column
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        let first = records.allocateObjectIDs(blobs.count).rawValue
        // Finished before the transaction begins; they stay until the commit names them.
        let pending = try blobs.map { blob in
            let writer = try records.engine.makeBlobWriter(externalLimit: 102_400)
            try writer.append(blob.bytes)
            return try writer.finish()
        }
        _ = try records.write { transaction in
            for (index, blob) in pending.enumerated() {
                let value = ColumnValue(column, .blob(blob.reference))
                try transaction.insert(entity, ObjectID(first + UInt64(index)), [value])
            }
        }
    }

    func prepareToReadBlobs(count: Int) throws {
        ids = try records.snapshot().fetchIDs(RecordQuery(entity: entity))
        guard ids.count == count else { throw BenchmarkError("\(ids.count) of \(count) IDs") }
    }

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        let snapshot = try records.snapshot()
        guard let row = try snapshot.row(entity, ids[Int(id) - 1]),
            case .blob(let reference) = try row.value(column),
            let reader = try snapshot.storage.blob(reference)
        else { throw BenchmarkError("Varve: no blob \(id)") }
        if checksDigest {
            try reader.forEachPiece { $0.withUnsafeBytes(body) }
        } else {
            // Piece by piece, as the handed-out pointers of LMDB: nobody needs it in one array.
            try reader.forEachPiece(of: 0..<reference.length) { $0.withUnsafeBytes(body) }
        }
    }

    func close() throws { try records.close() }
}

private enum BlobSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [StoredBlob.self] }
}

final class VarveObjectBlobPeer: BlobPeer {
    private let container: PersistentContainer
    private let checksDigest: Bool
    private var ids: [StoredBlob.ID] = []

    init(blobDirectory: String, options: PeerOptions) throws {
        checksDigest = options.tuning == .best
        container = try PersistentContainer.openNow(
            at: URL(fileURLWithPath: blobDirectory + "/blobs.varve"),
            schema: BlobSchema.self,
            options: ContainerOptions(options)
        )
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        let context = container.newContext()
        for blob in blobs {
            var writer = try context.makeBlob(for: StoredBlob.columns.bytes)
            try writer.append(contentsOf: blob.bytes)
            StoredBlob(in: context).bytes = try writer.finish()
        }
        try context.save()
    }

    func prepareToReadBlobs(count: Int) throws {
        ids = try container.newContext().fetchIDs(StoredBlob.all)
        guard ids.count == count else { throw BenchmarkError("\(ids.count) of \(count) IDs") }
    }

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        let object = try container.newContext().existingObject(with: ids[Int(id) - 1])
        guard let blob = object?.bytes else { throw BenchmarkError("Varve: no blob \(id)") }
        if checksDigest {
            try blob.readAll().withUnsafeBytes(body)
        } else {
            try blob.read(0..<blob.length).withUnsafeBytes(body)
        }
    }

    func close() throws { try container.closeNow() }
}
