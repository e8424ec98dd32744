// What observers were told that is no value of a row: whether an object is deleted or has edits,
// whether a context has some, and which members a list had.
//
// Invariants
// - Only what somebody asked for is compared, and only where nothing is half done: at the end of an
//   edit, a save, a merge, a rollback.
// - Observers are told when it is so. What they do is compared again, until nothing differs.

import Observation
import VarveBase
import VarveRecords

/// Stands for a state of an object where a slot stands for a property.
enum StateSlot: Int {
    case isDeleted = -1
    case hasChanges = -2
}

final class StateWatch {
    fileprivate struct Watched {
        weak var object: (any ManagedObject)?
        var isDeleted: Bool
        var hasChanges: Bool
        /// Somebody saw another state, in the middle of something: what is now must be told.
        var isDoubtful = false

        init(_ object: any ManagedObject) {
            self.object = object
            isDeleted = object.storage.isDeleted
            hasChanges = object.storage.hasChanges
        }

        /// Whether there is something to tell, or nobody left to tell it.
        var isOld: Bool {
            guard let object, object.storage.observation != nil else { return true }
            return isDoubtful || isDeleted != object.storage.isDeleted
                || hasChanges != object.storage.hasChanges
        }
    }

    fileprivate let registrar = ObservationRegistrar()
    /// What was told last of the context; nil: nobody asked.
    fileprivate var hasChanges: Bool?
    /// The same of undo and redo.
    fileprivate var canUndo: Bool?
    fileprivate var canRedo: Bool?
    /// Somebody saw another one, in the middle of something.
    fileprivate var isDoubtful = false
    /// Something changed where nothing could be told: the next time looks at all.
    fileprivate var isBehind = false
    fileprivate var objects: [ObjectID: Watched] = [:]
    /// To-many relationships that were read, by owner.
    fileprivate var lists: [ObjectID: Set<Int>] = [:]
    /// Of those that were not read as a whole, the parts that were.
    fileprivate var pages: [ToManyKey: [Range<Int>: [ObjectID]]] = [:]
    /// Parts of one list that are compared at most; then it is read as a whole.
    fileprivate static let pagesMax = 16
    /// So many entries may be those of objects that ended.
    private var pruneAt = 64

    fileprivate func prune(_ isLiving: (ObjectID) -> Bool) {
        guard objects.count + lists.count > pruneAt else { return }
        objects = objects.filter { $0.value.object != nil }
        lists = lists.filter { isLiving($0.key) }
        pages = pages.filter { lists[$0.key.owner] != nil }
        pruneAt = max(64, 2 * (objects.count + lists.count))
    }
}

extension ManagedObject {
    /// Notes that somebody asked for a state.
    func trackState(_ keyPath: @autoclosure () -> KeyPath<Self, Bool>, _ state: StateSlot) {
        guard storage.core.observes, let context = storage.core.context,
            !storage.state.contains(.invalid)
        else { return }
        track(keyPath(), state.rawValue)
        context.watchState(of: self)
    }

    /// Notes that somebody read a property that is not stored. For accessors only.
    /// - Parameter keyPath: the property.
    public func accessTransient<Value>(_ keyPath: @autoclosure () -> KeyPath<Self, Value>) {
        guard storage.core.observes else { return }
        let observation = observation
        observation.hasTransients = true
        observation.registrar.access(self, keyPath: keyPath())
    }

    /// Tells observers that a property that is not stored is about to change. For accessors only.
    /// - Parameter keyPath: the property.
    public func willChangeTransient<Value>(_ keyPath: @autoclosure () -> KeyPath<Self, Value>) {
        storage.observation?.registrar.willSet(self, keyPath: keyPath())
    }

    /// Tells observers that a property that is not stored has changed. For accessors only.
    /// - Parameter keyPath: the property.
    public func didChangeTransient<Value>(_ keyPath: @autoclosure () -> KeyPath<Self, Value>) {
        storage.observation?.registrar.didSet(self, keyPath: keyPath())
    }
}

extension ManagedObjectContext {
    private var watching: StateWatch {
        if let watch { return watch }
        let made = StateWatch()
        watch = made
        return made
    }

    /// Notes that somebody asked whether the context has edits.
    func trackChanges() {
        guard core.observes else { return }
        let watch = watching
        watch.registrar.access(self, keyPath: \.hasChanges)
        if watch.hasChanges == nil { watch.hasChanges = hasOwnEdits }
        if watch.hasChanges != hasOwnEdits { watch.isDoubtful = true }
    }

    /// Notes that somebody asked whether there is something to undo or to redo.
    func trackUndo(_ keyPath: KeyPath<ManagedObjectContext, Bool>) {
        guard core.observes else { return }
        let watch = watching
        watch.registrar.access(self, keyPath: keyPath)
        (watch.canUndo, watch.canRedo) = (hasUndo, hasRedo)
    }

    private func announceUndo(_ watch: StateWatch) -> Bool {
        guard let canUndo = watch.canUndo, let canRedo = watch.canRedo else { return false }
        var told: [KeyPath<ManagedObjectContext, Bool>] = []
        if canUndo != hasUndo { told.append(\.canUndo) }
        if canRedo != hasRedo { told.append(\.canRedo) }
        if told.isEmpty { return false }
        (watch.canUndo, watch.canRedo) = (hasUndo, hasRedo)
        observersTold += 1
        defer { observersTold -= 1 }
        for keyPath in told {
            watch.registrar.willSet(self, keyPath: keyPath)
            watch.registrar.didSet(self, keyPath: keyPath)
        }
        return true
    }

    fileprivate func watchState(of object: any ManagedObject) {
        let id = object.storage.object
        // After a reset another object has that ID.
        if let known = watching.objects[id], known.object === object {
            if known.isOld { watching.objects[id]?.isDoubtful = true }
            return
        }
        watching.objects[id] = StateWatch.Watched(object)
        watching.prune { registered($0) != nil }
    }

    /// Notes that a to-many relationship was read, if its owner has observers.
    func watchList(of owner: any ManagedObject, _ slot: Int) {
        guard core.observes, owner.storage.observation != nil else { return }
        if watching.lists[owner.storage.object, default: []].insert(slot).inserted {
            watching.prune { registered($0) != nil }
        }
    }

    /// Whether another part of a list may be read alone: who observes it hears of changes in the
    /// parts that were read, and these are not too many.
    func mayWatchPage(of owner: any ManagedObject, _ slot: Int) -> Bool {
        guard let watch, !watch.pages.isEmpty else { return true }
        let key = ToManyKey(owner: owner.storage.object, slot: slot)
        return (watch.pages[key]?.count ?? 0) < StateWatch.pagesMax
    }

    /// Notes that a part of a to-many relationship was read, if its owner has observers.
    func watchPage(
        of owner: any ManagedObject,
        _ slot: Int,
        _ positions: Range<Int>,
        _ ids: [ObjectID]
    ) {
        guard core.observes, owner.storage.observation != nil else { return }
        watchList(of: owner, slot)
        let key = ToManyKey(owner: owner.storage.object, slot: slot)
        watching.pages[key, default: [:]][positions] = ids
    }

    // MARK: States

    var isWhole: Bool {
        phase == .idle && hookObject == nil && editsUnderWay == 0 && observersTold == 0
    }

    /// Tells of all states that differ from what was told.
    /// - Complexity: O(objects that were asked for their state).
    func announceStates() {
        guard let watch else { return }
        guard isWhole else {
            watch.isBehind = true
            return
        }
        // An observer that changes states for ever is left to the next edit.
        for _ in 0..<16 {
            watch.isBehind = false
            var isTold = announceChanges(watch)
            let old = watch.objects.filter { $0.value.isOld }.keys.sorted()
            for id in old where announceState(of: id, watch) { isTold = true }
            if !isTold, !watch.isBehind { return }
        }
    }

    /// The same after an edit that changes the state of one object only. O(1), unless an observer
    /// has edited others meanwhile.
    func announceStates(of object: any ManagedObject) {
        guard let watch else { return }
        guard isWhole, !watch.isBehind else { return announceStates() }
        let isTold = announceChanges(watch)
        if announceState(of: object.storage.object, watch) || isTold { announceStates() }
    }

    private func announceChanges(_ watch: StateWatch) -> Bool {
        let isTold = announceUndo(watch)
        return announceHasChanges(watch) || isTold
    }

    private func announceHasChanges(_ watch: StateWatch) -> Bool {
        guard let told = watch.hasChanges, told != hasOwnEdits || watch.isDoubtful else {
            return false
        }
        observersTold += 1
        defer { observersTold -= 1 }
        watch.hasChanges = hasOwnEdits
        watch.isDoubtful = false
        watch.registrar.willSet(self, keyPath: \.hasChanges)
        watch.registrar.didSet(self, keyPath: \.hasChanges)
        return true
    }

    private func announceState(of id: ObjectID, _ watch: StateWatch) -> Bool {
        guard let told = watch.objects[id] else { return false }
        guard let object = told.object, let observation = object.storage.observation else {
            watch.objects[id] = nil
            return false
        }
        var slots: [Int] = []
        if told.isDoubtful || told.isDeleted != object.storage.isDeleted {
            slots.append(StateSlot.isDeleted.rawValue)
        }
        if told.isDoubtful || told.hasChanges != object.storage.hasChanges {
            slots.append(StateSlot.hasChanges.rawValue)
        }
        if slots.isEmpty { return false }
        watch.objects[id] = StateWatch.Watched(object)
        observation.announce(object, slots, isBefore: true)
        observation.announce(object, slots, isBefore: false)
        return true
    }

    // MARK: Lists

    /// A list that was read, as it was: its members, or how many there were.
    struct WatchedList {
        let object: any ManagedObject
        let slot: Int
        fileprivate let members: [ObjectID]?
        fileprivate let count: Int
        fileprivate let pages: [Range<Int>: [ObjectID]]
    }

    /// The lists that observers read and that a move of the context may change.
    /// - Parameter changes: what the commits did; nil: nobody knows.
    /// - Complexity: O(lists that were read x log n).
    func watchedLists(_ changes: [ObjectChanges]?) -> [WatchedList] {
        guard let watch, !watch.lists.isEmpty else { return [] }
        let entities = changes.map { Set($0.map(\.entity)) }
        var found: [WatchedList] = []
        for (id, slots) in watch.lists.sorted(by: { $0.key < $1.key }) {
            guard let object = registered(id), object.storage.observation != nil else {
                watch.lists[id] = nil
                continue
            }
            if object.storage.isDeleted { continue }
            for slot in slots.sorted() {
                guard let relationship = object.storage.model.properties[slot].relationship,
                    entities?.contains(relationship.memberEntity) ?? true
                else { continue }
                let list = object.storage.related?.first { $0.slot == slot }
                let count =
                    list == nil ? try? savedCount(of: object, slot: slot, relationship) : nil
                found.append(
                    WatchedList(
                        object: object,
                        slot: slot,
                        members: list?.ids,
                        count: count ?? 0,
                        pages: watch.pages[ToManyKey(owner: id, slot: slot)] ?? [:]
                    )
                )
            }
        }
        return found
    }

    /// Lists without inverse that observers read and that may have an object: nothing on the other
    /// side tells of them when it goes or comes. Reads nothing.
    /// - Complexity: O(lists that were read), and O(members) for each that leads to the entity.
    func observedLists(
        with id: ObjectID,
        _ model: EntityModel
    ) -> [(owner: any ManagedObject, slot: Int)] {
        guard let watch, !watch.lists.isEmpty else { return [] }
        var found: [(owner: any ManagedObject, slot: Int)] = []
        for (owner, slots) in watch.lists {
            guard let object = registered(owner), object.storage.observation != nil,
                !object.storage.isDeleted
            else { continue }
            for slot in slots {
                guard let relationship = object.storage.model.properties[slot].relationship,
                    relationship.inverseSlot == nil, relationship.target == model.record.id
                else { continue }
                let edit = toManyEdits[ToManyKey(owner: owner, slot: slot)]?.says(id)
                let list = object.storage.related?.first { $0.slot == slot }
                if edit ?? list?.ids.contains(id) ?? true { found.append((object, slot)) }
            }
        }
        return found.sorted {
            ($0.owner.storage.object, $0.slot) < ($1.owner.storage.object, $1.slot)
        }
    }

    /// Tells who observes these lists.
    func announce(_ lists: [(owner: any ManagedObject, slot: Int)], isBefore: Bool) {
        for list in lists {
            list.owner.storage.observation?.announce(list.owner, [list.slot], isBefore: isBefore)
        }
    }

    private func hasOtherPages(_ list: WatchedList, _ relationship: RelationshipModel) -> Bool {
        guard let snapshot, !list.pages.isEmpty else { return false }
        let id = list.object.storage.object
        return list.pages.contains { positions, ids in
            let now = try? container.translating { () throws(RecordError) in
                try snapshot.relatedIDs(relationship.record, of: id, at: positions)
            }
            return now.map { $0 != ids } ?? false
        }
    }

    /// Tells of the lists that are others now. Call it when the context has moved.
    func announceChanged(_ lists: [WatchedList]) {
        for list in lists where !list.object.storage.isDeleted {
            let (object, slot) = (list.object, list.slot)
            guard let relationship = object.storage.model.properties[slot].relationship else {
                continue
            }
            if let members = list.members {
                guard let now = try? savedMembers(of: object, slot: slot), now != members else {
                    continue
                }
            } else {
                let now = try? savedCount(of: object, slot: slot, relationship)
                guard now.map({ $0 != list.count }) ?? false || hasOtherPages(list, relationship)
                else { continue }
            }
            watch?.pages[ToManyKey(owner: object.storage.object, slot: slot)] = nil
            object.storage.observation?.announce(object, [slot], isBefore: true)
            object.storage.observation?.announce(object, [slot], isBefore: false)
        }
    }
}

extension RelationshipModel {
    /// The entity whose rows say who is a member.
    fileprivate var memberEntity: EntityID {
        if case .link(let link) = record.storage { return link.entity }
        return target
    }
}
