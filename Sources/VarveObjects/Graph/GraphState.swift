// What the evaluator needs to know of a graph of objects, and how it changes it.
//
// Invariants
// - Two of them exist: what a context shows (`ContextGraph`) and what a save is about to write
//   (`TransactionGraph`). Both are a commit with changes laid over, never the commit itself.
// - Only `GraphEvaluator` calls what changes a graph, so that both sides of a relationship agree.

import VarveBase
import VarveRecords

/// A graph of objects: one commit, and what the intents of a journal made of it so far.
protocol GraphState: AnyObject {
    var schema: SchemaModel { get }

    // MARK: Reading

    /// Whether the object exists and is not deleted.
    func isAlive(_ id: ObjectID, _ model: EntityModel) throws(StoreError) -> Bool
    /// The object that a to-one relationship leads to, alive or not.
    func reference(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError)
        -> ObjectID?
    /// The members of a to-many relationship, without deleted ones.
    func members(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError)
        -> [ObjectID]
    /// Whether an object is a member.
    func isMember(_ member: ObjectID, _ id: ObjectID, _ model: EntityModel, _ slot: Int)
        throws(StoreError) -> Bool
    /// What the journal made of a list so far; nil: it is the commit's.
    func list(_ id: ObjectID, _ slot: Int) -> ToManyEdit?
    /// The objects that were deleted so far; it only grows.
    var deletions: [ObjectID] { get }
    /// The members as the commit has them.
    func savedMembers(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError)
        -> [ObjectID]
    /// The objects of `owner` whose to-one relationship without inverse leads to `id`.
    func referring(_ owner: EntityModel, _ slot: Int, to id: ObjectID) throws(StoreError)
        -> [ObjectID]

    // MARK: Changing

    /// Makes a to-one column lead elsewhere; the inverse is the evaluator's.
    func setReference(_ id: ObjectID, _ model: EntityModel, _ slot: Int, _ target: ObjectID?)
        throws(StoreError)
    /// Changes one side's list; the other side is the evaluator's.
    func edit(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ change: (ToManyEdit) throws(StoreError) -> Void
    ) throws(StoreError)
    /// An object was added to a list of which it does not know: there is no inverse.
    func noteListed(_ member: ObjectID, by owner: ObjectID, _ slot: Int)
    /// Whether an object was made here and is in no commit yet.
    func isUnsaved(_ id: ObjectID) -> Bool
    /// The object is deleted from here on.
    func doom(_ id: ObjectID, _ model: EntityModel) throws(StoreError)
    /// A relationship was to lead to an object that does not exist any more.
    func noteLost(_ target: ObjectID, wantedBy id: ObjectID, _ model: EntityModel, _ slot: Int)
    /// Whether a test planted this bug (`PlantedObjectBug`).
    func has(_ bug: PlantedObjectBug) -> Bool
}

/// A relationship that wanted an object which is gone.
struct LostTarget {
    let owner: ObjectID
    let model: EntityModel
    let slot: Int
    let target: ObjectID
}

/// Steps of the object layer that tests of tests leave out (docs/Testing.md). Planted through
/// `Environment.leavesOut`, which no app can reach.
package enum PlantedObjectBug: CaseIterable, Sendable {
    case editsOutliveTheirDelete
    case oneSideOfAnInverse
    case ordersByObjectID
    case rulesOnTheSnapshot
    case partnersAreNotDisplaced
    case cascadeStopsAtTheFirstLevel
    case denialsAreForgotten
    case lostTargetsAreWritten
    case revivedWithoutLinks
    case equalMeansSwiftEqual
    case replayForgetsUnlinks
    case conflictsOfPartnersAreMissed
    case upsertLooksBeforeUpdates
    case windowIgnoresTheCursor

    /// The name that the environment is asked for.
    package var step: StaticString {
        switch self {
        case .editsOutliveTheirDelete: "objects: edits end with their object"
        case .oneSideOfAnInverse: "objects: the other side of a one-to-one follows"
        case .ordersByObjectID: "objects: members come in the order of the app's calls"
        case .rulesOnTheSnapshot: "objects: the journal is applied to the newest commit"
        case .partnersAreNotDisplaced: "objects: the earlier partner of a one-to-one is free"
        case .cascadeStopsAtTheFirstLevel: "objects: a cascade goes on to its end"
        case .denialsAreForgotten: "objects: deny is judged"
        case .lostTargetsAreWritten: "objects: what is gone is not related to"
        case .revivedWithoutLinks: "objects: what comes back has its links"
        case .equalMeansSwiftEqual: "objects: the same value is the same bytes"
        case .replayForgetsUnlinks: "objects: removals are applied to a newer commit"
        case .conflictsOfPartnersAreMissed: "objects: a policy holds for both sides"
        case .upsertLooksBeforeUpdates: "objects: duplicates are looked for behind updates"
        case .windowIgnoresTheCursor: "objects: a page of edited lists begins at its cursor"
        }
    }
}
