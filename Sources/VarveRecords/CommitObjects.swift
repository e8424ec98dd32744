// The objects of a commit, for layers that do not see VarveFormat.

public import VarveBase
public import VarveEngine
internal import VarveFormat

extension CommitChanges {
    /// Calls `body` for each changed object: entity, object, whether its row is gone.
    public func forEachObject(_ body: (EntityID, ObjectID, Bool) -> Void) {
        for group in objects {
            for object in group.objects { body(group.entity, object, group.kind == .deleted) }
        }
    }
}
