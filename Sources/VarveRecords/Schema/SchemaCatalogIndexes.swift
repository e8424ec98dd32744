// The indexes of a declared schema: which are there, which are built, which are dropped.
//
// Invariants
// - Two declarations of the same terms are one index; it is unique if one of them says so.
// - A to-one relationship has an index of its column, and names it.

import VarveBase
import VarveFormat

extension SchemaCatalog {
    mutating func matchIndexes(_ declared: EntityDescription) {
        change(declared.name) { catalog, entity in
            var rest = entity.indexes
            var indexes: [SchemaRecord.Index] = []
            for wanted in catalog.wantedIndexes(declared, entity) {
                var label: String {
                    wanted.terms.map { entity.name(of: $0.column) }.joined(separator: ", ")
                }
                var index = wanted
                if let match = rest.firstIndex(where: { $0.terms == wanted.terms }) {
                    let before = rest.remove(at: match)
                    index.tree = before.tree
                    if wanted.isUnique != before.isUnique {
                        let kind = wanted.isUnique ? "becomes unique" : "is no longer unique"
                        catalog.step(.buildIndex, entity.name, "(\(label)) \(kind)")
                    }
                    if wanted.isUnique, !before.isUnique {
                        catalog.result.uniqueIndexes[entity.id, default: []].append(index.tree)
                    }
                } else {
                    index.tree = catalog.takeTrees(2)
                    if catalog.old[entity.id] != nil {
                        catalog.step(.buildIndex, entity.name, "(\(label))")
                        catalog.result.builtIndexes[entity.id, default: []].append(index.tree)
                        if wanted.isUnique {
                            catalog.result.uniqueIndexes[entity.id, default: []].append(index.tree)
                        }
                    }
                }
                indexes.append(index)
            }
            for index in rest {
                let label = index.terms.map { term in
                    catalog.old[entity.id]?.name(of: term.column) ?? ""
                }.joined(separator: ", ")
                catalog.step(.dropIndex, entity.name, "(\(label))")
                catalog.result.droppedTrees.append(index.tree)
            }
            entity.indexes = indexes
            for position in entity.relationships.indices {
                guard case .column(let column, _) = entity.relationships[position].links,
                    let index = indexes.first(where: { index in
                        index.terms.count == 1 && index.terms[0].column == column
                    })
                else { continue }
                entity.relationships[position].links = .column(column, index: index.tree)
            }
        }
    }

    /// Indexes of to-one relationships, declared ones and those of constraints; equal ones are one.
    private func wantedIndexes(
        _ declared: EntityDescription,
        _ entity: SchemaRecord.Entity
    ) -> [SchemaRecord.Index] {
        var wanted: [SchemaRecord.Index] = []
        func add(_ terms: [(ColumnID, Bool)], isUnique: Bool) {
            let flips = terms.last?.1 ?? false
            let terms = terms.map {
                SchemaRecord.IndexTerm(column: $0.0, isDescending: $0.1 != flips)
            }
            if let index = wanted.firstIndex(where: { $0.terms == terms }) {
                if isUnique { wanted[index].isUnique = true }
            } else {
                wanted.append(SchemaRecord.Index(tree: TreeID(0), terms: terms, isUnique: isUnique))
            }
        }
        for relationship in entity.relationships {
            if case .column(let column, _) = relationship.links {
                add([(column, false)], isUnique: false)
            }
        }
        for index in declared.indexes {
            add(
                index.terms.compactMap { term in
                    entity.column(named: term.property).map { ($0, term.isDescending) }
                },
                isUnique: false
            )
        }
        for constraint in declared.uniqueConstraints {
            add(
                constraint.properties.compactMap { entity.column(named: $0).map { ($0, false) } },
                isUnique: true
            )
        }
        return wanted
    }
}

extension SchemaRecord.Entity {
    /// The column of an attribute or to-one relationship.
    func column(named name: String) -> ColumnID? {
        if let attribute = attributes.first(where: { $0.name == name }) { return attribute.column }
        if let relationship = relationships.first(where: { $0.name == name }),
            case .column(let column, _) = relationship.links
        {
            return column
        }
        return nil
    }
}
