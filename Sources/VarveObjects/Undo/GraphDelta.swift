// What a stretch of edits did to the objects that a context shows: values before and after.
//
// Invariants
// - It names objects by ID and keeps values, not steps: it can be laid over another commit, and
//   over another context. Undo, redo, branches and reverted commits are the same thing in two
//   directions.
// - Both sides are whole: a relationship is in it from each end that changed.
// - A value that is the same before and after is not in it; an object without any is not either.
// - A reference to an object that is not there is none, whatever the row has. One that stays in its
//   row while its object goes (`noAction`, `deny`) dangles: the deletion decides what is shown.

import VarveBase
import VarveRecords

/// The two ends of a stretch of edits.
enum DeltaSide {
    case before
    case after

    var other: DeltaSide { self == .before ? .after : .before }
}

/// A change of some objects, in the order in which they were first touched.
struct GraphDelta {
    /// One attribute or to-one relationship.
    struct Value {
        let slot: Int
        let before: StoredValue
        let after: StoredValue
        /// Whether the value before was that of the row, and no edit.
        var wasStored = false
        /// The reference itself did not change; its object came or went.
        var dangles = false
        /// Nothing is shown on either side, and the reference is another one.
        var isHidden = false

        func on(_ side: DeltaSide) -> StoredValue { side == .before ? before : after }
    }

    /// One to-many relationship that is kept in rows of its own, or has an order.
    struct List {
        let slot: Int
        let removed: [ObjectID]
        let added: [ObjectID]
        /// All members, where the list has an order or its object came or went; else nil.
        let members: (before: [ObjectID], after: [ObjectID])?
        /// Others changed the order since: it stays.
        var leavesOrder = false
        /// Of a deleted object: whether it had the members that its commit gave it, and no edits.
        var wasStored = false

        /// All members, as the way to a side leaves them and wants them.
        func sides(_ side: DeltaSide) -> (left: [ObjectID], wanted: [ObjectID])? {
            members.map { side == .after ? ($0.before, $0.after) : ($0.after, $0.before) }
        }

        /// What is to become a member on the way to a side, and what is to be none.
        func wanted(_ side: DeltaSide) -> (added: [ObjectID], removed: [ObjectID]) {
            side == .after ? (added, removed) : (removed, added)
        }

        /// The same for a list that has another order now.
        /// - Parameter present: its members; those who came by others' hands stand where they put
        ///   them.
        func leavingOrder(_ side: DeltaSide, _ present: Set<ObjectID>) -> Self {
            let isAfter = side == .after
            return Self(
                slot: slot,
                removed: isAfter ? removed : removed.filter { !present.contains($0) },
                added: isAfter ? added.filter { !present.contains($0) } : added,
                members: members,
                leavesOrder: true
            )
        }

        /// The same without some members.
        func without(_ isOut: (ObjectID) -> Bool) -> Self {
            Self(
                slot: slot,
                removed: removed.filter { !isOut($0) },
                added: added.filter { !isOut($0) },
                members: members.map { sides in
                    (sides.before.filter { !isOut($0) }, sides.after.filter { !isOut($0) })
                },
                leavesOrder: leavesOrder
            )
        }
    }

    /// One object.
    struct Item {
        let model: EntityModel
        let id: ObjectID
        /// Whether it was there before, and after.
        let existed: Bool
        let exists: Bool
        /// Whether some commit has had it.
        let wasSaved: Bool
        /// Of a deleted object: the one from which a cascade came to it; nil: the app deleted it.
        var reachedBy: ObjectID?
        /// Of an object that came or went, or that others deleted: so that it is the same instance
        /// again.
        var object: (any ManagedObject)?
        /// Of an object that came or went: every column. Behind a deletion stand the relationships
        /// that it had at last: they say what its cascades reached.
        let values: [Value]
        let lists: [List]
        /// Of an object that no commit has: the slots that nobody set. A constraint that gives its
        /// place to another object gives that one none of them.
        var unset: Set<Int> = []

        func isThere(_ side: DeltaSide) -> Bool { side == .before ? existed : exists }

        /// The same with a part of its values and lists.
        func with(_ values: [Value], _ lists: [List], as object: (any ManagedObject)? = nil) -> Self
        {
            Self(
                model: model,
                id: id,
                existed: existed,
                exists: exists,
                wasSaved: wasSaved,
                reachedBy: reachedBy,
                object: object ?? self.object,
                values: values,
                lists: lists,
                unset: unset
            )
        }

        /// The same as an instance that it was, with the edits that end with it.
        func of(_ object: any ManagedObject) -> Self {
            let edits = object.storage.edits?.values ?? []
            let values = values.map { value in
                guard edits.indices.contains(value.slot), let edited = edits[value.slot] else {
                    return value
                }
                let isReference = model.properties[value.slot].relationship != nil
                return Value(
                    slot: value.slot,
                    before: edited,
                    after: isReference ? edited : value.after
                )
            }
            return with(values, lists, as: object)
        }
    }

    var items: [Item] = []
    /// The commit over which it was taken down.
    var commit: CommitNumber?
    /// The blobs that the values name: their bytes are kept as long as this is.
    var blobs: [BlobReference: Blob] = [:]

    /// Objects that others deleted, and of whose edited relationships only the journals tell.
    var held: [any ManagedObject] = []

    /// The journals at both ends: as long as their edits are not saved, they say more than values.
    var journals: Journals?

    var isEmpty: Bool { items.isEmpty }

    /// What the app wanted of relationships, before and after, in one era of its context.
    struct Journals {
        let before: Journal
        let after: Journal
        let era: Int

        func on(_ side: DeltaSide) -> Journal { side == .before ? before : after }

        /// Whether they want different relationships of some objects.
        /// - Complexity: O(intents)
        func differ(on ids: Set<ObjectID>) -> Bool {
            func intents(_ journal: Journal) -> [Intent] {
                var journal = journal
                return journal.intents.filter { $0.names(ids) }
            }
            return intents(before) != intents(after)
        }
    }

    /// Whether nothing is left of it to lay: it is saved, and no value tells of it.
    func isVoid(in era: Int) -> Bool { items.isEmpty && journals?.era != era }
}

extension GraphDelta.List {
    /// Nil: nothing changed.
    /// - Parameter hidden: members that were added and then deleted: a deletion that is taken back
    ///   must not show them.
    static func between(
        _ before: [ObjectID],
        _ after: [ObjectID],
        _ slot: Int,
        hidden: [ObjectID],
        isOrdered: Bool,
        isWhole: Bool
    ) -> Self? {
        let (old, new) = (Set(before), Set(after))
        let list = Self(
            slot: slot,
            removed: before.filter { !new.contains($0) },
            added: (after + hidden).filter { !old.contains($0) },
            members: isWhole || isOrdered ? (before, after) : nil
        )
        let isSame = list.removed.isEmpty && list.added.isEmpty && (!isOrdered || before == after)
        return isSame && !isWhole ? nil : list
    }
}
