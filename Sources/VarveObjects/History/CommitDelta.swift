// What lies between two commits, or between a commit and what a context shows, as a delta.
//
// Invariants
// - A relationship is in it from each end whose value changed: of columns the rows say so, of links
//   their own rows do, which are looked up on the side that has them.
// - A reference to an object that the commit does not have is none.
// - What is derived is not in it: it follows the rest, also the part that others changed since.

import VarveBase
import VarveEngine
import VarveRecords

/// Makes the delta of a commit, from the states before and after it.
struct CommitDelta {
    private let context: ManagedObjectContext
    private let before: RecordSnapshot
    private let after: RecordSnapshot
    private var delta = GraphDelta()
    private var schema: SchemaModel { context.container.schema }
    /// Lists that lost what was reached, each taken down once.
    private var taken: Set<ToManyKey> = []

    private struct ListKey: Hashable {
        let owner: ObjectID
        let entity: EntityID
        let slot: Int
    }

    init(_ context: ManagedObjectContext, before: RecordSnapshot, after: RecordSnapshot) {
        self.context = context
        self.before = before
        self.after = after
    }

    /// - Parameter changes: what lies between the two states.
    /// - Complexity: O(log n) for each changed row; of an ordered list, and of each list of a
    ///   deleted or new object, its members.
    mutating func make(of changes: CommitChanges) throws(StoreError) -> GraphDelta {
        var ids: [EntityID: Set<ObjectID>] = [:]
        var links: [EntityID: [ObjectID]] = [:]
        changes.forEachGroup { entity, objects, _ in
            if schema.entity(entity) != nil {
                ids[entity, default: []].formUnion(objects)
            } else {
                links[entity, default: []] += Array(objects)
            }
        }
        var slots: [EntityID: [ObjectID: Set<Int>]] = [:]
        for (hidden, rows) in links.sorted(by: { $0.key < $1.key }) {
            for key in try lists(hidden, rows) {
                slots[key.entity, default: [:]][key.owner, default: []].insert(key.slot)
                ids[key.entity, default: []].insert(key.owner)
            }
        }
        for (entity, objects) in ids.sorted(by: { $0.key < $1.key }) {
            guard let model = schema.entity(entity) else { continue }
            for id in objects.sorted() {
                try add(id, model, slots[entity]?[id] ?? [])
            }
        }
        return delta
    }

    /// What the deletion of an object did to it, and to those that it was linked with and that are
    /// there still. Empty: it is there, or was not.
    /// - Parameters:
    ///   - owner: the object from which a cascade came to it.
    ///   - findsLinks: whether what led to it is looked for.
    ///   - reached: all that went with it.
    ///   - edited: properties that have edits of their own, which say what becomes of them.
    /// - Complexity: O(log n) for each relationship and each object linked with it; of a list with
    ///   an order, and of each list of the object, its members.
    mutating func make(
        ofDeletion id: ObjectID,
        _ model: EntityModel,
        by owner: ObjectID?,
        findsLinks: Bool,
        with reached: Set<ObjectID>,
        but edited: Set<ToManyKey>
    ) throws(StoreError) -> GraphDelta {
        delta = GraphDelta()
        guard try side(id, model, before) != nil, try side(id, model, after) == nil else {
            return delta
        }
        try add(id, model, [])
        if var item = delta.items.popLast() {
            item.reachedBy = owner
            // What a step knows begins where that one began, without its edits.
            if findsLinks, let object = context.registered(id) {
                item = item.of(object)
                keepBlobs(of: object)
            }
            delta.items.append(item)
        }
        if !findsLinks { return delta }
        for (owner, far, slot) in try neighbours(id, model) where !reached.contains(owner) {
            guard let relationship = far.properties[slot].relationship,
                !edited.contains(ToManyKey(owner: owner, slot: slot)),
                relationship.inverseSlot.map({
                    !edited.contains(ToManyKey(owner: id, slot: $0))
                }) ?? true,
                let new = try side(owner, far, after)
            else { continue }
            if let item = try link(from: owner, far, slot, relationship, to: id, new, reached) {
                delta.items.append(item)
            }
        }
        return delta
    }

    /// What a relationship loses with an object, or a list with all that went; nil: nothing.
    private mutating func link(
        from owner: ObjectID,
        _ far: EntityModel,
        _ slot: Int,
        _ relationship: RelationshipModel,
        to id: ObjectID,
        _ new: [StoredValue],
        _ reached: Set<ObjectID>
    ) throws(StoreError) -> GraphDelta.Item? {
        var values: [GraphDelta.Value] = []
        var lists: [GraphDelta.List] = []
        if !relationship.isToMany {
            guard new[slot] == .null else { return nil }
            values = [GraphDelta.Value(slot: slot, before: .reference(id), after: .null)]
        } else {
            guard relationship.isRecorded,
                taken.insert(ToManyKey(owner: owner, slot: slot)).inserted
            else { return nil }
            let was = try members(owner, far, relationship, before)
            let now = Set(try members(owner, far, relationship, after))
            let left = was.filter { now.contains($0) }
            let all = was.filter { now.contains($0) || reached.contains($0) }
            lists = [
                GraphDelta.List(
                    slot: slot,
                    removed: all.filter { !now.contains($0) },
                    added: [],
                    members: relationship.isOrdered ? (all, left) : nil
                )
            ]
        }
        return GraphDelta.Item(
            model: far,
            id: owner,
            existed: true,
            exists: true,
            wasSaved: true,
            object: nil,
            values: values,
            lists: lists
        )
    }

    /// The properties that led to an object before.
    private func neighbours(
        _ id: ObjectID,
        _ model: EntityModel
    ) throws(StoreError) -> [(owner: ObjectID, far: EntityModel, slot: Int)] {
        var found: [(owner: ObjectID, far: EntityModel, slot: Int)] = []
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship,
                let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target)
            else { continue }
            let others =
                relationship.isToMany
                ? try members(id, model, relationship, before)
                : try side(id, model, before)?[slot].object.map { [$0] } ?? []
            found += others.map { ($0, far, inverse) }
        }
        for owner in schema.entities {
            for slot in owner.relationshipSlots {
                guard let relationship = owner.properties[slot].relationship,
                    relationship.inverseSlot == nil, relationship.target == model.record.id
                else { continue }
                let others = try translating { () throws(RecordError) in
                    try before.owners(owner.record, relationship.record, of: id)
                }
                found += others.map { ($0, owner, slot) }
            }
        }
        return found
    }

    /// The lists in which changed link rows stand.
    private func lists(
        _ hidden: EntityID,
        _ rows: [ObjectID]
    ) throws(StoreError) -> Set<ListKey> {
        var keys: Set<ListKey> = []
        if context.has(.revertForgetsLinks) { return keys }
        let ends = schema.record.relationships(linkedBy: hidden)
        for snapshot in [before, after] {
            let found = try translating { () throws(RecordError) in
                try snapshot.rows(hidden, rows)
            }
            for row in found.compactMap(\.self) {
                for (entity, relationship) in ends {
                    guard case .link(let link) = relationship.storage,
                        let slot = schema.entity(entity.id)?.slot(named: relationship.name),
                        let owner = try translating({ () throws(RecordError) in
                            try row.reference(link.ownColumn)
                        })
                    else { continue }
                    keys.insert(ListKey(owner: owner, entity: entity.id, slot: slot))
                }
            }
        }
        return keys
    }

    private mutating func add(
        _ id: ObjectID,
        _ model: EntityModel,
        _ slots: Set<Int>
    ) throws(StoreError) {
        let (old, new) = (try side(id, model, before), try side(id, model, after))
        let isWhole = (old == nil) != (new == nil)
        guard old != nil || new != nil else { return }
        var values: [GraphDelta.Value] = []
        for (slot, property) in model.properties.enumerated()
        where context.isLaid(property) {
            let was = old?[slot] ?? .null
            var now = new?[slot] ?? .null
            // A deleted object leads to what it led to at last.
            if new == nil, property.relationship != nil { now = was }
            if !isWhole, was.isSame(as: now) { continue }
            keepBlob(was, before)
            values.append(GraphDelta.Value(slot: slot, before: was, after: now))
        }
        var lists: [GraphDelta.List] = []
        for slot in model.relationshipSlots where isWhole || slots.contains(slot) {
            guard let relationship = model.properties[slot].relationship,
                relationship.isRecorded
            else { continue }
            let was = try members(id, model, relationship, old == nil ? nil : before)
            let now = try members(id, model, relationship, new == nil ? nil : after)
            let list = GraphDelta.List.between(
                was,
                new == nil ? was : now,
                slot,
                hidden: [],
                isOrdered: relationship.isOrdered,
                isWhole: isWhole
            )
            if let list { lists.append(list) }
        }
        if values.isEmpty, lists.isEmpty, !isWhole { return }
        delta.items.append(
            GraphDelta.Item(
                model: model,
                id: id,
                existed: old != nil,
                exists: new != nil,
                wasSaved: true,
                object: nil,
                values: values,
                lists: lists
            )
        )
    }

    private func members(
        _ id: ObjectID,
        _ model: EntityModel,
        _ relationship: RelationshipModel,
        _ snapshot: RecordSnapshot?
    ) throws(StoreError) -> [ObjectID] {
        guard let snapshot else { return [] }
        return try translating { () throws(RecordError) in
            try snapshot.relatedIDs(model.record, relationship.record, of: id)
        }
    }

    /// The columns of an object by slot; nil: the commit does not have it.
    private func side(
        _ id: ObjectID,
        _ model: EntityModel,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> [StoredValue]? {
        try context.columns(of: id, model, at: snapshot)
    }

    /// Those of its unsaved edits.
    private mutating func keepBlobs(of object: any ManagedObject) {
        for case .blob(let reference)? in object.storage.edits?.values ?? [] {
            delta.blobs[reference] = context.blob(for: reference)
        }
    }

    private mutating func keepBlob(_ value: StoredValue, _ snapshot: RecordSnapshot) {
        guard case .blob(let reference) = value else { return }
        let source = BlobSource(keeper: .snapshot(snapshot), container: context.container)
        delta.blobs[reference] = Blob(reference: reference, source: source)
    }

    private func translating<Value>(
        _ body: () throws(RecordError) -> Value
    ) throws(StoreError) -> Value {
        try context.container.translating(body)
    }
}

extension ManagedObjectContext {
    /// Whether a delta between commits says what a property becomes.
    fileprivate func isLaid(_ property: PropertyModel) -> Bool {
        if has(.revertForgetsFields), let member = property.member, member.fill == nil {
            return false
        }
        return property.column != nil && (property.derive == nil || has(.derivedIsReverted))
    }

    /// The attributes and to-one relationships of an object at a commit, by slot, without
    /// references to what that commit does not have; nil: it does not have the object.
    func columns(
        of id: ObjectID,
        _ model: EntityModel,
        at snapshot: RecordSnapshot
    ) throws(StoreError) -> [StoredValue]? {
        try container.translating { () throws(RecordError) in
            guard let row = try snapshot.row(model.record.id, id) else { return nil }
            var values: [StoredValue] = []
            values.reserveCapacity(model.properties.count)
            for property in model.properties {
                guard let column = property.column else {
                    values.append(.null)
                    continue
                }
                var value = try snapshot.value(of: row, column)
                if let target = value.object, let far = property.relationship?.target,
                    try !snapshot.exists(far, target)
                {
                    value = .null
                }
                values.append(value)
            }
            return values
        }
    }

    /// What lies between an object at a commit and as this context shows it.
    func delta(
        of id: ObjectID,
        _ model: EntityModel,
        from past: RecordSnapshot
    ) throws(StoreError) -> GraphDelta? {
        guard let old = try columns(of: id, model, at: past) else { return nil }
        let isHere = isThere(id, model)
        let object = object(id, model)
        var delta = GraphDelta()
        var values: [GraphDelta.Value] = []
        for (slot, property) in model.properties.enumerated() where isLaid(property) {
            var now = StoredValue.null
            if isHere, let value = value(of: object, slot: slot), leads(value, model, slot) {
                now = value
            }
            if isHere, old[slot].isSame(as: now) { continue }
            if case .blob(let reference) = old[slot] {
                let source = BlobSource(keeper: .snapshot(past), container: container)
                delta.blobs[reference] = Blob(reference: reference, source: source)
            }
            values.append(GraphDelta.Value(slot: slot, before: old[slot], after: now))
        }
        var lists: [GraphDelta.List] = []
        for slot in model.relationshipSlots {
            guard let relationship = model.properties[slot].relationship, relationship.isToMany
            else { continue }
            let was = try container.translating { () throws(RecordError) in
                try past.relatedIDs(model.record, relationship.record, of: id)
            }
            let list = GraphDelta.List.between(
                was,
                isHere ? try members(of: object, slot: slot) : [],
                slot,
                hidden: [],
                isOrdered: relationship.isOrdered,
                isWhole: !isHere
            )
            if let list { lists.append(list) }
        }
        delta.items = [
            GraphDelta.Item(
                model: model,
                id: id,
                existed: true,
                exists: isHere,
                wasSaved: true,
                object: nil,
                values: values,
                lists: lists
            )
        ]
        return delta
    }
}
