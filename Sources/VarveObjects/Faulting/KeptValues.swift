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
        keptValues[row.id] = KeptValues(version: row.version, values: values, blobs: blobs)
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
        keptValues = keptValues.filter { registered($0.key) != nil }
    }
}
