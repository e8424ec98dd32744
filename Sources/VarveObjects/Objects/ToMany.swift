// A to-many relationship of one object, as a collection that loads its members one by one.
//
// Invariants
// - Holding it reads nothing. `ids`, `count` and `contains` ask the relationship's index only; each
//   member is a fault of its own, unless a request prefetched the list (`ToManyIterator.swift`).
// - Once its members were read it is a stable collection: an index that was good stays good, though
//   the context moves on. What is changed through it shows at once; others' changes show in the
//   one that the property gives next.

import VarveBase
import VarveRecords

/// The members of a to-many relationship. Unordered ones come by object ID.
///
/// It reads its members when they are first asked for, and stays as it was read until it is changed
/// through this value; the owner's property gives a new one. So it may be changed while it is gone
/// through, and a list on screen never asks for a row that is not there. When its context was reset
/// or has ended, a list that was read has members without values.
///
/// A loop over it, `map`, `filter` and `reduce` make up to 64 members together. They are faults;
/// those of a list that a request prefetched come with their values, and rows that did not stay in
/// memory are read in one pass. A member at an index is made by itself.
///
/// Adding and removing load neither the other members nor, as far as the inverse allows, the added
/// one.
public struct ToMany<Target: ManagedObject>: RandomAccessCollection {
    let owner: any ManagedObject
    let slot: Int
    private let read = ReadMembers()

    init(owner: any ManagedObject, slot: Int) {
        self.owner = owner
        self.slot = slot
    }

    var context: ManagedObjectContext? {
        owner.storage.state.contains(.invalid) ? nil : owner.storage.core.context
    }

    /// A read of the relationship that fails is remembered like that of a property.
    private func reading<Value>(
        _ fallback: @autoclosure () -> Value,
        _ body: (ManagedObjectContext) throws(StoreError) -> Value
    ) -> Value {
        guard let context else {
            owner.noteEndedContext(.read)
            return fallback()
        }
        do throws(StoreError) {
            return try body(context)
        } catch {
            context.note(error, owner)
            return fallback()
        }
    }

    /// Whoever observes the owner hears when others change the list.
    private func watch() {
        guard !read.isWatched, owner.storage.observation != nil, let context else { return }
        context.watchList(of: owner, slot)
        read.isWatched = true
    }

    @usableFromInline var members: [ObjectID] {
        if let known = read.ids { return known }
        watch()
        let ids = reading(Array(repeating: ReadMembers.unread, count: read.told)) {
            context throws(StoreError) in
            if let watch = context.faultWatch, context.hasFault(owner, slot: slot) {
                watch.isRead(owner.storage.model, slot, context)
            }
            return try context.members(of: owner, slot: slot)
        }
        read.ids = ids
        return ids
    }

    /// The members' IDs. Reads the relationship only, once.
    public var ids: [Target.ID] {
        guard let context, let model = context.container.schema.entity(of: Target.self) else {
            return []
        }
        let (store, entity) = (context.container.identity, model.record.id)
        return members.filter { $0 != ReadMembers.unread }.map {
            TypedObjectID(ManagedObjectID(store: store, entity: entity, object: $0))
        }
    }

    /// How many members there are. Loads none of them.
    public var count: Int {
        if let known = read.ids { return known.count }
        watch()
        // What a deleted object's list shows depends on who holds what. In the middle of an edit
        // the count by the index may be another one. So the list is read once.
        if !owner.storage.state.isDisjoint(with: [.deleted, .gone]) { return members.count }
        if let context, context.observersTold > 0 { return members.count }
        read.told = reading(0) { context throws(StoreError) in
            try context.memberCount(of: owner, slot: slot)
        }
        return read.told
    }

    /// Whether there is none.
    public var isEmpty: Bool { count == 0 }
    /// 0.
    public var startIndex: Int { 0 }
    /// The number of members.
    public var endIndex: Int { members.count }

    @usableFromInline func member(_ id: ObjectID) -> Target {
        let core = owner.storage.core
        guard let model = core.container.schema.entity(of: Target.self) else {
            preconditionFailure("\(Target.entityName) is not in the container's schema")
        }
        if id != ReadMembers.unread, let context {
            if let watch = context.faultWatch, context.registered(id) == nil {
                watch.led(to: id, owner.storage.model, slot)
            }
            if context.inHand == nil,
                let object = context.core.registry.find(id, entity: model.number, as: Target.self)
            {
                return object
            }
            if let object = context.object(id, model) as? Target { return object }
        } else if let object = core.context?.registered(id) as? Target {
            // The insertion of the owner was rolled back; this one is still here.
            return object
        }
        // The owner left its context after the list was read: an object that left with it.
        return Target(
            storage: ObjectStorage(core: core, model: model, object: id, state: .invalid)
        )
    }

    /// A member: a registered object or a fault.
    public subscript(index: Int) -> Target {
        member(members[index])
    }

    /// Whether `target` is a member now. Asks the index only.
    public func contains(_ target: Target) -> Bool {
        watch()
        return reading(false) { context throws(StoreError) in
            // Observers hear of other members if it is known which there were.
            if read.isWatched { _ = try context.members(of: owner, slot: slot) }
            return try context.isMember(target.storage.object, of: owner, slot: slot)
        }
    }

    /// Reads the relationship: the throwing way to do what `ids` does.
    public func load() throws {
        guard let context else { return }
        read.ids = try context.members(of: owner, slot: slot)
    }

    /// The members at some positions, with their values: a page of a long list. Fewer where there
    /// are fewer.
    ///
    /// Reads the index entries and the rows of these positions, the rows in one pass. The list as a
    /// whole is read only if it has unsaved edits or was read before. A page goes by the list as it
    /// is now: one that was read before another context's commit and one behind it may have a
    /// member in common, or leave one out.
    ///
    /// - Parameter positions: from 0 on, as in the list; there is nothing before and behind it.
    /// - Throws: `StoreError`: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(log n + positions) for a saved list without unsaved edits, else O(n).
    public func page(_ positions: Range<Int>) throws -> [Target] {
        let positions = positions.clamped(to: 0..<Int.max)
        guard let context, let model = context.container.schema.entity(of: Target.self) else {
            return []
        }
        watch()
        let ids: [ObjectID]
        if let known = read.ids, !known.contains(ReadMembers.unread) {
            ids = Array(known[positions.clamped(to: known.indices)])
        } else {
            ids = try context.members(of: owner, slot: slot, at: positions)
        }
        return try context.filledObjects(ids, model).compactMap { $0 as? Target }
    }

    /// The context, for an edit.
    private var edited: ManagedObjectContext? {
        if context == nil { owner.noteEndedContext(.edit) }
        return context
    }

    /// Adds an object at the end, unless it is a member already. Loads no other member. A deleted
    /// object, or one of another context, is a refused edit.
    public func append(_ target: Target) {
        read.ids = nil
        edited?.addMember(target, to: owner, slot: slot)
    }

    /// Adds objects at the end.
    public func append(contentsOf targets: some Sequence<Target>) {
        let targets = Array(targets)
        edited?.asOneEdit { for target in targets { append(target) } }
    }

    /// Adds an object at a position, or moves it there. A position outside the list is its nearest
    /// end. A relationship that is not ordered has no positions: there the edit is refused, the
    /// next save throws `invalidRequest`; use `append`.
    public func insert(_ target: Target, at index: Int) {
        if owner.storage.model.properties[slot].relationship?.isOrdered == false {
            context?.refuse(owner, slot, .positionWithoutOrder(owner, slot))
            return
        }
        read.ids = nil
        edited?.addMember(target, to: owner, slot: slot, at: index)
    }

    /// Removes an object, if it is a member.
    public func remove(_ target: Target) {
        read.ids = nil
        edited?.removeMember(target, from: owner, slot: slot)
    }

    /// Removes all members.
    public func removeAll() {
        edited?.asOneEdit {
            forgetRefusal()
            for id in editedMembers { remove(member(id)) }
        }
    }

    /// Makes these objects the members; in an ordered relationship in this order.
    public func replaceAll(with targets: [Target]) {
        edited?.asOneEdit {
            forgetRefusal()
            replace(with: targets)
        }
    }

    /// All members are named: what was refused of them before is made good.
    private func forgetRefusal() {
        guard owner.storage.state.isDisjoint(with: [.deleted, .ended, .invalid]) else { return }
        context?.forgetRefusal(owner, slot)
    }

    /// Of what others deleted the members show no edits.
    private var editedMembers: [ObjectID] {
        guard owner.storage.state.contains(.gone), let context else { return members }
        return (try? context.membersAsWanted(of: owner, slot: slot)) ?? members
    }

    private func replace(with targets: [Target]) {
        let wanted = Set(targets.map { $0.storage.object })
        for id in editedMembers where !wanted.contains(id) { remove(member(id)) }
        append(contentsOf: targets)
        if owner.storage.model.properties[slot].relationship?.isOrdered == true {
            var seen: Set<ObjectID> = []
            let ids = targets.map { $0.storage.object }.filter { seen.insert($0).inserted }
            read.ids = nil
            context?.arrange(ids, of: owner, slot: slot)
        }
    }
}

/// The members as one `ToMany` read them.
final class ReadMembers {
    /// Stands for members that were counted and then could not be read: a collection has as many
    /// as it said. They have no values, and the failure is remembered as any.
    static let unread = ObjectID(0)

    var ids: [ObjectID]?
    var told = 0
    var isWatched = false
}

extension ManagedObject {
    /// Whether a to-many relationship was not read yet. Loads nothing.
    public func hasFault<Target>(_ column: ToManyColumn<Self, Target>) -> Bool {
        storage.core.context?.hasFault(self, slot: column.definition.slot) ?? true
    }

    /// Whether the object that a to-one relationship leads to is a fault, or not known yet. Loads
    /// nothing.
    public func hasFault<Target>(_ column: ToOneColumn<Self, Target>) -> Bool {
        storage.core.context?.hasFault(self, slot: column._definition.slot) ?? true
    }
}
