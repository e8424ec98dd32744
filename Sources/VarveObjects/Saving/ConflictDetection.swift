// Objects that a save compares though they were not edited.
//
// Invariants
// - What counts is the commit that the context reads when it saves: an object that others changed
//   before that commit was seen as it is.

import VarveBase
import VarveRecords

extension ManagedObjectContext {
    /// Makes the next save see that nobody changed or deleted these objects since the commit that
    /// this context reads, though it does not edit them: what it writes rests on their values.
    ///
    /// With `MergePolicy.error` the save throws `conflict` if somebody did; a custom policy is
    /// asked. With the other policies it changes nothing: there are no edits to decide about.
    /// `advance()` shows what others saved, and that is no conflict any more. The save that
    /// succeeds, `rollback()` and `reset()` end it. In a branch it concerns its parent's save, once
    /// it is merged.
    ///
    /// New objects, and objects of other contexts, are passed over.
    /// - Throws: what a failed read throws: the context reads the newest commit now, if it has not
    ///   read any yet.
    /// - Complexity: O(objects); the save compares one row for each.
    public func detectConflicts(for objects: [any ManagedObject]) throws {
        _ = try currentSnapshot()
        for object in objects where object.storage.core === core && !object.isInserted {
            guard object.storage.state.isDisjoint(with: [.gone, .invalid]) else { continue }
            relied[object.storage.object] = object.storage.model
        }
    }

    /// The same for one object.
    public func detectConflicts(for object: some ManagedObject) throws {
        try detectConflicts(for: [object])
    }
}
