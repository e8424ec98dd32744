// The objects of a commit, for layers that do not see VarveFormat.

public import VarveBase
public import VarveEngine
internal import VarveFormat

extension CommitChanges {
    /// What became of the objects of a group.
    public enum Change: Sendable {
        case inserted, updated, deleted
    }

    /// Calls `body` for the changed objects: entity, objects, what became of them.
    public func forEachGroup(_ body: (EntityID, ObjectIDSet, Change) -> Void) {
        for group in objects {
            let change: Change =
                switch group.kind {
                case .inserted: .inserted
                case .deleted: .deleted
                default: .updated
                }
            body(group.entity, group.objects, change)
        }
    }
}
