// How the code of a stage names entities and objects, and what it is told when a name is wrong.

import VarveBase
import VarveEngine
import VarveRecords

extension Migration {
    func identity(_ entity: EntityID, _ object: ObjectID) -> ManagedObjectID {
        ManagedObjectID(store: change.store.identity, entity: entity, object: object)
    }

    func check(_ id: ManagedObjectID) throws(StoreError) {
        if id.store == change.store.identity { return }
        throw error(.foreignID, "the ID belongs to another store", nil, nil, id, nil)
    }

    /// The number of an object that a relationship is to lead to. One of an entity that goes stands
    /// for the object that takes its number.
    func number(
        of id: ManagedObjectID,
        for relationship: RecordRelationship,
        _ entity: String,
        _ name: String
    ) throws(StoreError) -> ObjectID {
        try check(id)
        if id.entity == relationship.target || change.isGoing(id.entity) { return id.object }
        let target = change.new.entity(relationship.target)?.name ?? ""
        let given = change.new.entity(id.entity)?.name ?? "object of no entity"
        throw error(
            .wrongEntity,
            "\(entity).\(name) leads to a \(target) and was set to a \(given)",
            entity,
            name,
            id,
            "Set it to the ID of a \(target)."
        )
    }

    // MARK: Entities

    func oldEntity(_ name: String) throws(StoreError) -> RecordEntity {
        if let entity = change.old.entity(named: name) { return entity }
        throw unknown(name, in: change.old, "before")
    }

    func newEntity(_ name: String) throws(StoreError) -> RecordEntity {
        if let entity = change.new.entity(named: name), !change.isGoing(entity.id) { return entity }
        throw unknown(name, in: change.new, "after")
    }

    /// By the name after, else by the name before.
    func stayingEntity(_ name: String) throws(StoreError) -> RecordEntity {
        let named = change.new.entity(named: name)
        let former = change.old.entity(named: name).flatMap { change.new.entity($0.id) }
        if let entity = named ?? former, !change.isGoing(entity.id) {
            if change.old.entity(entity.id) == nil { throw isNew(entity.name) }
            return entity
        }
        throw unknown(name, in: change.new, "after")
    }

    func isNew(_ entity: String) -> StoreError {
        error(
            .invalidRequest,
            "\(entity) is new in this stage and has no rows to update",
            entity,
            nil,
            nil,
            "Add rows with migration.insert."
        )
    }

    private func unknown(
        _ name: String,
        in schema: RecordSchema,
        _ when: String
    ) -> StoreError {
        let names = schema.entities.filter { !change.isGoing($0.id) || when == "before" }
            .map(\.name).joined(separator: ", ")
        return error(
            .unknownEntity,
            "there is no entity \(name) \(when) the stage to version \(change.new.version)",
            name,
            nil,
            nil,
            "The entities \(when) it are: \(names)."
        )
    }

    func unknown(_ name: String, of entity: RecordEntity, isOld: Bool) -> StoreError {
        let names = entity.attributes.map(\.name) + entity.relationships.map(\.name)
        let when = isOld ? "before" : "after"
        return error(
            .unknownAttribute,
            "\(entity.name) has no \(name) \(when) the stage to version \(change.new.version)",
            entity.name,
            name,
            nil,
            "\(entity.name) has \(when) it: \(names.joined(separator: ", "))."
        )
    }

    // MARK: Errors

    func error(
        _ code: StoreError.Code,
        _ message: String,
        _ entity: String?,
        _ attribute: String?,
        _ object: ManagedObjectID?,
        _ advice: String?
    ) -> StoreError {
        StoreError(
            code,
            message,
            place: .init(
                store: container.place,
                entity: entity,
                attribute: attribute,
                object: object
            ),
            suggestion: advice
        )
    }

    func translating<Value>(
        _ body: () throws(RecordError) -> Value
    ) throws(StoreError) -> Value {
        do throws(RecordError) {
            return try body()
        } catch {
            throw StoreError.translating(error, in: container)
        }
    }

    /// The same for calls that run the app's code: its errors pass through.
    func translatingAny(_ body: () throws -> Void) throws {
        do { try body() } catch { throw StoreError.translatingAny(error, in: container) }
    }
}
