// Large texts and data of rows that are gone. A row does not hold them, and only its own commit
// finds them: they are read before the context leaves it.
//
// Invariants
// - Only of objects that live: what nobody holds is forgotten when the context next loses rows.
// - Of one version of a row: an object that comes back reads its new row's.

import VarveBase
import VarveRecords

/// The large values of one row that is gone.
struct KeptValues {
    let version: CommitNumber
    let values: [ColumnID: StoredValue]
}

extension ManagedObjectContext {
    /// Reads the large values of an object whose row is gone behind this commit.
    /// - Complexity: O(properties), and the values' bytes.
    func keepLargeValues(of object: any ManagedObject, _ older: RecordSnapshot) {
        guard let row = object.storage.row, keptValues[row.id]?.version != row.version else {
            return
        }
        let columns = object.storage.model.properties.compactMap(\.column).filter(row.isOutside)
        if columns.isEmpty { return }
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
        keptValues[row.id] = KeptValues(version: row.version, values: values)
    }

    /// Lets go of what nobody can ask for any more.
    func forgetKeptValues() {
        if keptValues.isEmpty { return }
        keptValues = keptValues.filter { registered($0.key) != nil }
    }
}
