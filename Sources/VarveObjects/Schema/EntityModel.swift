// An app's entities joined with the numbers that the opened store gave them.
//
// Invariants
// - Immutable after the container opened. Slots are positions in the entity's `Columns`, the same
//   for every container of the process; columns are numbers of this store.

import Synchronization
import VarveBase
import VarveRecords

/// One entity of an opened container.
@usableFromInline final class EntityModel: Sendable {
    let type: any ManagedObject.Type
    let name: String
    let record: RecordEntity
    /// Position among the schema's entities.
    @usableFromInline let number: Int
    /// Turns an object of this entity into what contexts hand around.
    let cast: @Sendable (AnyObject) -> any ManagedObject
    /// By slot.
    let properties: [PropertyModel]
    /// By slot; `noColumn` for to-many relationships.
    @usableFromInline let columns: ColumnTable
    /// Slots of relationships.
    let relationshipSlots: [Int]
    /// Slots of relationships whose targets go with their owner.
    let cascadeSlots: [Int]
    /// Slots of relationships that must lead to so many objects.
    let countedSlots: [Int]
    let slotsByColumn: [ColumnID: Int]
    /// Slots of attributes that must have a value.
    let requiredSlots: [Int]
    /// Slots of attributes.
    let attributeSlots: [Int]
    /// Attributes whose values are checked when they are saved.
    let rules: [(slot: Int, rules: AttributeRules)]
    /// Attributes that are made of others.
    let derived: [(slot: Int, derive: DeriveValue)]
    /// Optional composites.
    let composites: [CompositeSlots]
    /// Slots with a default to evaluate for each new object.
    let defaults: [(slot: Int, make: @Sendable () -> StoredValue)]
    private let emptyValues: [StoredValue?]

    static let noColumn = ColumnID(.max)

    init(
        type: any ManagedObject.Type,
        record: RecordEntity,
        number: Int,
        properties: [PropertyModel]
    ) {
        self.type = type
        self.number = number
        cast = Self.makeCast(type)
        self.name = record.name
        self.record = record
        self.properties = properties
        self.columns = ColumnTable(properties.map { $0.column ?? Self.noColumn })
        self.relationshipSlots = properties.indices.filter { properties[$0].relationship != nil }
        self.cascadeSlots = properties.indices.filter {
            properties[$0].relationship?.rule == .cascade
        }
        self.countedSlots = relationshipSlots.filter { properties[$0].relationship?.count != nil }
        self.slotsByColumn = Dictionary(
            properties.indices.compactMap { slot in properties[slot].column.map { ($0, slot) } },
            uniquingKeysWith: { first, _ in first }
        )
        self.requiredSlots = properties.indices.filter {
            properties[$0].attribute?.isOptional == false
        }
        self.attributeSlots = properties.indices.filter { properties[$0].attribute != nil }
        self.rules = properties.indices.compactMap { slot in
            properties[slot].rules.map { (slot, $0) }
        }
        self.composites = CompositeSlots.all(properties)
        self.derived = properties.indices.compactMap { slot in
            properties[slot].derive.map { (slot, $0) }
        }
        self.defaults = properties.indices.compactMap { slot in
            properties[slot].makeDefault.map { (slot, $0) }
        }
        self.emptyValues = properties.map { $0.column == nil ? nil : .null }
    }

    /// The values of a new object, by slot: defaults, null, and nothing for to-many relationships.
    func makeInsertValues() -> [StoredValue?] {
        var values = emptyValues
        for (slot, make) in defaults { values[slot] = make() }
        if !derived.isEmpty {
            let given = values
            for (slot, value) in derivedValues({ given[$0] }) { values[slot] = value }
        }
        return values
    }

    func isDerived(_ slot: Int) -> Bool {
        !derived.isEmpty && properties[slot].derive != nil
    }

    func slot(named name: String) -> Int? { properties.firstIndex { $0.name == name } }
}

/// Makes a derived value of what stands in other slots.
typealias DeriveValue = @Sendable (@escaping (Int) -> StoredValue?) -> StoredValue

/// One property of an entity.
struct PropertyModel: Sendable {
    let name: String
    /// Nil for a to-many relationship.
    let column: ColumnID?
    let attribute: RecordAttribute?
    /// Nil: the attribute must be set before a save.
    let makeDefault: (@Sendable () -> StoredValue)?
    /// Nil: any value that the type has may be saved.
    var rules: AttributeRules?
    /// Nil: the property has all values of its type.
    var canRead: (@Sendable (StoredValue) -> Bool)?
    /// Nil: the app sets it.
    var derive: DeriveValue?
    /// What it is of an optional composite; nil: of none.
    var member: CompositeMember?
    let relationship: RelationshipModel?
}

/// One relationship of an entity.
struct RelationshipModel: Sendable {
    let record: RecordRelationship
    let rule: DeleteRule
    /// The relationship back: its slot in the target.
    let inverseSlot: Int?
    let inverseIsToMany: Bool
    let inverseIsOrdered: Bool
    /// Nil: any number may be saved.
    var count: CountRule?

    var isToMany: Bool { record.isToMany }
    var isOrdered: Bool { record.isOrdered }
    var target: EntityID { record.target }

    /// Whether membership is kept in link rows.
    var isLinked: Bool {
        if case .link = record.storage { true } else { false }
    }

    /// Whether the targets' own column says who belongs here.
    var isKeptByInverse: Bool { isToMany && inverseSlot != nil && !inverseIsToMany }
}

/// What following a to-one relationship needs to know.
struct RelationshipHop: Sendable {
    /// Number of the entity that it leads to.
    let target: Int
    /// Whether the store may hold a reference to an object that is gone: the rule of the other side
    /// says what becomes of it; without another side, that of the relationship itself.
    let mayDangle: Bool
}

/// All entities of an opened container.
final class SchemaModel: Sendable {
    let entities: [EntityModel]
    /// The same entities and all that are hidden, as the records layer knows them.
    let record: RecordSchema
    /// Whether any entity has derived attributes.
    let hasDerived: Bool
    /// Whether any relationship must lead to so many objects.
    let hasCounts: Bool
    /// For each entity, the relationships with a count that lead to it.
    private let counting: [EntityID: [(owner: EntityModel, slot: Int)]]
    /// By entity and slot; nil: no relationship. Read without a copy of the relationship's model,
    /// whose names are counted.
    private let hops: [[RelationshipHop?]]
    private let byID: [EntityID: EntityModel]
    private let byType: [ObjectIdentifier: EntityModel]
    private let unlisted = Mutex<[ObjectIdentifier: EntityModel]>([:])
    /// For each entity, the to-one relationships without inverse that lead to it.
    private let danglers: [EntityID: [(owner: EntityModel, slot: Int)]]

    init(_ types: [any ManagedObject.Type], record: RecordSchema) throws(StoreError) {
        var entities: [EntityModel] = []
        for (number, type) in types.enumerated() {
            guard let entity = record.entity(named: type.entityName) else {
                throw StoreError(
                    .unknownEntity,
                    "the store has no entity \(type.entityName) after it was opened"
                )
            }
            entities.append(try SchemaModel.model(of: type, entity, record, number))
        }
        self.entities = entities
        self.record = record
        hasDerived = entities.contains { !$0.derived.isEmpty }
        byID = Dictionary(
            entities.map { ($0.record.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        byType = Dictionary(
            entities.map { (ObjectIdentifier($0.type), $0) },
            uniquingKeysWith: { first, _ in first }
        )
        hasCounts = entities.contains { !$0.countedSlots.isEmpty }
        hops = entities.map { owner in
            owner.properties.map { property in
                guard let relationship = property.relationship,
                    let target = entities.first(where: { $0.record.id == relationship.target })
                else { return nil }
                let back = relationship.inverseSlot.map { target.properties[$0].relationship }
                let rule = back.map { $0?.rule } ?? relationship.rule
                return RelationshipHop(target: target.number, mayDangle: rule == .noAction)
            }
        }
        var counting: [EntityID: [(owner: EntityModel, slot: Int)]] = [:]
        for owner in entities {
            for slot in owner.countedSlots {
                guard let target = owner.properties[slot].relationship?.target else { continue }
                counting[target, default: []].append((owner, slot))
            }
        }
        self.counting = counting
        var danglers: [EntityID: [(owner: EntityModel, slot: Int)]] = [:]
        for owner in entities {
            for slot in owner.relationshipSlots {
                guard let relationship = owner.properties[slot].relationship,
                    !relationship.isToMany, relationship.inverseSlot == nil
                else { continue }
                danglers[relationship.target, default: []].append((owner, slot))
            }
        }
        self.danglers = danglers
    }

    /// Where a relationship leads to; nil: it is none, or the entity is not listed.
    func hop(_ model: EntityModel, _ slot: Int) -> RelationshipHop? {
        model.number < hops.count ? hops[model.number][slot] : nil
    }

    func entity(_ id: EntityID) -> EntityModel? { byID[id] }

    func entity(of type: any ManagedObject.Type) -> EntityModel? {
        // A few comparisons cost less than a hash.
        if entities.count > 8 { return byType[ObjectIdentifier(type)] }
        return entities.first { $0.type == type }
    }

    /// A model for objects of an entity that the schema does not list: they belong to no context,
    /// and no property of theirs has a value. Kept as long as this schema: objects do not count
    /// their model.
    func unlistedEntity(_ type: any ManagedObject.Type) -> EntityModel {
        unlisted.withLock { known in
            if let model = known[ObjectIdentifier(type)] { return model }
            let model = EntityModel(
                type: type,
                record: .unlisted(type.entityName),
                number: entities.count,
                properties: EntityDeclaration.properties(of: type).map {
                    PropertyModel(
                        name: $0.name,
                        column: nil,
                        attribute: nil,
                        makeDefault: nil,
                        relationship: nil
                    )
                }
            )
            known[ObjectIdentifier(type)] = model
            return model
        }
    }

    /// To-one relationships without inverse that lead to `entity`.
    func incoming(_ entity: EntityID) -> [(owner: EntityModel, slot: Int)] {
        danglers[entity] ?? []
    }

    /// Relationships with a count that lead to `entity`.
    func counting(_ entity: EntityID) -> [(owner: EntityModel, slot: Int)] {
        hasCounts ? counting[entity] ?? [] : []
    }

    /// Whether deleting an object of `entity` can concern no other one.
    func standsAlone(_ entity: EntityModel) -> Bool {
        entity.relationshipSlots.isEmpty && incoming(entity.record.id).isEmpty
            && !entities.contains { other in
                other.properties.contains { $0.relationship?.target == entity.record.id }
            }
    }

    private static func model(
        of type: any ManagedObject.Type,
        _ entity: RecordEntity,
        _ record: RecordSchema,
        _ number: Int
    ) throws(StoreError) -> EntityModel {
        var properties: [PropertyModel] = []
        for definition in EntityDeclaration.properties(of: type) {
            switch definition.kind {
            case .attribute(let declared):
                guard let attribute = entity.attribute(named: definition.name) else {
                    throw missing(definition.name, entity)
                }
                properties.append(
                    PropertyModel(
                        name: definition.name,
                        column: attribute.column,
                        attribute: attribute,
                        makeDefault: declared.makeDefault,
                        rules: declared.rules,
                        canRead: declared.canRead,
                        derive: declared.derive,
                        member: declared.member,
                        relationship: nil
                    )
                )
            case .toOne(let declared), .toMany(let declared):
                guard let relationship = entity.relationship(named: definition.name) else {
                    throw missing(definition.name, entity)
                }
                let inverse = relationship.inverse.flatMap { name in
                    EntityDeclaration.properties(of: declared.target)
                        .firstIndex { $0.name == name }
                }
                let back = relationship.inverse.flatMap {
                    record.entity(relationship.target)?.relationship(named: $0)
                }
                var column: ColumnID?
                if case .column(let id, _) = relationship.storage { column = id }
                properties.append(
                    PropertyModel(
                        name: definition.name,
                        column: column,
                        attribute: nil,
                        makeDefault: nil,
                        relationship: RelationshipModel(
                            record: relationship,
                            rule: declared.deleteRule,
                            inverseSlot: inverse,
                            inverseIsToMany: back?.isToMany ?? false,
                            inverseIsOrdered: back?.isOrdered ?? false,
                            count: declared.count
                        )
                    )
                )
            }
        }
        return EntityModel(type: type, record: entity, number: number, properties: properties)
    }

    private static func missing(_ name: String, _ entity: RecordEntity) -> StoreError {
        StoreError(
            .unknownAttribute,
            "the store's \(entity.name) has no \(name) after it was opened",
            place: .init(entity: entity.name, attribute: name)
        )
    }
}

extension EntityModel: Equatable {
    /// A schema has one of each.
    @usableFromInline static func == (left: EntityModel, right: EntityModel) -> Bool {
        left === right
    }
}
