// What became of the store between two commits, as the live lists of one context see it.
//
// Invariants
// - Each changed row is read once for all lists: as it was and as it is.
// - Nothing is read for entities that no list asks about.

import VarveBase
import VarveRecords

final class LiveStep {
    /// More changed objects than this are not told one by one: the list is replaced. Nobody follows
    /// so many with the eye, and each would cost several descents of a tree.
    static let changesMax = 10_000

    let context: ManagedObjectContext
    let older: RecordSnapshot
    let newer: RecordSnapshot
    /// The changed objects by entity, hidden ones included; nil: nobody knows.
    private let changes: [EntityID: ObjectIDSet]?
    private var rows: [ObjectID: (old: CachedRow?, new: CachedRow?)] = [:]
    /// The changed objects of the entities whose rows were read.
    private var gathered: [EntityID: Set<ObjectID>] = [:]

    init(
        _ context: ManagedObjectContext,
        from older: RecordSnapshot,
        to newer: RecordSnapshot,
        _ changes: [ObjectChanges]?
    ) {
        (self.context, self.older, self.newer) = (context, older, newer)
        self.changes = changes.map { changes in
            var byEntity: [EntityID: ObjectIDSet] = [:]
            for change in changes {
                byEntity[change.entity] =
                    byEntity[change.entity]?.union(change.objects) ?? change.objects
            }
            return byEntity
        }
    }

    /// The entities with changes; nil: nobody knows.
    var entities: Dictionary<EntityID, ObjectIDSet>.Keys? { changes?.keys }

    /// The changed objects of an entity, their rows read; nil: too many, or nobody knows.
    private func changed(_ entity: EntityID) throws(RecordError) -> Set<ObjectID>? {
        guard let changes else { return nil }
        guard let ids = changes[entity] else { return [] }
        if let known = gathered[entity] { return known }
        if ids.count > Self.changesMax { return nil }
        let all = Array(ids)
        let old = try older.rows(entity, all)
        let new = try newer.rows(entity, all)
        for (index, id) in all.enumerated() { rows[id] = (old[index], new[index]) }
        let found = Set(all)
        gathered[entity] = found
        return found
    }

    /// The row of an object before and after.
    func row(
        _ entity: EntityID,
        _ id: ObjectID
    ) throws(RecordError) -> (old: CachedRow?, new: CachedRow?) {
        if let known = rows[id] { return known }
        let found = (try older.row(entity, id), try newer.row(entity, id))
        rows[id] = found
        return found
    }

    /// The objects of an entity whose place in a request's list the commits may have changed; nil:
    /// too many, or nobody knows.
    /// - Complexity: O(changes of the entities that the request looks at x log n).
    func affected(
        _ paths: PathTree,
        _ model: EntityModel
    ) throws(RecordError) -> Set<ObjectID>? {
        guard var found = try changed(model.record.id) else { return nil }
        for (name, rest) in paths.branches {
            guard let slot = model.slot(named: name),
                let relationship = model.properties[slot].relationship,
                let far = context.schema.entity(relationship.target)
            else { continue }
            guard let targets = try affected(rest, far) else { return nil }
            for id in targets {
                found.formUnion(try older.owners(model.record, relationship.record, of: id))
                found.formUnion(try newer.owners(model.record, relationship.record, of: id))
                if found.count > Self.changesMax { return nil }
            }
            guard case .link(let link) = relationship.record.storage else { continue }
            guard let links = try changed(link.entity) else { return nil }
            for id in links {
                let (old, new) = try row(link.entity, id)
                if let owner = try old?.reference(link.ownColumn) { found.insert(owner) }
                if let owner = try new?.reference(link.ownColumn) { found.insert(owner) }
            }
            if found.count > Self.changesMax { return nil }
        }
        return found
    }

    /// The entities whose commits can change a request's list.
    static func entities(
        _ paths: PathTree,
        _ model: EntityModel,
        _ schema: SchemaModel
    ) -> Set<EntityID> {
        var all: Set<EntityID> = [model.record.id]
        for (name, rest) in paths.branches {
            guard let slot = model.slot(named: name),
                let relationship = model.properties[slot].relationship,
                let far = schema.entity(relationship.target)
            else { continue }
            all.formUnion(entities(rest, far, schema))
            if case .link(let link) = relationship.record.storage { all.insert(link.entity) }
        }
        return all
    }
}
