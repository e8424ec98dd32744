// Reads what an entity class declares and turns it into the records layer's description.
//
// Invariants
// - The order of the properties is the order of declaration in `Columns`. Reading an entity gives
//   each property its slot. It is read once in a process: what it declares never changes, and
//   reflection would take most of the time of opening a store.

import Synchronization
import VarveBase
import VarveRecords

enum EntityDeclaration {
    private static let known = Mutex<[ObjectIdentifier: [PropertyDefinition]]>([:])

    /// The properties of an entity, by slot.
    static func properties(of type: any ManagedObject.Type) -> [PropertyDefinition] {
        let key = ObjectIdentifier(type)
        if let properties = known.withLock({ $0[key] }) { return properties }
        let properties = read(type)
        known.withLock { $0[key] = properties }
        return properties
    }

    private static func read(_ type: any ManagedObject.Type) -> [PropertyDefinition] {
        func read<Entity: ManagedObject>(_: Entity.Type) -> [PropertyDefinition] {
            Mirror(reflecting: Entity.columns).children.flatMap {
                ($0.value as? any AnyProperty)?.anyDefinitions ?? []
            }
        }
        let properties = read(type)
        for (slot, property) in properties.enumerated() {
            property.slotNumber.store(slot, ordering: .relaxed)
        }
        return properties
    }

    /// The schema as the records layer takes it. Inverses that one side declares are completed on
    /// the other.
    static func describe(
        _ schema: any VersionedSchema.Type
    ) throws(StoreError) -> SchemaDescription {
        guard let version = UInt32(exactly: schema.version) else {
            throw invalid(["the schema's version \(schema.version) is out of range"])
        }
        var problems: [String] = []
        let types = schema.entities
        let names = types.map { $0.entityName }
        for name in Set(names) where names.filter({ $0 == name }).count > 1 {
            problems.append("two entities are called \(name)")
        }
        let inverses = inverses(of: types, &problems)
        let entities = types.map { type in
            describe(type, known: names, inverses: inverses, problems: &problems)
        }
        guard problems.isEmpty else { throw invalid(problems.sorted()) }
        return SchemaDescription(version: version, entities: entities)
    }

    /// The inverse of each relationship, by entity and name, whichever side declares it.
    private static func inverses(
        of types: [any ManagedObject.Type],
        _ problems: inout [String]
    ) -> [[String]: String] {
        var inverses: [[String]: String] = [:]
        /// `here` is to have the inverse `name`, as `speaker` says.
        func join(_ here: [String], _ name: String, _ target: String, says speaker: String) {
            if let known = inverses[here], known != name {
                let label = here.joined(separator: ".")
                problems.append(
                    "\(label) has two inverses, \(target).\(known) and \(target).\(name), as "
                        + "\(speaker) says: a relationship has one; leave the inverse out of one "
                        + "of them, or give it a relationship of its own in \(here[0])"
                )
            }
            inverses[here] = name
        }
        for type in types {
            for property in properties(of: type) {
                guard let relationship = property.relationshipDefinition else { continue }
                let label = "\(type.entityName).\(property.name)"
                if !isListed(relationship.target, in: types) {
                    problems.append(
                        "\(label) leads to a class called \(relationship.target.entityName) that "
                            + "is not the one that the schema lists"
                    )
                }
                if let problem = relationship.count?.problem(isToMany: property.isToMany) {
                    problems.append("\(label) \(problem)")
                }
                guard let inverse = relationship.inverse else { continue }
                let target = relationship.target.entityName
                join([type.entityName, property.name], inverse, target, says: label)
                join([target, inverse], property.name, type.entityName, says: label)
            }
        }
        return inverses
    }

    private static func describe(
        _ type: any ManagedObject.Type,
        known: [String],
        inverses: [[String]: String],
        problems: inout [String]
    ) -> EntityDescription {
        var attributes: [AttributeDescription] = []
        var relationships: [RelationshipDescription] = []
        for property in properties(of: type) {
            switch property.kind {
            case .attribute(let attribute):
                attributes.append(
                    AttributeDescription(
                        name: property.name,
                        originalNames: property.originalNames,
                        type: attribute.type,
                        isOptional: attribute.isOptional,
                        defaultValue: attribute.makeDefault?() ?? .null,
                        externalLimit: attribute.externalLimit
                    )
                )
            case .toOne(let relationship), .toMany(let relationship):
                let target = relationship.target.entityName
                if !known.contains(target) {
                    problems.append(
                        "\(type.entityName).\(property.name) leads to \(target), "
                            + "which the schema does not list"
                    )
                }
                relationships.append(
                    RelationshipDescription(
                        name: property.name,
                        originalNames: property.originalNames,
                        target: target,
                        inverse: inverses[[type.entityName, property.name]],
                        isToMany: property.isToMany,
                        isOrdered: relationship.isOrdered,
                        deleteRule: relationship.deleteRule.recordRule
                    )
                )
            }
        }
        return EntityDescription(
            name: type.entityName,
            originalNames: type.originalEntityNames,
            attributes: attributes,
            relationships: relationships,
            indexes: type.indexes.map { index in
                IndexDescription(
                    index.terms.map {
                        IndexDescription.Term($0.name, isDescending: $0.isDescending)
                    }
                )
            },
            uniqueConstraints: type.uniqueConstraints.map {
                UniqueConstraintDescription($0.properties, policy: $0.policy.recordPolicy)
            }
        )
    }

    /// What makes the default of an attribute, if it is not the same each time. Rows that are older
    /// than the attribute then get a value each.
    ///
    /// A default that is a time of day differs once the clock has moved on; one that is a coin's
    /// throw in all but one of 2^63 cases.
    static func varyingDefault(
        _ entity: String,
        _ attribute: String,
        in types: [any ManagedObject.Type]
    ) -> (() -> StoredValue)? {
        guard let type = types.first(where: { $0.entityName == entity }),
            case .attribute(let definition)? = properties(of: type)
                .first(where: { $0.name == attribute })?.kind,
            let make = definition.makeDefault
        else { return nil }
        let first = make()
        if first == .null { return nil }
        let clock = ContinuousClock()
        let moved = clock.now + .microseconds(5)
        while clock.now < moved {}
        for _ in 0..<64 where make() != first { return make }
        return nil
    }

    /// False for another class with the name of a listed one, as of an older version.
    private static func isListed(
        _ target: any ManagedObject.Type,
        in types: [any ManagedObject.Type]
    ) -> Bool {
        let namesakes = types.filter { $0.entityName == target.entityName }
        return namesakes.isEmpty || namesakes.contains { $0 == target }
    }

    private static func invalid(_ problems: [String]) -> StoreError {
        StoreError(
            .invalidSchema,
            "the schema contradicts itself: " + problems.joined(separator: "; "),
            details: problems.map { .init(code: .invalidSchema, message: $0) },
            suggestion: "Correct the entities' declarations."
        )
    }
}

extension PropertyDefinition {
    var relationshipDefinition: RelationshipDefinition? {
        switch kind {
        case .attribute: nil
        case .toOne(let relationship), .toMany(let relationship): relationship
        }
    }

    var isToMany: Bool {
        if case .toMany = kind { true } else { false }
    }
}

extension DeleteRule {
    var recordRule: VarveRecords.DeleteRule {
        switch self {
        case .nullify: .nullify
        case .cascade: .cascade
        case .deny: .deny
        case .noAction: .noAction
        }
    }
}

extension UniquenessPolicy {
    var recordPolicy: VarveRecords.UniquenessPolicy {
        switch self {
        case .error: .error
        case .upsert: .upsert
        case .ignore: .ignore
        }
    }
}
