// What a change of schema would take out of a store that holds it: entities with objects,
// attributes with values, relationships with links.
//
// Invariants
// - Nothing that holds data goes unless it was named. An older build of an app, or a schema that
//   forgot an entity, is told so and changes nothing.
// - What is named and not there is no error: the same options serve before and after the change.

import VarveBase
import VarveEngine
import VarveFormat

/// Compares the stored schema with the one that is to follow it.
struct SchemaRemovals<Source: RecordSource> {
    private let stored: SchemaRecord
    private let next: SchemaRecord
    /// Names of what may go: `Note`, `Note.subtitle`.
    private let named: Set<String>
    /// Attributes that a stage's code takes over into others.
    private let converted: [EntityID: [SchemaRecord.Attribute]]

    init(
        _ stored: SchemaRecord,
        _ next: SchemaRecord,
        named: Set<String>,
        converted: [EntityID: [SchemaRecord.Attribute]] = [:]
    ) {
        self.stored = stored
        self.next = next
        self.named = named
        self.converted = converted
    }

    /// What holds data, is to go and was not named; one sentence each.
    /// - Complexity: O(1) per entity that goes, O(rows) per attribute or relationship.
    func problems(_ source: Source) throws -> [String] {
        var problems: [String] = []
        for entity in stored.entities where !entity.isHiddenLink {
            guard let after = next.entities.first(where: { $0.id == entity.id }) else {
                if named.contains(entity.name) { continue }
                let count = try source.count(entity.tree)
                if count == 0 { continue }
                problems.append(
                    Self.problem(entity.name, "has \(count) object\(count == 1 ? "" : "s")")
                )
                continue
            }
            problems += try lostColumns(entity, after, source)
        }
        return problems + (try lostLinks(source))
    }

    private static func problem(_ name: String, _ what: String) -> String {
        "\(name) \(what) in the store and is not in the app's schema: declare it, or name"
            + " \"\(name)\" in the option `removing` to let it go"
    }

    /// Attributes and to-one relationships of an entity that stays.
    private func lostColumns(
        _ entity: SchemaRecord.Entity,
        _ after: SchemaRecord.Entity,
        _ source: Source
    ) throws -> [String] {
        let kept = Set(after.columns + (converted[entity.id] ?? []).map(\.column))
        var lost: [(column: ColumnID, name: String, what: String)] = []
        for attribute in entity.attributes
        where !kept.contains(attribute.column) && !isNamed(entity, after, attribute.name) {
            lost.append((attribute.column, attribute.name, "has values"))
        }
        for relationship in entity.relationships {
            guard case .column(let column, _) = relationship.links, !kept.contains(column),
                !isNamed(entity, after, relationship.name), !goes(relationship.target),
                !isMadeAnew(relationship.name, in: after)
            else { continue }
            lost.append((column, relationship.name, "leads to objects"))
        }
        if lost.isEmpty { return [] }
        var found: Set<ColumnID> = []
        for object in try source.objects(entity.tree) {
            guard let row = try source.row(entity.tree, object) else { continue }
            let view = try RowView(row.bytes)
            for (column, _, _) in lost where !found.contains(column) {
                let slot = view.slot(column)
                if !slot.isAbsent, !slot.isNull { found.insert(column) }
            }
            if found.count == lost.count { break }
        }
        return lost.filter { found.contains($0.column) }.map { _, name, what in
            Self.problem("\(entity.name).\(name)", what)
        }
    }

    /// To-many relationships whose links are rows of their own. What one side still shows is not
    /// lost.
    private func lostLinks(_ source: Source) throws -> [String] {
        var problems: [String] = []
        for hidden in stored.entities where hidden.isHiddenLink {
            if next.entities.contains(where: { $0.id == hidden.id }) { continue }
            let sides = stored.entities.flatMap { entity in
                entity.relationships.compactMap { relationship in
                    if case .rows(hidden.id, _) = relationship.links {
                        return (entity: entity, relationship: relationship)
                    }
                    return nil
                }
            }
            let isNamed = sides.contains { side in
                let after = next.entities.first { $0.id == side.entity.id }
                return self.isNamed(side.entity, after, side.relationship.name)
                    || goes(side.entity.id) || goes(side.relationship.target)
                    || after.map { isMadeAnew(side.relationship.name, in: $0) } ?? false
            }
            if isNamed { continue }
            if try source.count(hidden.tree) > 0 {
                problems.append(Self.problem(hidden.name, "leads to objects"))
            }
        }
        return problems
    }

    /// Whether a relationship of that name is there still, with links that a stage's code makes.
    private func isMadeAnew(_ name: String, in after: SchemaRecord.Entity) -> Bool {
        after.relationships.contains { $0.name == name }
    }

    private func isNamed(
        _ entity: SchemaRecord.Entity,
        _ after: SchemaRecord.Entity?,
        _ property: String
    ) -> Bool {
        named.contains("\(entity.name).\(property)")
            || named.contains("\((after ?? entity).name).\(property)")
    }

    /// Whether a whole entity goes: what leads to its objects goes with them, and the entity was
    /// named or its own objects are the problem.
    private func goes(_ id: EntityID) -> Bool { !next.entities.contains { $0.id == id } }
}

extension SchemaRecord.Entity {
    /// Columns of its attributes and to-one relationships.
    fileprivate var columns: [ColumnID] {
        attributes.map(\.column)
            + relationships.compactMap { relationship in
                if case .column(let column, _) = relationship.links { return column }
                return nil
            }
    }
}

extension RecordSource {
    /// The objects of an entity, by its tree.
    func objects(_ tree: TreeID) throws(EngineError) -> [ObjectID] {
        var ids: [ObjectID] = []
        var cursor = try cursor(tree)
        if try cursor.first() {
            _ = try cursor.takeObjectIDs(limit: Int.max, isForward: true, end: nil, into: &ids)
        }
        return ids
    }
}
