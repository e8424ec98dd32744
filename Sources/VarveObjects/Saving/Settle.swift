// After a commit: objects become saved ones, the context moves to the newest commit.
//
// Invariants
// - Objects that nobody but the context held are let go before rows are read again: a background
//   import reads nothing back.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    func settle(_ changes: inout ChangeSet, _ writer: SaveWriter) throws(StoreError) {
        var written: [(id: ObjectID, model: EntityModel)] = []
        var own: Set<ObjectID> = []
        for object in changes.inserted {
            let id = object.storage.object
            own.insert(id)
            object.storage.state.remove(.inserted)
            if writer.replaced[id] != nil {
                // Its values stay readable; its row never was.
                object.storage.state.insert(.gone)
                continue
            }
            object.storage.edits = nil
            written.append((id, object.storage.model))
        }
        for object in changes.updated {
            let id = object.storage.object
            object.storage.state.remove(.updated)
            object.storage.edits = nil
            if writer.lost.contains(id) {
                object.storage.state.insert(.gone)
                own.insert(id)
                continue
            }
            object.storage.state.remove(.gone)
            own.insert(id)
            written.append((id, object.storage.model))
        }
        for object in changes.deleted {
            let id = object.storage.object
            object.storage.state.remove(.deleted)
            if writer.abandoned.contains(id) {
                object.storage.edits = nil
                object.storage.state.remove(.updated)
                written.append((id, object.storage.model))
            } else {
                object.storage.state.insert(.gone)
            }
            own.insert(id)
        }
        toManyEdits = [:]
        pendingBlobs = [:]
        denials = []
        for object in [changes.inserted, changes.updated, changes.deleted].joined() {
            object.didSave()
        }
        // What `didSave` changed stays; all else is let go.
        var kept: [ObjectID: any ManagedObject] = [:]
        for (id, object) in changed where object.hasChanges { kept[id] = object }
        changed = kept
        changes = ChangeSet()
        try takeNewRows(of: written, own)
    }

    private func takeNewRows(
        of written: [(id: ObjectID, model: EntityModel)],
        _ own: Set<ObjectID>
    ) throws(StoreError) {
        let newest: RecordSnapshot
        do throws(StoreError) {
            newest = try newestSnapshot()
        } catch {
            throw error.afterCommit
        }
        move(to: newest, except: own)
        var alive: [EntityID: [ObjectID]] = [:]
        for (id, model) in written where registered(id) != nil {
            alive[model.record.id, default: []].append(id)
        }
        for (entity, ids) in alive.sorted(by: { $0.key < $1.key }) {
            do throws(StoreError) {
                let rows = try container.translating { () throws(RecordError) in
                    try newest.rows(entity, ids, pin: true, counting: false)
                }
                for (id, row) in zip(ids, rows) {
                    guard let row else { continue }
                    guard let object = registered(id) else {
                        container.store.rowCache.unpin(row)
                        continue
                    }
                    replaceRow(row, of: object)
                }
            } catch {
                throw error.afterCommit
            }
        }
    }
}

extension StoreError {
    /// The same error, of something that failed when the commit was on disk already.
    var afterCommit: StoreError {
        var error = self
        error.outcome = .saved
        return error
    }
}
