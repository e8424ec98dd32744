// The step from the stored schema to the declared one: numbers for what is new, and what is to be
// done.
//
// Invariants
// - Deterministic: the same stored record and declaration give the same numbers.
// - A number is never reused; a renamed entity or attribute keeps its own.
// - The last column of an index is ascending: (a up, b down) is kept as (a down, b up), which is
//   the same index read from the other end. So ties, which are by object ID, run with the last
//   column either way.

import VarveBase
import VarveFormat

/// What has to happen to make a store fit a declared schema.
struct SchemaResolution {
    /// The schema to store.
    var record: SchemaRecord
    /// What changes, for people.
    var steps: [MigrationStep] = []
    /// Entities of the old schema whose rows go.
    var droppedEntities: [SchemaRecord.Entity] = []
    /// Columns of the old schema whose large values and blobs go.
    var clearedColumns: [EntityID: [ColumnID]] = [:]
    /// Trees of dropped indexes.
    var droppedTrees: [TreeID] = []
    /// Indexes to be filled from rows that are there.
    var builtIndexes: [EntityID: [TreeID]] = [:]
    /// Columns that must have a value from now on, with the value for rows without one.
    var filledColumns: [EntityID: [SchemaRecord.Attribute]] = [:]
    /// Columns that only an entity without rows can take.
    var emptyOnly: [EntityID: [String]] = [:]
    /// Indexes that became unique.
    var uniqueIndexes: [EntityID: [TreeID]] = [:]
    /// Attributes that a stage's code gives another type: as they were.
    var converted: [EntityID: [SchemaRecord.Attribute]] = [:]
}

/// Resolves a declared schema against the stored one.
struct SchemaCatalog {
    let description: SchemaDescription
    private let stored: SchemaRecord?
    /// Whether code of the app moves data between the two: then types and links may change, and a
    /// value may be missing until that has run.
    let isStaged: Bool
    var result: SchemaResolution
    var problems: [String] = []
    var ids: [String: EntityID] = [:]
    private(set) var old: [EntityID: SchemaRecord.Entity] = [:]
    private var renamedRelationships: [EntityID: [String: String]] = [:]

    /// The resolution of a checked declaration. `record == stored` when nothing changes.
    ///
    /// - Parameter isStaged: whether code of a stage runs between the two.
    ///
    /// Throws `schemaMismatch` with everything that cannot be done automatically, `schemaTooNew`.
    static func resolve(
        _ description: SchemaDescription,
        stored: SchemaRecord?,
        isStaged: Bool = false
    ) throws(RecordError) -> SchemaResolution {
        if let stored, stored.version > description.version {
            throw .schemaTooNew(
                stored: stored.version,
                known: description.version,
                differences: SchemaDifference(from: description, to: SchemaDescription(stored))
                    .boundedLines
            )
        }
        var catalog = SchemaCatalog(
            description: description,
            stored: stored,
            isStaged: isStaged
        )
        return try catalog.run()
    }

    private init(description: SchemaDescription, stored: SchemaRecord?, isStaged: Bool) {
        self.description = description
        self.stored = stored
        self.isStaged = isStaged
        result = SchemaResolution(record: stored ?? SchemaRecord(version: description.version))
        for entity in stored?.entities ?? [] { old[entity.id] = entity }
    }

    private mutating func run() throws(RecordError) -> SchemaResolution {
        let sorted = description.entities.sorted { $0.name < $1.name }
        matchEntities(sorted)
        for entity in sorted { matchAttributes(entity) }
        for entity in sorted { matchRelationships(entity) }
        for entity in sorted { linkNewRelationships(entity) }
        checkLinks(sorted)
        buildLinkEntities(sorted)
        for entity in sorted { matchIndexes(entity) }
        result.record.entities.sort { $0.id < $1.id }
        if !problems.isEmpty { throw .schemaMismatch(problems: problems) }
        finish()
        return result
    }

    private mutating func finish() {
        if let stored, stored.version != description.version {
            step(.setVersion, "", "\(stored.version) -> \(description.version)")
        }
        result.record.version = description.version
        if result.record.derivation != SchemaRecord.derivationVersion {
            result.record.derivation = SchemaRecord.derivationVersion
            for entity in result.record.entities {
                result.builtIndexes[entity.id] = entity.indexes.map(\.tree)
            }
        }
        if result.record != stored { result.record.revision += 1 }
    }

    mutating func step(_ kind: MigrationStep.Kind, _ entity: String, _ detail: String) {
        result.steps.append(MigrationStep(kind: kind, entity: entity, detail: detail))
    }

    // MARK: Entities

    private mutating func matchEntities(_ sorted: [EntityDescription]) {
        let visible = (stored?.entities ?? []).filter { !$0.isHiddenLink }
        var declared = NameSet(expected: sorted.count)
        for entity in sorted { _ = declared.insert(entity.name) }
        var kept: Set<EntityID> = []
        var entities = result.record.entities.filter(\.isHiddenLink)
        for entity in sorted {
            let names = [entity.name] + entity.originalNames.filter { !declared.contains($0) }
            let match = names.lazy.compactMap { name in
                visible.first { $0.name == name && !kept.contains($0.id) }
            }.first
            if var match {
                kept.insert(match.id)
                ids[entity.name] = match.id
                if match.name != entity.name {
                    step(.renameEntity, entity.name, "\(match.name) -> \(entity.name)")
                }
                match.name = entity.name
                entities.append(match)
            } else {
                let id = EntityID(result.record.nextEntity)
                result.record.nextEntity += 1
                ids[entity.name] = id
                entities.append(
                    SchemaRecord.Entity(
                        id: id,
                        name: entity.name,
                        tree: takeTrees(1),
                        isHiddenLink: false
                    )
                )
                step(.addEntity, entity.name, "")
            }
        }
        for entity in visible where !kept.contains(entity.id) {
            result.droppedEntities.append(entity)
            step(.dropEntity, entity.name, "")
        }
        result.record.entities = entities
    }

    mutating func takeTrees(_ count: UInt32) -> TreeID {
        let tree = TreeID(result.record.nextTree)
        result.record.nextTree += count
        return tree
    }

    mutating func change(
        _ name: String,
        _ body: (inout SchemaCatalog, inout SchemaRecord.Entity) -> Void
    ) {
        guard let id = ids[name],
            let index = result.record.entities.firstIndex(where: { $0.id == id })
        else { return }
        var entity = result.record.entities[index]
        body(&self, &entity)
        result.record.entities[index] = entity
    }

    // MARK: Attributes

    private mutating func matchAttributes(_ declared: EntityDescription) {
        change(declared.name) { catalog, entity in
            if entity.has(declared.attributes) { return }
            var rest = entity.attributes
            var attributes: [SchemaRecord.Attribute] = []
            let names = Set(declared.attributes.map(\.name))
            for attribute in declared.attributes {
                let known =
                    [attribute.name] + attribute.originalNames.filter { !names.contains($0) }
                let match = known.lazy.compactMap { name in
                    rest.firstIndex { $0.name == name }
                }.first
                if let match, catalog.isConverted(rest[match], attribute) {
                    attributes.append(catalog.converted(rest[match], to: attribute, &entity))
                } else if let match {
                    attributes.append(
                        catalog.changed(rest.remove(at: match), to: attribute, of: entity)
                    )
                } else {
                    attributes.append(catalog.added(attribute, to: &entity))
                }
            }
            let converted = catalog.result.converted[entity.id] ?? []
            for attribute in rest {
                if !converted.contains(where: { $0.column == attribute.column }) {
                    catalog.step(.dropAttribute, entity.name, attribute.name)
                }
                catalog.result.clearedColumns[entity.id, default: []].append(attribute.column)
            }
            entity.attributes = attributes
        }
    }

    /// Whether a stage's code turns the values of one into those of the other.
    private func isConverted(
        _ stored: SchemaRecord.Attribute,
        _ declared: AttributeDescription
    ) -> Bool {
        guard isStaged, stored.typeCode != declared.type.rawValue else { return false }
        return AttributeType(rawValue: stored.typeCode)?.widens(to: declared.type) != true
    }

    /// A new column under the name, or a newer name, of one that goes.
    private mutating func converted(
        _ stored: SchemaRecord.Attribute,
        to declared: AttributeDescription,
        _ entity: inout SchemaRecord.Entity
    ) -> SchemaRecord.Attribute {
        result.converted[entity.id, default: []].append(stored)
        let type = AttributeType(rawValue: stored.typeCode)
        let name =
            stored.name == declared.name ? stored.name : "\(stored.name) -> \(declared.name)"
        step(
            .convertAttribute,
            entity.name,
            "\(name): \(type.map(\.description) ?? "type \(stored.typeCode)") -> \(declared.type)"
        )
        return added(declared, to: &entity, isNew: false)
    }

    private mutating func added(
        _ declared: AttributeDescription,
        to entity: inout SchemaRecord.Entity,
        isNew: Bool = true
    ) -> SchemaRecord.Attribute {
        let column = takeColumn(&entity)
        if old[entity.id] != nil {
            if isNew { step(.addAttribute, entity.name, declared.name) }
            if !isStaged, !declared.isOptional, declared.defaultValue == .null {
                result.emptyOnly[entity.id, default: []].append(declared.name)
            }
        }
        return SchemaRecord.Attribute(
            column: column,
            name: declared.name,
            typeCode: declared.type.rawValue,
            isOptional: declared.isOptional,
            defaultValue: declared.defaultValue,
            externalLimit: declared.externalLimit
        )
    }

    mutating func takeColumn(_ entity: inout SchemaRecord.Entity) -> ColumnID {
        let column = ColumnID(entity.nextColumn)
        if Int(entity.nextColumn) >= RowCoding.columnsMax {
            let problem = "\(entity.name) has used up its \(RowCoding.columnsMax) columns"
            if !problems.contains(problem) { problems.append(problem) }
            return column
        }
        entity.nextColumn += 1
        return column
    }

    /// The stored attribute with the declaration's name, type and limit. The default stays: it is
    /// the value of rows that were written before the attribute existed.
    private mutating func changed(
        _ stored: SchemaRecord.Attribute,
        to declared: AttributeDescription,
        of entity: SchemaRecord.Entity
    ) -> SchemaRecord.Attribute {
        var attribute = stored
        if stored.name != declared.name {
            step(.renameAttribute, entity.name, "\(stored.name) -> \(declared.name)")
            attribute.name = declared.name
        }
        if stored.typeCode != declared.type.rawValue {
            let type = AttributeType(rawValue: stored.typeCode)
            if let type, type.widens(to: declared.type) {
                step(.changeAttribute, entity.name, "\(declared.name): \(type) -> \(declared.type)")
                attribute.typeCode = declared.type.rawValue
            } else {
                let name = type?.description ?? "type \(stored.typeCode)"
                problems.append(
                    "\(entity.name).\(declared.name) is \(name) in the store and"
                        + " \(declared.type) in the app:"
                        + " convert it in a custom stage of a MigrationPlan, or declare both, the"
                        + " old one as it was and the new one under a new name, copy the values"
                        + " in the app, and leave the old one out later"
                )
            }
        }
        if stored.isOptional != declared.isOptional {
            let change = declared.isOptional ? "becomes optional" : "becomes required"
            step(.changeAttribute, entity.name, "\(declared.name) \(change)")
            attribute.isOptional = declared.isOptional
            if !declared.isOptional {
                var filled = attribute
                filled.defaultValue = declared.defaultValue
                result.filledColumns[entity.id, default: []].append(filled)
            }
        }
        if stored.externalLimit != declared.externalLimit {
            step(.changeAttribute, entity.name, "\(declared.name): limit of external storage")
            attribute.externalLimit = declared.externalLimit
        }
        return attribute
    }
}

extension SchemaRecord.Entity {
    /// Whether these are its attributes, none changed: so it is in most openings.
    fileprivate func has(_ declared: [AttributeDescription]) -> Bool {
        guard attributes.count == declared.count else { return false }
        return zip(attributes, declared).allSatisfy { stored, declared in
            stored.name == declared.name && stored.typeCode == declared.type.rawValue
                && stored.isOptional == declared.isOptional
                && stored.externalLimit == declared.externalLimit
        }
    }
}
