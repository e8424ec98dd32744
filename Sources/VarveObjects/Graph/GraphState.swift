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
    /// How many members there are.
    func memberCount(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError) -> Int
    /// The object that a to-one relationship leads to in the commit.
    func savedReference(_ id: ObjectID, _ model: EntityModel, _ slot: Int) throws(StoreError)
        -> ObjectID?
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
    /// The object is deleted from here on; by the cascade of another one, if there is one.
    func doom(_ id: ObjectID, _ model: EntityModel, by other: ObjectID?) throws(StoreError)
    /// A relationship was to lead to an object that does not exist any more.
    func noteLost(_ target: ObjectID, wantedBy id: ObjectID, _ model: EntityModel, _ slot: Int)
    /// A later edit of the same relationship wants something else; with a target: not that one.
    func forgetLost(_ id: ObjectID, _ slot: Int, _ target: ObjectID?)
    /// An object whose relationship was edited does not exist any more.
    func noteLost(_ id: ObjectID, _ model: EntityModel, _ slot: Int)
    /// Whether the journal itself deleted an object.
    func isDoomed(_ id: ObjectID) -> Bool
    /// Whether an observer changed the graph in the middle: the evaluator changes nothing then.
    var isInterrupted: Bool { get }
    /// Whether a test planted this bug (`PlantedObjectBug`).
    func has(_ bug: PlantedObjectBug) -> Bool
}

/// An edit of a relationship that means nothing any more: what it leads to is gone, or its owner.
struct LostTarget {
    let owner: ObjectID
    let model: EntityModel
    let slot: Int
    /// Nil: the owner is gone.
    let target: ObjectID?

    /// Whether it is about a relationship; with a target, about that one only.
    func isAbout(_ id: ObjectID, _ slot: Int, _ other: ObjectID?) -> Bool {
        owner == id && self.slot == slot && (other == nil || other == target)
    }

    func isAbout(_ key: ToManyKey) -> Bool { owner == key.owner && slot == key.slot }
}

/// Steps of the object layer that tests of tests leave out (docs/Testing.md). Planted through
/// `ContainerOptions.plantedBugs`, which no app can reach.
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
    case upsertLooksBeforeUpdates
    case windowIgnoresTheCursor
    case closingDropsLists
    case editsOutliveARollback
    case liveForgetsNeighbours
    case liveForgetsEditsBefore
    case historyForgetsDeletions
    case pastMovesOn
    case revertForgetsLinks
    case undoForgetsTheJournal
    case undoForgetsLists
    case undoForgetsWhatDangles
    case redoCascadesFurther
    case ownersGoAlone
    case branchForgetsValues
    case pagesForgetEdits
    case prefetchedListsStay
    case derivedIgnoresMerges
    case derivedIgnoresTheRest
    case stageReadsWhatItWrites
    case stageChecksNoConstraint
    case stageForgetsInverses
    case countsForgetDeletions
    case countsOnTheSnapshot
    case batchesForgetCounts
    case batchesForgetOrderedLists
    case nilKeepsTheFields
    case fieldsComparedWithTheRow
    case compositesLackFields
    case revertForgetsFields
    case derivedIsReverted
    case versionsForgetTheOld
    case historyForgetsTheOld
    case undoForgetsOthers
    case branchForgetsOthers
    case contextsKeepThemselves
    case phantomsAreDeleted
    case replayEndsEdits
    case undoForgetsOthersLinks
    case undoForgetsOthersOrder
    case undoForgetsWhatWasReached
    case observersAreNotNoticed
    case movesSplitEdits
    case goneForgetsBlobs
    case goneForgetsLinks
    case assignedBlobsAreNotKept
    case undoForgetsBlobs
    case branchForgetsGoneBlobs
    case movesForgetLargeValues
    case undoLeavesEditsOfTheGone
    case undoForgetsLinksOfTheGone
    case thrownLeavesLinksOfTheGone
    case thrownLeavesUndoSteps

    /// Those that the fuzzer of the history finds, and not that of the graph.
    package static let ofHistory: [PlantedObjectBug] = [
        .historyForgetsDeletions, .pastMovesOn, .revertForgetsLinks,
    ]
    /// Those that the fuzzer of migrations finds.
    package static let ofMigration: [PlantedObjectBug] = [
        .stageReadsWhatItWrites, .stageChecksNoConstraint, .stageForgetsInverses,
    ]
    /// Those that the fuzzer of what a model says finds.
    package static let ofModelling: [PlantedObjectBug] = [
        .countsForgetDeletions, .countsOnTheSnapshot, .batchesForgetCounts,
        .batchesForgetOrderedLists,
    ]
    /// Those that the fuzzer of composites, codecs and lists finds.
    package static let ofValues: [PlantedObjectBug] = [
        .nilKeepsTheFields, .fieldsComparedWithTheRow, .compositesLackFields, .revertForgetsFields,
        .derivedIsReverted, .versionsForgetTheOld, .historyForgetsTheOld, .undoForgetsOthers,
        .branchForgetsOthers,
    ]
    /// Those that runs of deletions whose reach others change find.
    package static let ofReach: [PlantedObjectBug] = [.phantomsAreDeleted, .replayEndsEdits]
    /// Those that runs of undo beside others' links find.
    package static let ofSharing: [PlantedObjectBug] = [
        .undoForgetsOthersLinks, .undoForgetsOthersOrder, .undoForgetsWhatWasReached,
        .ownersGoAlone,
    ]
    /// Those that runs of observers that act find.
    package static let ofMeddling: [PlantedObjectBug] = [
        .observersAreNotNoticed, .movesSplitEdits,
    ]
    /// Those that runs about pictures find.
    package static let ofPictures: [PlantedObjectBug] = [
        .goneForgetsBlobs, .assignedBlobsAreNotKept, .undoForgetsBlobs, .branchForgetsGoneBlobs,
        .movesForgetLargeValues, .undoLeavesEditsOfTheGone,
    ]
    /// Those that worlds of transactions that throw find.
    package static let ofThrown: [PlantedObjectBug] = [
        .thrownLeavesLinksOfTheGone, .thrownLeavesUndoSteps,
    ]
    /// Those that worlds of edits of what others deleted find.
    package static let ofGoneLinks: [PlantedObjectBug] = [
        .goneForgetsLinks, .undoForgetsLinksOfTheGone,
    ]
    /// Those that the fuzzer of undo and branches finds.
    package static let ofUndo: [PlantedObjectBug] = [
        .undoForgetsTheJournal, .undoForgetsLists, .undoForgetsWhatDangles, .redoCascadesFurther,
        .branchForgetsValues,
    ]
}

extension PersistentContainer {
    func report(_ failure: ReadFailure) { options.onReadFailure?(failure) }

    /// Whether a test planted a bug.
    func has(_ bug: PlantedObjectBug) -> Bool {
        !options.plantedBugs.isEmpty && options.plantedBugs.contains(bug)
    }
}
