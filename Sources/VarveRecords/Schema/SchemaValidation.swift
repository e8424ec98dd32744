// Whether a declared schema makes sense, and what it leaves unsaid.
//
// Invariants
// - All problems are reported together.
// - Afterwards both sides of every relationship with an inverse name each other.

import VarveBase
import VarveFormat

extension SchemaDescription {
    /// The same schema with unsaid inverses filled in.
    ///
    /// Throws `invalidSchema` with every contradiction.
    func checked() throws(RecordError) -> SchemaDescription {
        var result = self
        var problems: [String] = []
        var names = NameSet(expected: entities.count)
        for entity in entities where !names.insert(entity.name) {
            problems.append("entity \(entity.name) is declared twice")
        }
        if entities.count >= SchemaRecord.entitiesMax / 2 {
            problems.append("\(entities.count) entities are too many")
        }
        for index in result.entities.indices { result.fillInverses(from: index, &problems) }
        for entity in result.entities {
            entity.check(result, &problems)
            for original in entity.originalNames where names.contains(original) {
                problems.append(Self.ambiguous("entity \(entity.name)", original, "entity"))
            }
        }
        if !problems.isEmpty { throw .invalidSchema(problems: problems) }
        return result
    }

    /// A name that is an older one of one thing and the present one of another could mean either
    /// in a store; a swap of two names would be done again with each new version.
    fileprivate static func ambiguous(_ label: String, _ name: String, _ kind: String) -> String {
        "\(label) was called \(name), which is the name of another \(kind) now: leave out the"
            + " originalName if no store has it under that name any more, else give that other"
            + " \(kind) a third name; two names are swapped in two versions"
    }

    private mutating func fillInverses(from index: Int, _ problems: inout [String]) {
        let entity = entities[index]
        for relationship in entity.relationships {
            let label = "\(entity.name).\(relationship.name)"
            guard let target = entities.firstIndex(where: { $0.name == relationship.target }) else {
                problems.append("\(label) leads to \(relationship.target), which is not declared")
                continue
            }
            guard let inverse = relationship.inverse else { continue }
            guard
                let back = entities[target].relationships.firstIndex(where: { $0.name == inverse })
            else {
                let isAttribute = entities[target].attributes.contains { $0.name == inverse }
                problems.append(
                    "\(label) has the inverse \(inverse), which "
                        + (isAttribute
                            ? "is an attribute of \(relationship.target)"
                            : "\(relationship.target) lacks")
                        + ": give \(relationship.target) a relationship that leads to "
                        + "\(entity.name), and name it here; or leave the inverse out"
                )
                continue
            }
            if entities[target].name == entity.name, inverse == relationship.name {
                problems.append(
                    "\(label) cannot be its own inverse: name the relationship that leads back, or "
                        + "leave the inverse out"
                )
            } else if entities[target].relationships[back].target != entity.name {
                problems.append(
                    "\(label) has the inverse \(inverse), which leads to "
                        + "\(entities[target].relationships[back].target) and not back to "
                        + "\(entity.name): name a relationship of \(relationship.target) that does"
                )
            } else if let other = entities[target].relationships[back].inverse,
                other != relationship.name
            {
                problems.append(
                    "\(label) has the inverse \(inverse), whose inverse is \(other): both must "
                        + "name each other"
                )
            } else {
                entities[target].relationships[back].inverse = relationship.name
            }
        }
    }
}

extension EntityDescription {
    fileprivate func check(_ schema: SchemaDescription, _ problems: inout [String]) {
        if !Self.isName(name) { problems.append("\"\(name)\" is no name for an entity") }
        var names = NameSet(expected: attributes.count + relationships.count)
        func checkName(_ property: String) {
            if !Self.isName(property) { problems.append("\(name) has a property without a name") }
            if !names.insert(property) {
                problems.append("\(name).\(property) is declared twice")
            }
        }
        for attribute in attributes { checkName(attribute.name) }
        for relationship in relationships { checkName(relationship.name) }
        func checkOriginals(_ property: String, _ before: [String]) {
            for original in before where names.contains(original) {
                let label = "\(name).\(property)"
                problems.append(SchemaDescription.ambiguous(label, original, "property"))
            }
        }
        for attribute in attributes { checkOriginals(attribute.name, attribute.originalNames) }
        for relationship in relationships {
            checkOriginals(relationship.name, relationship.originalNames)
        }
        if names.count > RowCoding.columnsMax / 2 {
            problems.append("\(name) has \(names.count) properties, too many")
        }
        for attribute in attributes where !attribute.type.accepts(attribute.defaultValue) {
            problems.append("the default of \(name).\(attribute.name) is no \(attribute.type)")
        }
        // No value is a byte.
        for attribute in attributes where attribute.defaultValue != .null {
            let size = RowCoding.encode([attribute.defaultValue]).count
            if size > SchemaRecord.defaultBytesMax {
                problems.append("the default of \(name).\(attribute.name) is too large")
            }
        }
        for relationship in relationships where relationship.isOrdered && !relationship.isToMany {
            problems.append("\(name).\(relationship.name) is ordered, but leads to one object only")
        }
        for index in indexes { checkKey(index.terms.map(\.property), &problems) }
        for constraint in uniqueConstraints { checkKey(constraint.properties, &problems) }
    }

    private func checkKey(_ properties: [String], _ problems: inout [String]) {
        // Made for a problem only: an opening has none.
        var label: String { "index \(name)(\(properties.joined(separator: ", ")))" }
        if properties.isEmpty { problems.append("\(label) has no properties") }
        var names = NameSet(expected: properties.count)
        for property in properties { _ = names.insert(property) }
        if names.count != properties.count { problems.append("\(label) names a property twice") }
        var sizes: [Int?] = []
        for property in properties {
            if let attribute = attributes.first(where: { $0.name == property }) {
                if attribute.type == .blob {
                    problems.append("\(label): the content of blob \(property) has no order")
                }
                sizes.append(IndexKeys.fixedSize(attribute.type))
            } else if let relationship = relationships.first(where: { $0.name == property }) {
                if relationship.isToMany {
                    problems.append("\(label): \(property) leads to many objects")
                }
                sizes.append(9)
            } else {
                problems.append("\(label): there is no property \(property)")
            }
        }
        let fixed = sizes.reduce(0) { $0 + ($1 ?? 0) }
        if properties.count > SchemaRecord.indexesMax || fixed > IndexKeys.keyBytesMax - 8
            || (sizes.contains(nil) && IndexKeys.byteLimit(sizes: sizes) < IndexKeys.byteLimitMin)
        {
            problems.append("\(label) has too many properties for one key")
        }
    }

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255
    }
}
