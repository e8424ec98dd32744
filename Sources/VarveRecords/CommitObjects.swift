// The objects of a commit, for layers that do not see VarveFormat.

public import VarveBase
public import VarveEngine
internal import VarveFormat

extension CommitChanges {
    /// Calls `body` for the changed objects: entity, objects, whether their rows are gone.
    public func forEachGroup(_ body: (EntityID, ObjectIDSet, Bool) -> Void) {
        for group in objects { body(group.entity, group.objects, group.kind == .deleted) }
    }
}
