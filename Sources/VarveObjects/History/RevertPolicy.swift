// What a revert does about what was changed since, and how it says so.

import VarveBase
import VarveRecords

/// What `ManagedObjectContext.revert(commit:)` does with properties and objects that were changed
/// again after the commit.
public struct RevertPolicy: Hashable, Sendable {
    enum Kind { case error, skip, overwrite }
    let kind: Kind

    /// Nothing is reverted, and `revertConflict` lists them.
    public static let error = RevertPolicy(kind: .error)
    /// They stay as they are; what nobody changed since is reverted.
    public static let skip = RevertPolicy(kind: .skip)
    /// They get the values that they had before the commit. Objects that are deleted meanwhile, and
    /// relationships to such objects, are left out still.
    public static let overwrite = RevertPolicy(kind: .overwrite)
}

extension ManagedObjectContext {
    /// Throws in the middle of something: a revert is one edit of many objects.
    func checkRevertable() throws(StoreError) {
        try container.checkOpen()
        guard isWhole else {
            throw StoreError(
                .reentrantSave,
                "revert was called inside a save, a hook or an observer of the same context",
                place: .init(store: container.place),
                suggestion: "Call it when they have returned."
            )
        }
    }

    /// The error of a commit whose changes were changed again.
    func revertConflict(_ conflicts: [DeltaConflict], _ commit: CommitNumber) -> StoreError {
        let details = conflicts.map { conflict -> StoreError.Detail in
            let model = conflict.item.model
            let name = (conflict.slot ?? conflict.changedSlot).map { model.properties[$0].name }
            let place = conflict.slot == nil ? model.name : "\(model.name).\(name ?? "")"
            let message =
                switch conflict.obstacle {
                case .changed:
                    conflict.slot == nil
                        ? "\(place), which the commit inserted, was changed since: its "
                            + (name ?? "row")
                        : "\(place) was changed again since the commit"
                case .gone: "\(place), which the commit changed, was deleted since"
                case .targetGone: "\(place) led to an object that is deleted"
                }
            let object = identity(model, conflict.item.id)
            return StoreError.Detail(
                code: .revertConflict,
                message: message,
                place: StoreError.Place(entity: model.name, attribute: name, object: object),
                objects: [object]
            )
        }
        return StoreError(
            .revertConflict,
            details.count == 1
                ? details[0].message
                : "\(details.count) changes of commit \(commit.rawValue) meet later ones; the "
                    + "first: \(details[0].message)",
            place: StoreError.Place(
                store: container.place,
                entity: details[0].place.entity,
                attribute: details[0].place.attribute,
                object: details[0].place.object,
                commit: commit
            ),
            details: details,
            suggestion: "revert(commit:policy:) with .skip reverts the rest, and tells what it "
                + "left; with .overwrite it overwrites. Nothing was reverted."
        )
    }
}
