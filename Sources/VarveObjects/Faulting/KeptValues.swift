// Large texts and data of rows that are gone, and their blobs. A row does not hold them, and only
// its own commit finds them: they are read before the context leaves it.
//
// Invariants
// - Blobs take no memory: a file stays where it is, and the bytes of a small one in the store file,
//   which is kept open meanwhile, also behind a compaction.
// - Only of objects that live: what nobody holds is forgotten when the context next moves on.
// - Of one version of a row: an object that comes back reads its new row's.

import VarveBase
import VarveEngine
import VarveRecords

/// The large values of one row that is gone.
struct KeptValues {
    let version: CommitNumber
    let values: [ColumnID: StoredValue]
    /// As long as they are held, a save may name them: an edit and a merge policy bring it back.
    let blobs: [PendingBlob]
}

/// What is kept of all rows that are gone.
struct KeptRows {
    private var rows: [ObjectID: KeptValues] = [:]
    /// The blobs of all of them, with the number of rows that have each.
    private var blobs: [BlobReference: (blob: PendingBlob, rows: Int)] = [:]

    var isEmpty: Bool { rows.isEmpty }

    subscript(id: ObjectID) -> KeptValues? { rows[id] }

    /// A blob of one of them. - Complexity: O(1).
    func blob(_ reference: BlobReference) -> PendingBlob? {
        blobs.isEmpty ? nil : blobs[reference]?.blob
    }

    /// - Complexity: O(blobs of the row), as `forget`.
    mutating func keep(_ values: KeptValues, of id: ObjectID) {
        forget(id)
        rows[id] = values
        for blob in values.blobs { blobs[blob.reference, default: (blob, 0)].rows += 1 }
    }

    mutating func forget(_ id: ObjectID) {
        for blob in rows.removeValue(forKey: id)?.blobs ?? [] {
            guard let known = blobs[blob.reference] else { continue }
            blobs[blob.reference] = known.rows > 1 ? (known.blob, known.rows - 1) : nil
        }
    }

    /// - Complexity: O(rows).
    mutating func forget(where isOver: (ObjectID, CommitNumber) -> Bool) {
        let ids = rows.filter { isOver($0.key, $0.value.version) }.map(\.key)
        for id in ids { forget(id) }
    }
}

extension ManagedObjectContext {
    /// Reads the large values of an object whose row is gone behind this commit.
    ///
    /// - Parameter keepsBlobs: whether an edit may bring it back with its blobs: others deleted it.
    /// - Complexity: O(properties), a look into the tree for each blob, and the values' bytes.
    func keepLargeValues(
        of object: any ManagedObject,
        _ older: RecordSnapshot,
        keepsBlobs: Bool
    ) {
        guard let row = object.storage.row, keptValues[row.id]?.version != row.version else {
            return
        }
        let columns = object.storage.model.properties.compactMap(\.column).filter(row.isOutside)
        let blobs = keepsBlobs ? keptBlobs(of: object, row, older) : []
        if columns.isEmpty, blobs.isEmpty { return }
        var values: [ColumnID: StoredValue] = [:]
        for column in columns {
            do throws(StoreError) {
                values[column] = try container.translating { () throws(RecordError) in
                    try older.value(of: row, column)
                }
            } catch {
                note(error, object)
            }
        }
        keptValues.keep(
            KeptValues(version: row.version, values: values, blobs: blobs),
            of: row.id
        )
    }

    private func keptBlobs(
        of object: any ManagedObject,
        _ row: CachedRow,
        _ older: RecordSnapshot
    ) -> [PendingBlob] {
        var blobs: [PendingBlob] = []
        for property in object.storage.model.properties {
            guard property.attribute?.type == .blob, let column = property.column else { continue }
            do throws(StoreError) {
                let blob = try container.translating { () throws(RecordError) -> PendingBlob? in
                    guard case .blob(let reference) = try row.value(column) else { return nil }
                    do throws(EngineError) {
                        return try older.storage.adopt(reference, inPlace: true)
                    } catch {
                        throw .engine(error)
                    }
                }
                if let blob { blobs.append(blob) }
            } catch {
                note(error, object)
            }
        }
        return blobs
    }

    /// Lets go of what nobody can ask for any more.
    func forgetKeptValues() {
        if keptValues.isEmpty { return }
        keptValues.forget { id, version in
            guard let object = registered(id) else { return true }
            // A save that brings it back has not dropped the old row yet.
            return !object.storage.state.contains(.gone) && object.storage.row?.version != version
        }
    }
}
