// What the code of a random stage does, to the store and to the model.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveRecords
import VarveTesting

@testable import VarveObjects

struct StagePlan: Sendable {
    enum Step: Sendable {
        case add(String, String)
        case rename(String, String, String)
        case convert(String, String, AttributeType, AttributeType)
        case drop(String, String)
        case swap(String, String, String, AttributeType)
        case rows(String)

        var addsRows: Bool { if case .rows = self { true } else { false } }
    }

    let fills: Bool
    private let random: SeededRandom
    var steps: [Step] = []
    var removing: Set<String> = []
    /// Attributes that one step has to do with already.
    var touched: Set<String> = []

    init(fills: Bool, _ random: SeededRandom) {
        self.fills = fills
        self.random = random
    }

    func run(_ migration: Migration, _ box: ModelBox, _ schema: SchemaDescription) throws {
        var random = random
        box.store.schema = schema
        if fills {
            for name in ["B", "C", "D", "A"] {
                try insert(Int.random(in: 20...60, using: &random), name, migration, box, &random)
            }
            return
        }
        // New rows are of the new schema: what turns old ones into such has come before.
        for step in steps where !step.addsRows { try run(step, migration, box, &random) }
        for step in steps where step.addsRows { try run(step, migration, box, &random) }
        if box.store.breaksConstraint { box.brokeOnTheWay = true }
    }

    private func run(
        _ step: Step,
        _ migration: Migration,
        _ box: ModelBox,
        _ random: inout SeededRandom
    ) throws {
        switch step {
        case .add(let entity, let name):
            box.change(entity) { $0.values[name] = .null }
        case .rename(let entity, let before, let after):
            box.change(entity) { $0.values[after] = $0.values.removeValue(forKey: before) }
        case .drop(let entity, let name):
            box.change(entity) { $0.values[name] = nil }
        case .convert(let entity, let name, let from, let to):
            try migration.update(entity) { old, new in
                let value = Self.converted(try Self.read(old, name, from), to)
                try Self.write(value, name, &new, migration)
            }
            box.change(entity) { row in
                row.values[name] = Self.converted(row.values[name] ?? .null, to)
            }
        case .swap(let entity, let first, let second, let type):
            // In two passes: the second reads what the first has written over.
            for (from, to) in [(first, second), (second, first)] {
                try migration.update(entity) { old, new in
                    try Self.write(try Self.read(old, from, type), to, &new, migration)
                }
            }
            box.change(entity) { row in
                let kept = row.values[first]
                row.values[first] = row.values[second]
                row.values[second] = kept
            }
        case .rows(let entity): try changeRows(of: entity, migration, box, &random)
        }
    }

    // MARK: Rows

    /// Some go, some come, and links change.
    private func changeRows(
        of entity: String,
        _ migration: Migration,
        _ box: ModelBox,
        _ random: inout SeededRandom
    ) throws {
        let number = try #require(migration.change.new.entity(named: entity)?.id)
        if entity == "A" {
            let (owners, peers) = (box.store.ids("B"), box.store.ids("C"))
            var draws: [ObjectID: (owner: ObjectID?, list: ObjectID?, peers: [ObjectID])] = [:]
            for id in box.store.ids("A") where Int.random(in: 0..<3, using: &random) == 0 {
                draws[id] = (
                    owners.randomElement(using: &random), owners.randomElement(using: &random),
                    peers.isEmpty
                        ? [] : (0..<2).compactMap { _ in peers.randomElement(using: &random) }
                )
            }
            let targets = try (
                #require(migration.change.new.entity(named: "B")?.id),
                #require(migration.change.new.entity(named: "C")?.id)
            )
            var order: [ObjectID] = []
            try migration.update("A") { old, new in
                guard let draw = draws[old.id.object] else { return }
                order.append(old.id.object)
                try new.set("owner", to: draw.owner.map { migration.identity(targets.0, $0) })
                try new.set("list", to: draw.list.map { migration.identity(targets.0, $0) })
                try new.set("peers", to: draw.peers.map { migration.identity(targets.1, $0) })
            }
            for id in order {
                guard let draw = draws[id] else { continue }
                box.relate(id, draw.owner, draw.list, Set(draw.peers))
            }
        }
        try insert(Int.random(in: 0..<6, using: &random), entity, migration, box, &random)
        // Rows of before the stage only; the new ones of a chain's earlier stage are among them.
        var gone: [ObjectID] = []
        try migration.forEach(entity) { old in
            if Int.random(in: 0..<10, using: &random) == 0 { gone.append(old.id.object) }
        }
        for id in gone {
            try migration.delete(migration.identity(number, id))
            box.store.delete(entity, id)
        }
    }

    private func insert(
        _ count: Int,
        _ entity: String,
        _ migration: Migration,
        _ box: ModelBox,
        _ random: inout SeededRandom
    ) throws {
        guard let description = box.store.schema[entity: entity] else { return }
        let (owners, peers) = (box.store.ids("B"), box.store.ids("C"))
        for _ in 0..<count {
            var row = ModelRow()
            for attribute in description.attributes {
                let isNull = Int.random(in: 0..<5, using: &random) == 0
                row.values[attribute.name] = isNull ? .null : .random(attribute.type, &random)
            }
            if entity == "A" {
                row.owner = owners.randomElement(using: &random)
                row.list = owners.randomElement(using: &random)
                row.peers = Set((0..<2).compactMap { _ in peers.randomElement(using: &random) })
            }
            let values = row.values
            let (owner, list, members) = (row.owner, row.list, row.peers)
            let id = try migration.insert(entity) { new in
                for (name, value) in values { try Self.write(value, name, &new, migration) }
                guard entity == "A" else { return }
                let target = try #require(migration.change.new.entity(named: "B")?.id)
                let peer = try #require(migration.change.new.entity(named: "C")?.id)
                try new.set("owner", to: owner.map { migration.identity(target, $0) })
                try new.set("list", to: list.map { migration.identity(target, $0) })
                try new.set("peers", to: members.map { migration.identity(peer, $0) })
            }
            box.store.rows[entity]?[id.object] = row
            if entity == "A" { box.relate(id.object, owner, list, members) }
        }
    }

    // MARK: Values

    private static func read(
        _ old: borrowing OldRow,
        _ name: String,
        _ type: AttributeType
    ) throws -> ModelValue {
        switch type {
        case .text: return (try old[name] as String?).map { .text($0) } ?? .null
        case .int64: return (try old[name] as Int?).map { .int(Int64($0)) } ?? .null
        case .data: return (try old[name] as Data?).map { .data([UInt8]($0)) } ?? .null
        default:
            let blob = try old[name] as Blob?
            return try blob.map { .blob([UInt8](try $0.readAll())) } ?? .null
        }
    }

    private static func write(
        _ value: ModelValue,
        _ name: String,
        _ new: inout NewRow,
        _ migration: Migration
    ) throws {
        switch value {
        case .null: try new.setNil(name)
        case .text(let text): try new.set(name, to: text)
        case .int(let number): try new.set(name, to: number)
        case .data(let bytes): try new.set(name, to: Data(bytes))
        case .blob(let bytes):
            // Some in a file of their own.
            let limit = bytes.count % 2 == 0 ? 50 : 10_000
            try new.set(name, to: try migration.makeBlob(Data(bytes), externalLimit: limit))
        }
    }

    /// The value as another type: what fits says the same.
    private static func converted(_ value: ModelValue, _ type: AttributeType) -> ModelValue {
        let bytes: [UInt8]
        switch value {
        case .null: return .null
        case .text(let text): bytes = Array(text.utf8.prefix(200))
        case .int(let number): bytes = Array("\(number)".utf8)
        case .data(let data), .blob(let data): bytes = data
        }
        switch type {
        case .text: return .text(bytes.map { String($0, radix: 16) }.joined())
        case .int64: return .int(bytes.reduce(0) { ($0 &* 31 &+ Int64($1)) % 1_000 })
        case .data: return .data(bytes)
        default: return .blob(bytes)
        }
    }
}

extension ModelStore {
    fileprivate func ids(_ entity: String) -> [ObjectID] { (rows[entity] ?? [:]).keys.sorted() }
}

extension ModelBox {
    fileprivate func change(_ entity: String, _ body: (inout ModelRow) -> Void) {
        for id in (store.rows[entity] ?? [:]).keys {
            guard var row = store.rows[entity]?[id] else { continue }
            body(&row)
            store.rows[entity]?[id] = row
        }
    }

    /// A one-to-one frees whoever was there before.
    fileprivate func relate(
        _ id: ObjectID,
        _ owner: ObjectID?,
        _ list: ObjectID?,
        _ peers: Set<ObjectID>
    ) {
        if let owner {
            change("A") { if $0.owner == owner { $0.owner = nil } }
        }
        guard var row = store.rows["A"]?[id] else { return }
        (row.owner, row.list, row.peers) = (owner, list, peers)
        store.rows["A"]?[id] = row
    }
}
