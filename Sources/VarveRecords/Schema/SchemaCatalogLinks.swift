// The relationships of a declared schema: where each keeps its links, and hidden entities for those
// that need rows of their own.
//
// Invariants
// - Two sides share their link rows exactly when they are each other's inverse.
// - Links stay where they are as long as kind and target stay; otherwise a stage's code makes them
//   anew, or the change is refused.

import VarveBase
import VarveFormat

extension SchemaCatalog {
    private enum LinkKind { case column, inverse, rows }

    private func kind(_ relationship: RelationshipDescription) -> LinkKind {
        if !relationship.isToMany { return .column }
        if relationship.isOrdered { return .rows }
        guard let back = inverse(of: relationship) else { return .rows }
        return back.isToMany ? .rows : .inverse
    }

    private func inverse(of relationship: RelationshipDescription) -> RelationshipDescription? {
        let target = description.entities.first { $0.name == relationship.target }
        return target?.relationships.first { $0.name == relationship.inverse }
    }

    mutating func matchRelationships(_ declared: EntityDescription) {
        change(declared.name) { catalog, entity in
            if declared.relationships.isEmpty, entity.relationships.isEmpty { return }
            var rest = entity.relationships
            var relationships: [SchemaRecord.Relationship] = []
            let names = Set(declared.relationships.map(\.name))
            for relationship in declared.relationships {
                let known =
                    [relationship.name] + relationship.originalNames.filter { !names.contains($0) }
                let match = known.lazy.compactMap { name in
                    rest.firstIndex { $0.name == name }
                }.first
                var before: SchemaRecord.Relationship?
                if let match, catalog.canKeep(rest[match], as: relationship) {
                    before = rest.remove(at: match)
                }
                relationships.append(catalog.relationship(relationship, before, &entity))
            }
            for relationship in rest {
                catalog.step(.dropRelationship, entity.name, relationship.name)
            }
            entity.relationships = relationships
        }
    }

    /// Whether the links stay as they are; if not, a stage's code makes them anew.
    private func canKeep(
        _ before: SchemaRecord.Relationship,
        as declared: RelationshipDescription
    ) -> Bool {
        guard isStaged else { return true }
        let isSameKind =
            switch (kind(declared), before.links) {
            case (.column, .column), (.rows, .rows), (.inverse, .inverse): true
            default: false
            }
        return isSameKind && before.target == ids[declared.target]
    }

    private mutating func relationship(
        _ declared: RelationshipDescription,
        _ before: SchemaRecord.Relationship?,
        _ entity: inout SchemaRecord.Entity
    ) -> SchemaRecord.Relationship {
        let target = ids[declared.target] ?? EntityID(0)
        let kind = kind(declared)
        // Numbers of trees and hidden entities come later; `.inverse` stands in for "not yet
        // known".
        var links = SchemaRecord.Links.inverse
        if let before {
            let label = "\(entity.name).\(declared.name)"
            switch (kind, before.links) {
            case (.column, .column), (.rows, .rows), (.inverse, .inverse): links = before.links
            default:
                problems.append(
                    "the links of \(label) are kept in another way in the store: move them in"
                        + " a custom stage of a MigrationPlan, or declare both, the old one as it"
                        + " was and the new one under a new name, copy the links in the app, and"
                        + " leave the old one out later"
                )
            }
            if before.target != target {
                problems.append("\(label) leads to another entity in the store")
            }
            if before.name != declared.name {
                step(.renameRelationship, entity.name, "\(before.name) -> \(declared.name)")
            } else if before.deleteRule != declared.deleteRule.rawValue
                || before.isOrdered != declared.isOrdered || before.inverse != declared.inverse
            {
                step(.changeRelationship, entity.name, declared.name)
            }
        } else {
            if old[entity.id] != nil { step(.addRelationship, entity.name, declared.name) }
            if kind == .column { links = .column(takeColumn(&entity), index: TreeID(0)) }
        }
        return SchemaRecord.Relationship(
            name: declared.name,
            target: target,
            inverse: declared.inverse,
            isToMany: declared.isToMany,
            isOrdered: declared.isOrdered,
            deleteRule: declared.deleteRule.rawValue,
            links: links
        )
    }

    /// Gives hidden link entities to new relationships that need one.
    mutating func linkNewRelationships(_ declared: EntityDescription) {
        guard let id = ids[declared.name] else { return }
        for relationship in declared.relationships where kind(relationship) == .rows {
            guard case .inverse? = links(id, relationship.name) else { continue }
            let links: SchemaRecord.Links
            if let target = ids[relationship.target], let name = relationship.inverse,
                case .rows(let hidden, let side)? = self.links(target, name)
            {
                links = .rows(hidden, side: 1 - side)
            } else {
                let hidden = EntityID(result.record.nextEntity)
                result.record.nextEntity += 1
                result.record.entities.append(
                    SchemaRecord.Entity(
                        id: hidden,
                        name: "\(declared.name).\(relationship.name)",
                        tree: takeTrees(1),
                        isHiddenLink: true,
                        nextColumn: 4
                    )
                )
                links = .rows(hidden, side: 0)
            }
            change(declared.name) { _, entity in
                for index in entity.relationships.indices
                where entity.relationships[index].name == relationship.name {
                    entity.relationships[index].links = links
                }
            }
        }
    }

    private func links(_ entity: EntityID, _ name: String) -> SchemaRecord.Links? {
        let entity = result.record.entities.first { $0.id == entity }
        return entity?.relationships.first { $0.name == name }?.links
    }

    /// Two sides share their link rows exactly when they are each other's inverse.
    mutating func checkLinks(_ sorted: [EntityDescription]) {
        guard result.record.entities.contains(where: \.isHiddenLink) else { return }
        var sides: [EntityID: [(entity: EntityID, relationship: SchemaRecord.Relationship)]] = [:]
        for declared in sorted {
            guard let entity = result.record.entities.first(where: { $0.id == ids[declared.name] })
            else { continue }
            for relationship in entity.relationships {
                if case .rows(let hidden, _) = relationship.links {
                    sides[hidden, default: []].append((entity.id, relationship))
                }
                if case .rows(let hidden, _) = relationship.links, let name = relationship.inverse,
                    case .rows(let other, _)? = links(relationship.target, name), other != hidden
                {
                    problems.append(
                        "\(entity.name).\(relationship.name) was not the inverse of \(name) before"
                    )
                }
            }
        }
        for (_, uses) in sides.sorted(by: { $0.key < $1.key }) where uses.count > 1 {
            if uses.count != 2 || uses[0].relationship.inverse != uses[1].relationship.name {
                problems.append(
                    "\(uses[0].relationship.name) and \(uses[1].relationship.name) were"
                        + " each other's inverse before"
                )
            }
        }
    }

    /// Columns and indexes of the hidden entities; those that nobody uses any more are dropped.
    mutating func buildLinkEntities(_ sorted: [EntityDescription]) {
        for hidden in result.record.entities where hidden.isHiddenLink {
            var ends: [EntityID?] = [nil, nil]
            var ordered = [false, false]
            var name: String?
            for entity in result.record.entities where !entity.isHiddenLink {
                for relationship in entity.relationships {
                    guard case .rows(hidden.id, let side) = relationship.links else { continue }
                    ends[Int(side)] = entity.id
                    ends[1 - Int(side)] = relationship.target
                    ordered[Int(side)] = relationship.isOrdered
                    if side == 0 || name == nil { name = "\(entity.name).\(relationship.name)" }
                }
            }
            guard let index = result.record.entities.firstIndex(where: { $0.id == hidden.id })
            else { continue }
            guard let first = ends[0], let second = ends[1], let name else {
                result.droppedEntities.append(hidden)
                result.record.entities.remove(at: index)
                continue
            }
            result.record.entities[index] = linkEntity(hidden, name, first, second, ordered)
        }
    }

    private mutating func linkEntity(
        _ before: SchemaRecord.Entity,
        _ name: String,
        _ first: EntityID,
        _ second: EntityID,
        _ ordered: [Bool]
    ) -> SchemaRecord.Entity {
        var entity = before
        entity.name = name
        entity.attributes = ["firstPosition", "secondPosition"].enumerated().map { index, name in
            SchemaRecord.Attribute(
                column: ColumnID(UInt16(2 + index)),
                name: name,
                typeCode: AttributeType.int64.rawValue,
                isOptional: true,
                defaultValue: .null,
                externalLimit: nil
            )
        }
        entity.indexes = (0..<2).map { side in
            var columns = [UInt16(side)]
            if ordered[side] { columns.append(UInt16(2 + side)) }
            columns.append(UInt16(1 - side))
            let terms = columns.map {
                SchemaRecord.IndexTerm(column: ColumnID($0), isDescending: false)
            }
            if side < before.indexes.count {
                if before.indexes[side].terms == terms { return before.indexes[side] }
                result.droppedTrees.append(before.indexes[side].tree)
            }
            let tree = takeTrees(2)
            if old[before.id] != nil { result.builtIndexes[before.id, default: []].append(tree) }
            return SchemaRecord.Index(tree: tree, terms: terms, isUnique: false)
        }
        let targets = [first, second]
        entity.relationships = ["first", "second"].enumerated().map { side, name in
            SchemaRecord.Relationship(
                name: name,
                target: targets[side],
                inverse: nil,
                isToMany: false,
                isOrdered: false,
                deleteRule: DeleteRule.cascade.rawValue,
                links: .column(ColumnID(UInt16(side)), index: entity.indexes[side].tree)
            )
        }
        return entity
    }
}
