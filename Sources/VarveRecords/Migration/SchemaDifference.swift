// What one schema has and another has not, line by line, for people.
//
// Invariants
// - Nothing is listed where a store of the one needs no change to be one of the other; policies of
//   constraints are no difference.
// - `+` is what comes, `-` what goes, `~` what changes.

/// The difference of two schemas.
public struct SchemaDifference: Hashable, Sendable, CustomStringConvertible {
    /// One difference each, as `+ Note.position: Int`; ordered by entity.
    public let lines: [String]
    /// What is of the first schema and not the same in the second: entities, and `Entity.property`.
    let lost: [String]

    /// Compares two schemas.
    ///
    /// - Parameters:
    ///   - old: the schema before.
    ///   - new: the schema after; its `originalNames` tell what was renamed.
    /// - Complexity: O(properties).
    public init(from old: SchemaDescription, to new: SchemaDescription) {
        var made = Maker()
        if old.version != new.version {
            made.lines.append("~ version: \(old.version) -> \(new.version)")
        }
        made.compare(old.withInverses, new.withInverses)
        lines = made.lines
        lost = made.lost
    }

    /// Whether there is none.
    public var isEmpty: Bool { lines.isEmpty }

    /// The lines, one below the other.
    public var description: String { lines.joined(separator: "\n") }

    /// The lines that fit into an error.
    var boundedLines: [String] {
        if lines.count <= 100 { return lines }
        return lines.prefix(100) + ["and \(lines.count - 100) more"]
    }
}

extension SchemaDescription {
    /// With what one side of a relationship says of the other; as it is where that contradicts
    /// itself.
    fileprivate var withInverses: SchemaDescription { (try? checked()) ?? self }
}

private struct Maker {
    var lines: [String] = []
    var lost: [String] = []

    mutating func compare(_ old: SchemaDescription, _ new: SchemaDescription) {
        var rest = old.entities
        for entity in new.entities.sorted(by: { $0.name < $1.name }) {
            let names = [entity.name] + entity.originalNames
            let match = names.lazy.compactMap { name in rest.firstIndex { $0.name == name } }.first
            guard let match else {
                lines.append("+ entity \(entity.name)")
                compare(EntityDescription(name: entity.name), entity)
                continue
            }
            let before = rest.remove(at: match)
            if before.name != entity.name {
                lines.append("~ entity \(before.name) -> \(entity.name)")
                lost.append(before.name)
            }
            compare(before, entity)
        }
        for entity in rest.sorted(by: { $0.name < $1.name }) {
            lines.append("- entity \(entity.name)")
            lost.append(entity.name)
        }
    }

    private mutating func compare(_ old: EntityDescription, _ new: EntityDescription) {
        compareAttributes(old, new)
        compareRelationships(old, new)
        compareLists(
            old.indexes.map { "index \(new.name) (\($0.label))" },
            new.indexes.map { "index \(new.name) (\($0.label))" }
        )
        compareLists(
            old.uniqueConstraints.map { "unique \(new.name) (\($0.label))" },
            new.uniqueConstraints.map { "unique \(new.name) (\($0.label))" }
        )
    }

    private mutating func compareLists(_ old: [String], _ new: [String]) {
        for line in new where !old.contains(line) { lines.append("+ \(line)") }
        for line in old where !new.contains(line) { lines.append("- \(line)") }
    }

    private mutating func compareAttributes(_ old: EntityDescription, _ new: EntityDescription) {
        var rest = old.attributes
        for attribute in new.attributes {
            let label = "\(new.name).\(attribute.name)"
            let names = [attribute.name] + attribute.originalNames
            let match = names.lazy.compactMap { name in rest.firstIndex { $0.name == name } }.first
            guard let match else {
                lines.append("+ \(label): \(attribute.typeText)")
                continue
            }
            let before = rest.remove(at: match)
            if before.name != attribute.name {
                lines.append("~ \(old.name).\(before.name) -> \(label)")
                lost.append("\(old.name).\(before.name)")
            }
            if before.typeText != attribute.typeText {
                lines.append("~ \(label): \(before.typeText) -> \(attribute.typeText)")
                let isReadable =
                    before.type == attribute.type && (before.isOptional || !attribute.isOptional)
                if !isReadable { lost.append("\(old.name).\(before.name)") }
            }
            if before.externalLimit != attribute.externalLimit {
                lines.append("~ \(label): limit of external storage")
            }
        }
        for attribute in rest {
            lines.append("- \(old.name).\(attribute.name): \(attribute.typeText)")
            lost.append("\(old.name).\(attribute.name)")
        }
    }

    private mutating func compareRelationships(
        _ old: EntityDescription,
        _ new: EntityDescription
    ) {
        var rest = old.relationships
        for relationship in new.relationships {
            let label = "\(new.name).\(relationship.name)"
            let names = [relationship.name] + relationship.originalNames
            let match = names.lazy.compactMap { name in rest.firstIndex { $0.name == name } }.first
            guard let match else {
                lines.append("+ \(label): \(relationship.typeText)")
                continue
            }
            let before = rest.remove(at: match)
            if before.name != relationship.name {
                lines.append("~ \(old.name).\(before.name) -> \(label)")
            }
            if before.typeText != relationship.typeText {
                lines.append("~ \(label): \(before.typeText) -> \(relationship.typeText)")
            }
            let isReadable =
                before.name == relationship.name && before.target == relationship.target
                && before.isToMany == relationship.isToMany
                && before.isOrdered == relationship.isOrdered
                && before.inverse == relationship.inverse
            if !isReadable { lost.append("\(old.name).\(before.name)") }
        }
        for relationship in rest {
            lines.append("- \(old.name).\(relationship.name): \(relationship.typeText)")
            lost.append("\(old.name).\(relationship.name)")
        }
    }
}

extension AttributeDescription {
    fileprivate var typeText: String { "\(type)\(isOptional ? "?" : "")" }
}

extension RelationshipDescription {
    fileprivate var typeText: String {
        var text = isToMany ? (isOrdered ? "ordered many " : "many ") : "one "
        text += target
        if let inverse { text += ", inverse \(inverse)" }
        return text + ", \(deleteRule)"
    }
}

extension IndexDescription {
    fileprivate var label: String {
        let flips = terms.last?.isDescending ?? false
        return terms.map { $0.isDescending != flips ? "\($0.property) descending" : $0.property }
            .joined(separator: ", ")
    }
}

extension UniqueConstraintDescription {
    fileprivate var label: String { properties.joined(separator: ", ") }
}
