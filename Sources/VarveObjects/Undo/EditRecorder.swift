// Takes down what objects were like before an edit touched them.
//
// Invariants
// - Each property is taken down once, before its first change; what it became is asked at the end
//   of the stretch. So a property that is set a thousand times costs one entry.
// - A stretch lies between two moves of the context: what it means is told over one commit.
// - Laying the journal again changes nothing that the app sees, and is not recorded.
//
// Costs: O(1) for a value and for a member of a list without order; O(n) once for a list of n
// members that has an order, and for each list of an object that is deleted.

import VarveBase
import VarveRecords

final class EditRecorder {
    /// A list before the stretch.
    private enum ListBefore {
        /// All members.
        case members([ObjectID])
        /// What its edits said of members.
        case marks(ToManyEdit.Marks)
    }

    private struct Entry {
        let model: EntityModel
        let existed: Bool
        var wasSaved: Bool
        /// Of an object that came or went, or that others deleted.
        var object: (any ManagedObject)?
        /// By slot; nil: not touched.
        var values: [StoredValue?]
        /// The slots whose values were those of the row, and no edits.
        var stored: Set<Int> = []
        /// The slots whose references led nowhere when they were taken down.
        var dangling: Set<Int> = []
        var lists: [Int: ListBefore] = [:]
        /// The slots whose lists had no edits when their object was deleted.
        var storedLists: Set<Int> = []
        var isWhole = false
        /// Of a deleted object: the one from which a cascade came to it.
        var reachedBy: ObjectID?
        /// As in `GraphDelta.Item`, of a deleted object.
        var unset: Set<Int> = []
        /// What the relationships of a deleted object were when it was deleted.
        var lastTargets: [Int: StoredValue] = [:]
        var lastMembers: [Int: [ObjectID]] = [:]
    }

    private var entries: [ObjectID: Entry] = [:]
    private var order: [ObjectID] = []
    private var blobs: [BlobReference: Blob] = [:]
    /// As it was when the stretch began.
    private var journal: Journal?
    /// What others deleted, and whose relationships were edited: only the journal tells of that.
    private var gone: [ObjectID: any ManagedObject] = [:]
    /// Stretches that ended with a move of the context.
    private(set) var stretches: [GraphDelta] = []
    /// Whether a stretch is kept whenever the journal is another one.
    var keepsJournals = false
    /// Edits are not taken down: they are those of an undo.
    var isPaused = false

    /// Whether nothing was touched.
    var isEmpty: Bool { entries.isEmpty && stretches.isEmpty && gone.isEmpty }
    /// Objects touched since the last move.
    var count: Int { entries.count }

    /// Forgets everything: the edits were given up.
    func forget() {
        entries = [:]
        order = []
        blobs = [:]
        journal = nil
        gone = [:]
        stretches = []
    }

    /// An edit left nothing to undo: the next step begins with what is wanted then.
    func forgetJournal() { if isEmpty { journal = nil } }

    /// Goes back to the stretches of a moment in which none was open.
    func goBack(to known: [GraphDelta]) {
        forget()
        stretches = known
    }

    // MARK: Taking down

    /// Called before the journal changes, and before anything else does.
    func note(_ journal: Journal) {
        if self.journal == nil, !isPaused { self.journal = journal }
    }

    /// A relationship of an object that others deleted is about to be edited.
    func hold(_ object: any ManagedObject) {
        if !isPaused { gone[object.storage.object] = object }
    }

    private func entry(_ id: ObjectID, _ model: EntityModel, existed: Bool) -> Entry {
        if let known = entries[id] { return known }
        order.append(id)
        let made = Entry(
            model: model,
            existed: existed,
            wasSaved: existed,
            values: existed ? Array(repeating: nil, count: model.properties.count) : []
        )
        entries[id] = made
        return made
    }

    /// Whether a property is to be taken down still.
    func wants(_ id: ObjectID, _ slot: Int) -> Bool {
        guard !isPaused else { return false }
        guard let known = entries[id] else { return true }
        return known.existed && known.values[slot] == nil
    }

    func note(
        _ value: StoredValue,
        of object: any ManagedObject,
        _ slot: Int,
        _ context: ManagedObjectContext
    ) {
        let (model, id) = (object.storage.model, object.storage.object)
        _ = entry(id, model, existed: true)
        entries[id]?.values[slot] = value
        // Others deleted it, and nobody but its edits may hold it: a fault would find nothing.
        if object.storage.state.contains(.gone) { entries[id]?.object = object }
        if object.storage.isStored(slot) { entries[id]?.stored.insert(slot) }
        if !led(value, model, slot, context) { entries[id]?.dangling.insert(slot) }
        if case .blob(let reference) = value { blobs[reference] = context.blob(for: reference) }
    }

    /// Whether a reference led to something when the stretch began.
    private func led(
        _ value: StoredValue,
        _ model: EntityModel,
        _ slot: Int,
        _ context: ManagedObjectContext
    ) -> Bool {
        if let target = value.object, entries[target]?.isWhole == true { return true }
        return context.leads(value, model, slot)
    }

    func noteInserted(_ object: any ManagedObject, wasSaved: Bool) {
        guard !isPaused, entries[object.storage.object] == nil else { return }
        var made = entry(object.storage.object, object.storage.model, existed: false)
        made.object = object
        made.wasSaved = wasSaved
        entries[object.storage.object] = made
    }

    func wantsList(_ id: ObjectID, _ slot: Int) -> Bool {
        guard !isPaused else { return false }
        guard let known = entries[id] else { return true }
        return known.existed && known.lists[slot] == nil
    }

    func note(members: [ObjectID], _ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        _ = entry(id, model, existed: true)
        entries[id]?.lists[slot] = .members(members)
    }

    /// A member leaves a list without an edit of it: from here on all of its members count.
    func widen(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slot: Int,
        _ members: [ObjectID],
        _ marks: ToManyEdit.Marks
    ) {
        guard !isPaused else { return }
        let known = entry(id, model, existed: true)
        guard known.existed else { return }
        entries[id]?.lists[slot] = Self.whole(known.lists[slot], members, marks)
    }

    /// All members as they were, of what was taken down and what is now.
    private static func whole(
        _ before: ListBefore?,
        _ members: [ObjectID],
        _ marks: ToManyEdit.Marks
    ) -> ListBefore {
        switch before {
        case nil: return .members(members)
        case .members(let known): return .members(known)
        case .marks(let known):
            let (added, removed) = marks.changes(since: known)
            let isNew = Set(added)
            return .members(members.filter { !isNew.contains($0) } + removed)
        }
    }

    func note(marks: ToManyEdit.Marks, _ id: ObjectID, _ model: EntityModel, _ slot: Int) {
        _ = entry(id, model, existed: true)
        entries[id]?.lists[slot] = .marks(marks)
    }

    /// Takes down all of an object that is about to be deleted.
    func noteDeleted(_ object: any ManagedObject, _ context: ManagedObjectContext, wasSaved: Bool) {
        guard !isPaused else { return }
        let (model, id) = (object.storage.model, object.storage.object)
        var known = entry(id, model, existed: true)
        known.object = object
        known.wasSaved = wasSaved
        known.unset = Self.unset(object)
        known.reachedBy = context.reachedBy[id]
        for slot in model.relationshipSlots {
            if model.properties[slot].relationship?.isToMany == false {
                known.lastTargets[slot] = context.value(of: object, slot: slot)
            } else if model.properties[slot].relationship?.isRecorded == true {
                // A cascade deletes both ends of a link, one after the other.
                known.lastMembers[slot] = try? context.linkedMembers(of: object, slot: slot)
                    .filter { context.doomed[$0] == nil || entries[$0]?.isWhole == true }
            }
        }
        guard known.existed, !known.isWhole else {
            entries[id] = known
            return
        }
        known.isWhole = true
        for slot in model.properties.indices where known.values[slot] == nil {
            guard model.properties[slot].column != nil,
                let value = context.value(of: object, slot: slot)
            else { continue }
            known.values[slot] = value
            if object.storage.isStored(slot) { known.stored.insert(slot) }
            if !led(value, model, slot, context) { known.dangling.insert(slot) }
            if case .blob(let reference) = value { blobs[reference] = context.blob(for: reference) }
        }
        for slot in model.relationshipSlots
        where model.properties[slot].relationship?.isRecorded == true {
            guard let members = known.lastMembers[slot] else { continue }
            if known.lists[slot] == nil, !context.hasEdits(id, slot) {
                known.storedLists.insert(slot)
            }
            known.lists[slot] = Self.whole(known.lists[slot], members, context.marks(id, slot))
        }
        entries[id] = known
    }

    // MARK: The end of a stretch

    /// Ends the stretch: the context is about to leave the commit.
    func endStretch(_ context: ManagedObjectContext) {
        var delta = delta(context)
        delta.journals = journals(context)
        delta.commit = context.commit
        let isChange = !delta.isEmpty || isChange(delta.journals, context)
        delta.held = Array(gone.values)
        (entries, order, blobs, journal, gone) = ([:], [], [:], nil, [:])
        if isChange { stretches.append(delta) }
    }

    /// Whether the journal alone tells of edits: no value shows what an app wanted of the
    /// relationships of an object that others deleted.
    private func isChange(
        _ journals: GraphDelta.Journals?,
        _ context: ManagedObjectContext
    ) -> Bool {
        guard let journals, !context.has(.thrownLeavesLinksOfTheGone) else { return false }
        return keepsJournals || !gone.isEmpty && journals.differ(on: Set(gone.keys))
    }

    private func journals(_ context: ManagedObjectContext) -> GraphDelta.Journals? {
        journal.map { .init(before: $0, after: context.journal, era: context.era) }
    }

    /// A stretch takes in what its deletions did when they were saved.
    func learn(_ delta: GraphDelta, at place: Int) { stretches[place].learn(delta) }

    func changeStretches(_ change: (inout GraphDelta) -> Void) {
        for place in stretches.indices { change(&stretches[place]) }
    }

    /// All that was recorded; the recorder begins anew.
    func take(_ context: ManagedObjectContext) -> [GraphDelta] {
        endStretch(context)
        defer { stretches = [] }
        return stretches
    }

    /// What became of the objects so far.
    func delta(_ context: ManagedObjectContext) -> GraphDelta {
        var delta = GraphDelta()
        for id in order {
            guard let entry = entries[id], let item = item(id, entry, context, &delta.blobs) else {
                continue
            }
            delta.items.append(item)
        }
        for (reference, blob) in blobs { delta.blobs[reference] = blob }
        return delta
    }

    /// Whether anything is different from what it was.
    /// - Complexity: O(what was touched), until the first difference.
    func hasDifference(_ context: ManagedObjectContext) -> Bool {
        if !stretches.isEmpty { return true }
        var blobs: [BlobReference: Blob] = [:]
        return order.contains { id in
            entries[id].flatMap { item(id, $0, context, &blobs) } != nil
        }
    }

    private func item(
        _ id: ObjectID,
        _ entry: Entry,
        _ context: ManagedObjectContext,
        _ blobs: inout [BlobReference: Blob]
    ) -> GraphDelta.Item? {
        // What has no edits any more may have been let go, and others may have deleted it.
        guard
            entry.object != nil || context.registered(id) != nil
                || context.isThere(id, entry.model)
        else { return nil }
        let object = entry.object ?? context.object(id, entry.model)
        let exists = !object.storage.isOver || context.isOnlyMarked(object)
        guard entry.existed || exists else { return nil }
        let isWhole = entry.existed != exists
        var values: [GraphDelta.Value] = []
        // What is derived follows the rest.
        for (slot, property) in entry.model.properties.enumerated()
        where property.column != nil && property.derive == nil {
            guard let before = entry.existed ? entry.values[slot] : .null else { continue }
            var after = entry.lastTargets[slot] ?? .null
            if exists {
                guard let value = context.value(of: object, slot: slot) else { continue }
                after = value
            }
            let led = before != .null && !entry.dangling.contains(slot)
            let leads = after != .null && context.leads(after, entry.model, slot)
            let isSame = before.isSame(as: after)
            if !isWhole, isSame, led == leads || before == .null { continue }
            if case .blob(let reference) = after {
                blobs[reference] = context.blob(for: reference)
            }
            values.append(
                GraphDelta.Value(
                    slot: slot,
                    before: led ? before : .null,
                    after: leads || !exists ? after : .null,
                    wasStored: entry.stored.contains(slot),
                    dangles: !isWhole && isSame,
                    isHidden: !isWhole && !led && !leads && before.object != after.object
                )
            )
        }
        let lists = lists(id, entry, exists ? object : nil, context)
        if values.isEmpty, lists.isEmpty, !isWhole { return nil }
        return GraphDelta.Item(
            model: entry.model,
            id: id,
            existed: entry.existed,
            exists: exists,
            wasSaved: entry.wasSaved,
            reachedBy: exists ? nil : entry.reachedBy,
            object: isWhole || object.storage.state.contains(.gone) ? object : nil,
            values: values,
            lists: lists,
            unset: !isWhole ? [] : exists ? Self.unset(object) : entry.unset
        )
    }

    /// The attributes of a new object that nobody set.
    static func unset(_ object: any ManagedObject) -> Set<Int> {
        guard let edits = object.storage.edits, object.isInserted,
            !object.storage.state.contains(.returned)
        else { return [] }
        return Set(object.storage.model.properties.indices.filter { !edits.isAssigned($0) })
    }

    private func lists(
        _ id: ObjectID,
        _ entry: Entry,
        _ object: (any ManagedObject)?,
        _ context: ManagedObjectContext
    ) -> [GraphDelta.List] {
        var lists: [GraphDelta.List] = []
        for slot in entry.model.relationshipSlots {
            guard let relationship = entry.model.properties[slot].relationship,
                relationship.isRecorded
            else { continue }
            let known = entry.existed ? entry.lists[slot] : .members([])
            switch known {
            case nil: continue
            case .members(let before):
                let after =
                    object.map { (try? context.members(of: $0, slot: slot)) ?? [] }
                    ?? entry.lastMembers[slot] ?? []
                let list = GraphDelta.List.between(
                    before,
                    after,
                    slot,
                    hidden: context.hiddenMembers(id, slot),
                    isOrdered: relationship.isOrdered,
                    isWhole: entry.existed != (object != nil)
                )
                if var list {
                    list.wasStored = entry.storedLists.contains(slot)
                    lists.append(list)
                }
            case .marks(let before):
                let (added, removed) = context.marks(id, slot).changes(since: before)
                if added.isEmpty, removed.isEmpty { continue }
                lists.append(
                    GraphDelta.List(slot: slot, removed: removed, added: added, members: nil)
                )
            }
        }
        return lists
    }
}

extension RelationshipModel {
    /// Whether a list says more than the columns of its members do.
    var isRecorded: Bool { isToMany && (isOrdered || !isKeptByInverse) }
}

extension ObjectStorage {
    /// Whether the object is deleted, or was never there.
    var isOver: Bool { !state.isDisjoint(with: [.deleted, .ended, .invalid]) }

    /// Whether a property shows what the row has.
    fileprivate func isStored(_ slot: Int) -> Bool {
        edits?.values[slot] == nil && !state.contains(.inserted)
    }
}

extension ToManyEdit {
    /// What the edits of a list say of members, without an order.
    struct Marks {
        fileprivate let additions: Set<ObjectID>
        fileprivate let removed: Set<ObjectID>

        static let none = Marks(additions: [], removed: [])

        init(additions: Set<ObjectID>, removed: Set<ObjectID>) {
            self.additions = additions
            self.removed = removed
        }

        /// The members that came and went since, over the same commit.
        func changes(since before: Marks) -> (added: [ObjectID], removed: [ObjectID]) {
            let came = additions.subtracting(before.additions)
                .union(before.removed.subtracting(removed))
            let went = before.additions.subtracting(additions)
                .union(removed.subtracting(before.removed))
            return (came.subtracting(went).sorted(), went.subtracting(came).sorted())
        }
    }
}
