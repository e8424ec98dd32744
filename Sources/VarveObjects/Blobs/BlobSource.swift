// Where the bytes of a blob handle come from.
//
// Invariants
// - A source keeps the bytes alive: a snapshot pins its commit, a pending blob its file.

import Synchronization
import VarveBase
import VarveEngine
import VarveRecords

/// What keeps a blob's bytes and finds them.
struct BlobSource: Sendable {
    enum Keeper: Sendable {
        case snapshot(RecordSnapshot)
        case pending(PendingBlob)
        /// Values of an earlier commit: it is looked for when bytes are read, and held only then.
        case past(CommitNumber)
        /// What a stage of a migration began with.
        case frozen(FrozenState)
        /// No commit can be read, as in a closed container.
        case nothing
    }
    let keeper: Keeper
    let container: PersistentContainer

    /// For an object that outlived its context: the newest commit, if that still names the blob.
    static func newest(of container: PersistentContainer) -> BlobSource {
        let snapshot = try? container.newestSnapshot(for: PinOwner(.blob))
        return BlobSource(
            keeper: snapshot.map { .snapshot($0) } ?? .nothing,
            container: container
        )
    }

    /// The commit of a source that names one.
    func storage() throws(EngineError) -> Snapshot? {
        switch keeper {
        case .snapshot(let snapshot): snapshot.storage
        case .past(let commit):
            try container.store.engine.snapshot(at: commit, for: PinOwner(.blob))
        case .pending, .frozen, .nothing: nil
        }
    }

    func open(_ reference: BlobReference) throws(StoreError) -> BlobReader {
        try container.checkOpen()
        let reader: BlobReader?
        do throws(EngineError) {
            switch keeper {
            case .snapshot, .past: reader = try storage()?.blob(reference)
            case .pending(let pending): reader = try pending.open()
            case .frozen(let state): reader = try state.blob(reference)
            case .nothing: reader = nil
            }
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
        guard let reader else { throw Blob.missing(container.place) }
        return reader
    }

    func reading(
        _ body: () throws(EngineError) -> [UInt8]
    ) throws(StoreError) -> [UInt8] {
        try container.checkOpen()
        do throws(EngineError) {
            let bytes = try body()
            container.counters.blobBytesRead.add(bytes.count, ordering: .relaxed)
            return bytes
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
    }

    func reading(byteCount: Int, _ body: () throws(EngineError) -> Void) throws(StoreError) {
        try container.checkOpen()
        do throws(EngineError) {
            try body()
            container.counters.blobBytesRead.add(byteCount, ordering: .relaxed)
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
    }
}

extension ManagedObjectContext {
    /// Blobs of the commit that the context reads.
    var blobSource: BlobSource {
        guard (try? currentSnapshot()) != nil, let snapshot = snapshotForBlobs() else {
            return BlobSource(keeper: .nothing, container: container)
        }
        return BlobSource(keeper: .snapshot(snapshot), container: container)
    }

    /// A handle on a blob that a property of this context names.
    func blob(for reference: BlobReference) -> Blob {
        unnamed(reference) ?? Blob(reference: reference, source: blobSource)
    }

    /// A blob that the commit which the context reads may not name: not yet, or not any more.
    private func unnamed(_ reference: BlobReference) -> Blob? {
        if let pending = pendingBlobs[reference] ?? savedBlobs[reference] { return pending }
        if let kept = keptValues.blob(reference) {
            let source = BlobSource(keeper: .pending(kept), container: container)
            return Blob(reference: reference, source: source)
        }
        return leaving.isEmpty ? nil : leftBlob(reference)
    }

    /// A blob of an old row, which an observer reads while the context moves.
    private func leftBlob(_ reference: BlobReference) -> Blob? {
        func has(_ commit: RecordSnapshot?) -> Bool {
            (try? commit?.storage.blob(reference)) ?? nil != nil
        }
        if has(snapshot) { return nil }
        guard let left = leaving.first(where: has) else { return nil }
        let held = left.held(for: PinOwner(.blob, label: core.registry.label))
        let source = BlobSource(keeper: .snapshot(held), container: container)
        return Blob(reference: reference, source: source)
    }

    /// Those of the blobs in `values` that the commit may not name.
    func pendingBlobs(in values: [StoredValue]) -> [BlobReference: Blob] {
        if pendingBlobs.isEmpty, savedBlobs.isEmpty, keptValues.isEmpty, leaving.isEmpty {
            return [:]
        }
        var found: [BlobReference: Blob] = [:]
        for case .blob(let reference) in values { found[reference] = unnamed(reference) }
        return found
    }

    /// Keeps the bytes of the blobs that a row has: others may have deleted it, and a save that
    /// writes it anew names them once more. A small one lies in a page, which goes with its row.
    func keepBlobs(of object: any ManagedObject, at commit: RecordSnapshot) throws(StoreError) {
        guard let row = object.storage.row else { return }
        for property in object.storage.model.properties {
            guard property.attribute?.type == .blob, let column = property.column else { continue }
            let value = try container.translating { () throws(RecordError) in
                try row.value(column)
            }
            guard case .blob(let reference) = value else { continue }
            try keepBlob(reference, at: commit)
        }
    }

    private func keepBlob(
        _ reference: BlobReference,
        at commit: RecordSnapshot
    ) throws(StoreError) {
        if pendingBlobs[reference] != nil { return }
        do throws(EngineError) {
            guard let pending = try commit.storage.adopt(reference) else { return }
            let source = BlobSource(keeper: .pending(pending), container: container)
            pendingBlobs[reference] = Blob(reference: reference, source: source)
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
    }

    /// Keeps a blob's bytes until the save that names it; false: it cannot be had, and the next
    /// save says so.
    func keepPending(_ blob: Blob, for object: any ManagedObject, _ slot: Int) -> Bool {
        guard let source = blob.source else { return true }
        guard source.container === container else {
            refuse(
                object,
                slot,
                StoreError(
                    .crossContext,
                    "a blob of another container was assigned",
                    place: .init(store: container.place, object: object.objectID),
                    suggestion: "Copy its bytes: context.makeBlob()."
                )
            )
            return false
        }
        switch source.keeper {
        case .pending: pendingBlobs[blob.reference] = blob
        case .nothing, .frozen: break
        case .snapshot, .past:
            if has(.assignedBlobsAreNotKept) { break }
            do throws(EngineError) {
                guard let pending = try source.storage()?.adopt(blob.reference) else { break }
                pendingBlobs[blob.reference] = Blob(
                    reference: blob.reference,
                    source: BlobSource(keeper: .pending(pending), container: container)
                )
            } catch {
                note(StoreError.translating(error, .init(store: container.place)), nil)
            }
        }
        return true
    }
}
