// Edits that cannot be: of deleted objects, between contexts, or to what no store keeps. Setters do
// not throw, so they are kept out, remembered, and said by the next save.
//
// Invariants
// - A refused edit changes nothing.
// - It is forgotten when the same property is set properly, its object is refreshed without its
//   edits, or the app says that it has seen it. So one mistake does not cost all edits.

import VarveBase
import VarveRecords

/// An edit that was kept out.
public struct RefusedEdit: Sendable {
    /// The object whose property was to be set, or that was to be made or deleted.
    public let object: ManagedObjectID
    /// The property; nil: the object was to be made or deleted.
    public let property: String?
    /// Why: `objectDeleted`, `crossContext`, `reentrantSave`, `invalid`, `invalidRequest`,
    /// `unknownEntity`.
    public let error: StoreError
}

/// What an edit was about.
struct RefusalKey: Hashable {
    let object: ObjectID
    /// Nil: the object as a whole.
    let slot: Int?
}

/// Refused edits in the order in which they were tried; of each property the first.
struct Refusals {
    private(set) var list: [(key: RefusalKey, edit: RefusedEdit)] = []
    /// Those that an edit made good: a transaction that throws takes it back.
    private var madeGood: Set<RefusalKey> = []

    var isEmpty: Bool { list.isEmpty }

    mutating func add(_ edit: RefusedEdit, _ key: RefusalKey) {
        if !list.contains(where: { $0.key == key }) { list.append((key, edit)) }
    }

    /// Takes out those behind the first `count`.
    mutating func cut(to count: Int) { list.removeSubrange(count...) }

    mutating func makeGood(_ isIt: (RefusalKey, RefusedEdit) -> Bool) {
        for (key, edit) in list where isIt(key, edit) { madeGood.insert(key) }
        list.removeAll { madeGood.contains($0.key) && isIt($0.key, $0.edit) }
    }

    /// Nothing brings those of an object back.
    mutating func end(of id: ObjectID) {
        list.removeAll { $0.key.object == id }
        madeGood = madeGood.filter { $0.object != id }
    }

    /// A transaction begins, and none is open.
    mutating func forgetMadeGood() { madeGood = [] }

    /// A transaction threw: those from before it are there, unless they have ended.
    mutating func goBack(to known: Refusals) {
        let left = Set(list.map(\.key)).union(madeGood)
        list = known.list.filter { left.contains($0.key) }
    }
}

extension ManagedObjectContext {
    /// Edits that were kept out since the last save, rollback or `acknowledgeRefusedEdits`, in the
    /// order in which they were tried; of each property the first. One goes when its property is
    /// set properly, or its object deleted or refreshed without its edits. While there are any,
    /// `save` throws the first one's error, with all of them in `details`.
    public var refusedEdits: [RefusedEdit] { refusals.list.map(\.edit) }

    /// Takes note of the refused edits: `save` works again. All other edits stay; the refused ones
    /// were never made.
    public func acknowledgeRefusedEdits() { refusals = Refusals() }

    func refuse(_ object: any ManagedObject, _ slot: Int?, _ error: StoreError) {
        // What belongs to no context any more is set in vain, and not remembered.
        if slot != nil, object.storage.state.contains(.invalid) { return }
        let key = RefusalKey(object: object.storage.object, slot: slot)
        let name = slot.map { object.storage.model.properties[$0].name }
        refusals.add(RefusedEdit(object: object.objectID, property: name, error: error), key)
    }

    func forgetRefusal(_ object: any ManagedObject, _ slot: Int) {
        if refusals.isEmpty { return }
        let known = RefusalKey(object: object.storage.object, slot: slot)
        refusals.makeGood { key, _ in key == known }
    }

    /// A value that could be stored was set, whether it was a new one or not.
    func forgetUnstorable(_ object: any ManagedObject, _ slot: Int) {
        if refusals.isEmpty { return }
        let known = RefusalKey(object: object.storage.object, slot: slot)
        refusals.makeGood { key, edit in key == known && edit.error.code == .invalid }
    }

    /// The object was deleted.
    func forgetRefusals(of id: ObjectID) {
        if !refusals.isEmpty { refusals.makeGood { key, _ in key.object == id } }
    }

    /// Throws what was refused since the last save.
    func checkRefusals() throws(StoreError) {
        guard let first = refusals.list.first?.edit.error else { return }
        var error = first
        error.details = refusals.list.map { _, edit in
            StoreError.Detail(
                code: edit.error.code,
                message: edit.error.message,
                place: edit.error.place,
                objects: [edit.object]
            )
        }
        throw error
    }

    // MARK: What may be

    /// Whether a property of an object may be set here and now; if not, the next save says so.
    func mayEdit(_ object: any ManagedObject, _ slot: Int) -> Bool {
        let state = object.storage.state
        if state.isDisjoint(with: [.deleted, .ended, .invalid]), phase != .writing { return true }
        if state.contains(.invalid) { return false }
        if phase == .writing {
            refuse(object, slot, .editWhileWriting(object, slot))
            return false
        }
        if hookObject === object { return true }
        refuse(object, slot, .editOfDeleted(object, slot))
        return false
    }

    /// Whether a relationship may lead to an object.
    func mayLead(
        from object: any ManagedObject,
        _ slot: Int,
        to target: (any ManagedObject)?
    ) -> Bool {
        guard let target else { return true }
        let state = target.storage.state
        if target.storage.core !== core || state.contains(.invalid) {
            refuse(object, slot, .joinedAcrossContexts(object, target, slot))
            return false
        }
        if state.isDisjoint(with: [.deleted, .gone]) || hookObject === target { return true }
        refuse(object, slot, .relatedToDeleted(object, target, slot))
        return false
    }
}

extension StoreError {
    private static let wayOut =
        "context.acknowledgeRefusedEdits() goes on without the refused edits; all others stand."

    fileprivate static func place(_ object: any ManagedObject, _ slot: Int) -> Place {
        let model = object.storage.model
        return Place(
            entity: model.name,
            attribute: model.properties[slot].name,
            object: object.objectID
        )
    }

    static func editOfDeleted(_ object: any ManagedObject, _ slot: Int) -> StoreError {
        let model = object.storage.model
        return StoreError(
            .objectDeleted,
            "\(model.name).\(model.properties[slot].name) was set after the object was deleted in "
                + "this context",
            place: place(object, slot),
            suggestion: wayOut
        )
    }

    static func relatedToDeleted(
        _ object: any ManagedObject,
        _ target: any ManagedObject,
        _ slot: Int
    ) -> StoreError {
        let model = object.storage.model
        let isPending = target.storage.state.contains(.deleted)
        return StoreError(
            .objectDeleted,
            "\(model.name).\(model.properties[slot].name) was to lead to a "
                + "\(target.storage.model.name) that "
                + (isPending ? "this context deletes" : "is deleted"),
            place: place(object, slot),
            suggestion: "Set \(model.properties[slot].name) to another object or to none; or: "
                + wayOut
        )
    }

    static func joinedAcrossContexts(
        _ object: any ManagedObject,
        _ target: any ManagedObject,
        _ slot: Int
    ) -> StoreError {
        StoreError(
            .crossContext,
            "a \(target.storage.model.name) of another context was joined with a "
                + object.storage.model.name,
            place: place(object, slot),
            suggestion: "Get the object in this context: context.existingObject(with: id), and set "
                + "the property again; or: " + wayOut
        )
    }

    static func deletedAcrossContexts(_ object: any ManagedObject) -> StoreError {
        StoreError(
            .crossContext,
            "a \(object.storage.model.name) of another context was to be deleted",
            place: Place(entity: object.storage.model.name, object: object.objectID),
            suggestion: "Delete it in its own context, or get it in this one: "
                + "context.existingObject(with: id); or: " + wayOut
        )
    }

    static func unstorable(
        _ object: any ManagedObject,
        _ slot: Int,
        _ reason: String
    ) -> StoreError {
        let model = object.storage.model
        let name = model.properties[slot].name
        return StoreError(
            .invalid,
            "\(model.name).\(name) was to be set to a value that \(reason)",
            place: place(object, slot),
            suggestion: "Set \(name) to a value that can be stored; or: " + wayOut
        )
    }

    static func positionWithoutOrder(_ object: any ManagedObject, _ slot: Int) -> StoreError {
        let model = object.storage.model
        let name = model.properties[slot].name
        return StoreError(
            .invalidRequest,
            "an object was to be inserted at a position of \(model.name).\(name), which has no "
                + "order",
            place: place(object, slot),
            suggestion: "Use append, or declare the relationship ordered: true; or: " + wayOut
        )
    }

    static func unlistedEntity(_ object: any ManagedObject) -> StoreError {
        let name = object.storage.model.name
        return StoreError(
            .unknownEntity,
            "a \(name) was made, which the container's schema does not list",
            place: Place(store: object.storage.core.container.place, entity: name),
            suggestion: "List \(name).self in the entities of the schema that the store is opened "
                + "with; or: " + wayOut
        )
    }

    static func editWhileWriting(_ object: any ManagedObject, _ slot: Int?) -> StoreError {
        let model = object.storage.model
        return StoreError(
            .reentrantSave,
            "\(model.name) was edited while the context was being saved",
            place: slot.map { place(object, $0) }
                ?? Place(entity: model.name, object: object.objectID),
            suggestion: "validate and merge policies may only look; willSave and didSave may edit. "
                + "Or: " + wayOut
        )
    }
}
