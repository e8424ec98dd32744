// The new store of a salvage.
//
// Invariants
// - It has another name until it is whole, verified and closed; nothing is ever written over.
// - Rows are handed to the engine as an app hands them: it derives indexes, counts references and
//   places values anew, so nothing of the damaged store's pages gets into the new one.
// - Memory is one batch of rows and of small blobs.

import VarveBase
import VarveEngine
import VarveFormat
import VarveIO
import VarveRecords

/// Where a salvage writes, or where it would.
final class SalvageWriter {
    private struct Row {
        let entity: EntityID
        let object: ObjectID
        let bytes: [UInt8]
    }

    static let fileSuffix = ".varve"
    static let blobSuffix = ".varve-blobs"
    static let lockSuffix = ".varve-lock"

    private let directory: any StoreDirectory
    private let name: String
    private let temporary: String
    let store: RecordStore
    private let batchBytesMax: Int
    private var batch: [Row] = []
    private var blobs: [BlobReference: PendingBlob] = [:]
    private var batchBytes = 0

    /// Whether something has one of the names that a store would have.
    static func isTaken(
        _ name: String,
        in directory: any StoreDirectory
    ) throws(InspectionError) -> String? {
        for suffix in [fileSuffix, blobSuffix] {
            let isThere = try io { () throws(IOError) in try directory.exists(name + suffix) }
            if isThere { return name + suffix }
        }
        return nil
    }

    init(
        _ name: String,
        in directory: any StoreDirectory,
        identity: UUIDValue,
        objectIDsFrom: UInt64,
        batchBytesMax: Int
    ) throws(InspectionError) {
        if let taken = try Self.isTaken(name, in: directory) {
            throw InspectionError(.exists, "\(taken) is there already; nothing was written")
        }
        self.directory = directory
        self.name = name
        self.batchBytesMax = batchBytesMax
        temporary = name + ".recovering"
        if let taken = try Self.isTaken(temporary, in: directory) {
            throw InspectionError(
                .exists,
                "\(taken) is there already, perhaps of a recovery that did not end",
                hint: "remove it, or write to another name"
            )
        }
        var options = RecordOptions()
        options.engine.newStoreID = identity
        // IDs are never handed out again. A counter near its end is somebody's lie: it would leave
        // none.
        options.engine.newStoreFirstObjectID = min(objectIDsFrom, 1 << 60)
        options.engine.creator = "varve recover"
        options.engine.compactsAutomatically = false
        store = try records { [temporary] () throws(RecordError) in
            try RecordStore.openAsStored(
                .directory(directory, name: temporary),
                options: options
            )
        }
    }

    /// The stored schema, before any row.
    func begin(schema: [UInt8], version: UInt32) throws(InspectionError) {
        try write { transaction in
            try transaction.replaceSchema(schema, version: version)
        }
    }

    // MARK: Content

    func add(_ entity: EntityID, _ object: ObjectID, _ row: [UInt8]) throws(InspectionError) {
        batch.append(Row(entity: entity, object: object, bytes: row))
        batchBytes += row.count + 64
        if batchBytes > batchBytesMax { try flush() }
    }

    /// Whether the new store has a blob already.
    func has(_ reference: BlobReference) throws(InspectionError) -> Bool {
        if blobs[reference] != nil { return true }
        let store = store
        return try engine { () throws(EngineError) in
            try store.engine.snapshot().value(.blobs, reference.digest.bytes) != nil
        }
    }

    /// Adds a blob; false when what `read` hands over has another digest or length.
    func add(
        _ reference: BlobReference,
        externalLimit: UInt64?,
        _ read: ((([UInt8]) throws(EngineError) -> Void)) throws(EngineError) -> Void
    ) throws(InspectionError) -> Bool {
        let limit = externalLimit.flatMap { Int(exactly: $0) } ?? 102_400
        let store = store
        let blob = try engine { () throws(EngineError) in
            let writer = try store.engine.makeBlobWriter(externalLimit: limit)
            try read { piece throws(EngineError) in try writer.append(piece) }
            return try writer.finish()
        }
        guard blob.reference == reference else { return false }
        blobs[reference] = blob
        batchBytes += reference.length <= UInt64(limit) ? Int(reference.length) : 1024
        return true
    }

    func put(_ tree: TreeID, _ key: [UInt8], _ value: [UInt8]) throws(InspectionError) {
        try write { transaction in try transaction.put(tree, key, value) }
    }

    func flush() throws(InspectionError) {
        if batch.isEmpty { return }
        let rows = batch
        try write { transaction in
            for row in rows { try transaction.insert(row.entity, row.object, row: row.bytes) }
        }
        batch = []
        blobs = [:]
        batchBytes = 0
    }

    func write(_ body: (WriteTransaction) throws -> Void) throws(InspectionError) {
        do {
            _ = try store.engine.write(author: "recover", durability: .relaxed, body)
        } catch let error as EngineError {
            throw InspectionError(error)
        } catch let error as InspectionError {
            throw error
        } catch {
            throw InspectionError(.ioFailed, "\(error)")
        }
    }

    // MARK: The end

    /// Closes the store, checks all of it, and gives it its name.
    func finish(
        _ progress: (UInt64, Int) -> Bool
    ) throws(InspectionError) {
        try flush()
        let (store, directory, temporary, name) = (store, directory, temporary, name)
        try records { () throws(RecordError) in try store.close() }
        let observer = try StoreObserver.open(.directory(directory, name: temporary))
        let report = try observer.verify(level: .normal, progress: progress)
        guard report.isComplete else {
            throw InspectionError(
                .cancelled,
                "the recovery was ended before the new store was whole"
            )
        }
        guard report.isSound else {
            let problem = report.problems[0]
            throw InspectionError(
                .damaged,
                "the new store is not sound: \(problem.subject): \(problem.message)",
                place: problem.place
            )
        }
        try io { () throws(IOError) in
            if try directory.exists(temporary + Self.blobSuffix) {
                try directory.rename(
                    temporary + Self.blobSuffix,
                    to: name + Self.blobSuffix,
                    replacing: false
                )
            }
            try directory.rename(
                temporary + Self.fileSuffix,
                to: name + Self.fileSuffix,
                replacing: false
            )
            if try directory.exists(temporary + Self.lockSuffix) {
                try directory.remove(temporary + Self.lockSuffix)
            }
            do throws(IOError) { try directory.sync() } catch {
                // A later sync that succeeds would say nothing of these names.
                for suffix in [Self.fileSuffix, Self.blobSuffix] {
                    try? directory.rename(name + suffix, to: temporary + suffix, replacing: false)
                }
                throw error
            }
        }
    }

    /// Gives it up and removes what was written.
    func abandon() {
        blobs = [:]
        try? store.close()
        for suffix in [Self.fileSuffix, Self.lockSuffix] {
            try? directory.remove(temporary + suffix)
        }
        let folder = temporary + Self.blobSuffix
        guard (try? directory.exists(folder)) == true,
            let inside = try? directory.directory(folder, create: false),
            let names = try? inside.list()
        else { return }
        for name in names { try? inside.remove(name) }
    }
}

/// Runs calls of the system; their errors become this layer's.
func io<R>(_ body: () throws(IOError) -> R) throws(InspectionError) -> R {
    do throws(IOError) {
        return try body()
    } catch {
        throw InspectionError(error.isPermission ? .permission : .ioFailed, error.description)
    }
}
