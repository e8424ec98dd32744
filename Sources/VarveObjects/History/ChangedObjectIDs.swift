// The objects that one commit changed, as an app names them.
//
// Invariants
// - Links between objects are rows of hidden entities: they are no change of an object.

import VarveBase
import VarveEngine
import VarveRecords

/// The objects that a commit inserted, changed and deleted.
struct ChangedObjectIDs: Sendable {
    private let groups: [(entity: EntityID, objects: ObjectIDSet, change: CommitNotice.Change)]
    private let schema: SchemaModel
    private let store: UUIDValue

    init(_ changes: CommitChanges, _ container: PersistentContainer) {
        schema = container.schema
        store = container.identity
        var groups: [(EntityID, ObjectIDSet, CommitNotice.Change)] = []
        changes.forEachGroup { entity, objects, change in
            guard container.schema.entity(entity) != nil else { return }
            let told: CommitNotice.Change =
                switch change {
                case .inserted: .inserted
                case .updated: .updated
                case .deleted: .deleted
                }
            if told == .deleted, container.has(.historyForgetsDeletions) { return }
            groups.append((entity, objects, told))
        }
        self.groups = groups
    }

    /// - Complexity: O(objects).
    func ids<Entity: ManagedObject>(
        of type: Entity.Type,
        _ change: CommitNotice.Change
    ) -> [Entity.ID] {
        guard let entity = schema.entity(of: type)?.record.id else { return [] }
        return groups.filter { $0.entity == entity && $0.change == change }.flatMap { group in
            group.objects.map {
                TypedObjectID(ManagedObjectID(store: store, entity: entity, object: $0))
            }
        }
    }

    /// - Complexity: O(objects).
    func ids(_ change: CommitNotice.Change) -> [ManagedObjectID] {
        groups.filter { $0.change == change }.flatMap { group in
            group.objects.map {
                ManagedObjectID(store: store, entity: group.entity, object: $0)
            }
        }
    }

    /// Whether an object of one of these entities changed.
    func contains(_ entities: Set<EntityID>) -> Bool {
        groups.contains { entities.contains($0.entity) }
    }

    /// - Complexity: O(entities).
    var count: Int { groups.reduce(0) { $0 + $1.objects.count } }

    /// About what it weighs: runs of consecutive objects.
    var runs: Int { groups.reduce(0) { $0 + $1.objects.runs.count } }
}
