// What a save decided about conflicts and duplicates, and what that leaves of the journal.
//
// Invariants
// - Each object is judged once; so judging comes to an end, whatever the policy says.
// - A policy that gives up an object's edits, or its side of a one-to-one, gives up the other side
//   as well: an intent counts as a whole or not at all.

import VarveBase
import VarveRecords

struct Rulings {
    /// Objects that were judged.
    var decided: Set<ObjectID> = []
    /// Objects whose edits or deletion are given up.
    var dropped: Set<ObjectID> = []
    /// Slots whose edits are given up, by object.
    var droppedSlots: [ObjectID: Set<Int>] = [:]
    /// Objects whose row is written in full.
    var whole: Set<ObjectID> = []
    /// Objects that come back.
    var revived: Set<ObjectID> = []
    /// Objects deleted by others that this save leaves so.
    var lost: Set<ObjectID> = []
    /// Objects that come back by an undo, and that others brought back before.
    var met: Set<ObjectID> = []
    /// New objects, and the ones that stand in their place.
    var replaced: [ObjectID: ObjectID] = [:]
    /// Of these, the ones that are dropped without a trace (`.ignore`).
    var ignored: Set<ObjectID> = []
    /// Values that a replaced object gives to the one in its place, by that one.
    var given: [ObjectID: (model: EntityModel, values: [ColumnValue])] = [:]

    /// The intent as it counts; nil: not at all.
    func ruled(_ intent: Intent) -> Intent? {
        switch intent {
        case .delete(_, let id):
            if dropped.contains(id) { return nil }
        default:
            for side in [intent.subject, intent.partner] {
                guard let side else { continue }
                if dropped.contains(side.owner)
                    || ignored.contains(side.owner)
                        && intent.isColumn
                {
                    return nil
                }
                if droppedSlots[side.owner]?.contains(side.slot) == true { return nil }
            }
        }
        return replaced.isEmpty ? intent : intent.replacing(replaced)
    }
}

extension Intent {
    /// Whether the intent changes a column, not only links.
    fileprivate var isColumn: Bool {
        switch self {
        case .relate: true
        case .link(let model, _, let slot, _, _), .unlink(let model, _, let slot, _):
            model.properties[slot].relationship?.isKeptByInverse ?? false
        case .arrange, .delete: false
        }
    }
}
