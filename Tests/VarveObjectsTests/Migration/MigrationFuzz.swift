// Random chains of stages on a store and on a model of it. A finding names its seed.

import Foundation
import VarveBase
import VarveEngine
import VarveRecords
import VarveTesting

@testable import VarveObjects

/// One run: a store, some openings with a new chain of stages each.
struct MigrationFuzz {
    private var random: SeededRandom
    private let seed: UInt64
    private let disk = SimulatedDisk()
    private let bugs: Set<PlantedObjectBug>
    private var model: ModelStore
    private var nextName = 3

    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    init(seed: UInt64, _ bugs: Set<PlantedObjectBug> = []) {
        self.seed = seed
        self.bugs = bugs
        random = SeededRandom(seed: seed)
        model = ModelStore.first(&random)
    }

    static func run(seed: UInt64, _ bugs: Set<PlantedObjectBug> = []) throws {
        var fuzz = MigrationFuzz(seed: seed, bugs)
        try fuzz.run()
    }

    private mutating func run() throws {
        do {
            var empty = model
            empty.schema = SchemaDescription(version: 0, entities: [])
            try open(empty.schema, []).closeNow()
            try take(stages: 1)
            for _ in 0..<3 { try take(stages: Int.random(in: 1...3, using: &random)) }
        } catch let finding as Finding {
            throw finding
        } catch {
            throw Finding(description: "seed \(seed): \(error)")
        }
    }

    private func open(
        _ schema: SchemaDescription,
        _ stages: [MigrationStage]
    ) throws -> PersistentContainer {
        var options = ContainerOptions()
        options.plantedBugs = bugs
        // Small budgets: what a million rows meet, some rows meet here.
        options.adjustingEngine = { engine in
            engine.sortBytesMax = 2_000
            engine.appendedBytesMax = 16_000
            engine.changedBytesMax = 32_000
        }
        return try PersistentContainer.openNow(
            disk.location(),
            place: "test",
            description: schema,
            stages: stages,
            options: options
        )
    }

    // MARK: Stages

    private mutating func take(stages count: Int) throws {
        let box = ModelBox(model)
        var schema = model.schema
        var stages: [MigrationStage] = []
        for _ in 0..<count {
            // The first one fills the store.
            let isFirst = model.rows.values.allSatisfy(\.isEmpty)
            if !isFirst { schema.version += 1 }
            let plan = isFirst ? StagePlan(fills: true, random.branch(0)) : changed(&schema)
            let target = schema
            stages.append(
                .custom(to: target, removing: plan.removing) { migration in
                    try plan.run(migration, box, target)
                }
            )
        }
        // Names of before are of one version only.
        let clean = schema.withoutOriginalNames
        let isBroken: Bool
        do {
            let container = try open(schema, stages)
            isBroken = box.store.breaksConstraint
            if isBroken { throw Finding(description: "seed \(seed): duplicates were let through") }
            model = box.store
            if let difference = try model.difference(from: container) {
                throw Finding(description: "seed \(seed): \(difference)")
            }
            try container.closeNow()
        } catch let error as StoreError where error.code == .notUnique {
            guard box.store.breaksConstraint || box.brokeOnTheWay else {
                throw Finding(description: "seed \(seed): \(error)")
            }
            // As if nothing had been.
            let container = try open(model.schema, [])
            if let difference = try model.difference(from: container) {
                throw Finding(description: "seed \(seed), after a failure: \(difference)")
            }
            try container.closeNow()
            return
        }
        model.schema = clean
    }

    /// Some changes of the schema, and what the code does about them.
    private mutating func changed(_ schema: inout SchemaDescription) -> StagePlan {
        schema = schema.withoutOriginalNames
        var plan = StagePlan(fills: false, random.branch(UInt64(schema.version)))
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let index = Int.random(in: 0..<schema.entities.count, using: &random)
            change(&schema.entities[index], &plan)
        }
        return plan
    }

    private mutating func change(_ entity: inout EntityDescription, _ plan: inout StagePlan) {
        let names = Set(entity.attributes.map(\.name))
        let free = entity.attributes.filter { attribute in
            attribute.originalNames.isEmpty
                && !plan.touched.contains("\(entity.name).\(attribute.name)")
                && !entity.uniqueConstraints.contains { $0.properties.contains(attribute.name) }
        }
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            nextName += 1
            let type = [AttributeType.text, .int64, .data, .blob].randomElement(using: &random)
            entity.attributes.append(
                AttributeDescription(name: "p\(nextName)", type: type ?? .text, isOptional: true)
            )
            plan.touched.insert("\(entity.name).p\(nextName)")
            plan.steps.append(.add(entity.name, "p\(nextName)"))
        case 1:
            guard let before = free.randomElement(using: &random)?.name else { return }
            nextName += 1
            entity[attribute: before]?.originalNames = [before]
            entity[attribute: before]?.name = "p\(nextName)"
            plan.touched.insert("\(entity.name).p\(nextName)")
            plan.steps.append(.rename(entity.name, before, "p\(nextName)"))
        case 2, 3:
            guard let attribute = free.randomElement(using: &random) else { return }
            let types = [AttributeType.text, .int64, .data, .blob].filter { $0 != attribute.type }
            guard let type = types.randomElement(using: &random) else { return }
            entity[attribute: attribute.name]?.type = type
            plan.touched.insert("\(entity.name).\(attribute.name)")
            plan.steps.append(.convert(entity.name, attribute.name, attribute.type, type))
        case 4:
            guard free.count > 1, let gone = free.randomElement(using: &random)?.name else {
                return
            }
            entity[attribute: gone] = nil
            plan.removing.insert("\(entity.name).\(gone)")
            plan.steps.append(.drop(entity.name, gone))
        case 5:
            let kinds = Dictionary(grouping: free, by: \.type).values.filter { $0.count > 1 }
            guard let same = kinds.first else { return }
            for attribute in same { plan.touched.insert("\(entity.name).\(attribute.name)") }
            plan.steps.append(.swap(entity.name, same[0].name, same[1].name, same[0].type))
        case 6:
            guard let attribute = free.first(where: { $0.type == .int64 }), names.count > 1 else {
                return
            }
            if Bool.random(using: &random) { entity.indexes = [IndexDescription(attribute.name)] }
            if Int.random(in: 0..<3, using: &random) > 0 { return }
            entity.uniqueConstraints = [UniqueConstraintDescription([attribute.name])]
            plan.touched.insert("\(entity.name).\(attribute.name)")
        default: plan.steps.append(.rows(entity.name))
        }
        // An index of what is gone goes too.
        let left = Set(entity.attributes.map(\.name))
        entity.indexes.removeAll { index in !left.contains(index.terms[0].property) }
    }
}

extension SchemaDescription {
    fileprivate var withoutOriginalNames: SchemaDescription {
        var schema = self
        for index in schema.entities.indices {
            for at in schema.entities[index].attributes.indices {
                schema.entities[index].attributes[at].originalNames = []
            }
        }
        return schema
    }
}
