// A store and a plain model of it that random stages change side by side.
//
// Invariants
// - The model knows values and links, and no schema but the description that both go to.
// - What a stage does to the model follows from what the model held before the stage.

import Foundation
import VarveBase
import VarveEngine
import VarveRecords
import VarveTesting

@testable import VarveObjects

/// A value as the model keeps it.
enum ModelValue: Hashable {
    case null
    case text(String)
    case int(Int64)
    case data([UInt8])
    case blob([UInt8])

    static func random(_ type: AttributeType, _ random: inout SeededRandom) -> ModelValue {
        // Few values, so that constraints are met now and then.
        let number = Int.random(in: 0..<200, using: &random)
        switch type {
        case .text:
            let isLong = number % 20 == 0
            return .text("t\(number)" + String(repeating: "x", count: isLong ? 9_000 : 0))
        case .int64: return .int(Int64(number))
        case .data: return .data([UInt8](repeating: UInt8(number), count: number))
        default: return .blob([UInt8](repeating: UInt8(number), count: 100 + number))
        }
    }
}

/// A row as the model keeps it.
struct ModelRow: Equatable {
    var values: [String: ModelValue] = [:]
    /// A to-one, one-to-one with `owned`.
    var owner: ObjectID?
    /// A to-one, whose inverse is an ordered list.
    var list: ObjectID?
    /// Many to many.
    var peers: Set<ObjectID> = []
}

/// The store's content.
struct ModelStore: Equatable {
    var schema: SchemaDescription
    var rows: [String: [ObjectID: ModelRow]] = [:]
}

/// What the code of a stage changes; used on the thread that migrates.
final class ModelBox: @unchecked Sendable {
    var store: ModelStore
    /// Whether a stage that is not the last broke a constraint.
    var brokeOnTheWay = false
    init(_ store: ModelStore) { self.store = store }
}

extension ModelStore {
    /// A has an owner and a list in B, and peers in C. D stands alone.
    static func first(_ random: inout SeededRandom) -> ModelStore {
        var entities = ["A", "B", "C", "D"].map { EntityDescription(name: $0) }
        for index in entities.indices {
            for number in 0..<3 {
                let type = [AttributeType.text, .int64, .data, .blob].randomElement(using: &random)
                entities[index].attributes.append(
                    AttributeDescription(name: "p\(number)", type: type ?? .text, isOptional: true)
                )
            }
        }
        entities[0].relationships = [
            RelationshipDescription(name: "owner", target: "B", inverse: "owned"),
            RelationshipDescription(name: "list", target: "B", inverse: "members"),
            RelationshipDescription(name: "peers", target: "C", inverse: "peers", isToMany: true),
        ]
        entities[1].relationships = [
            RelationshipDescription(name: "owned", target: "A", inverse: "owner"),
            RelationshipDescription(
                name: "members",
                target: "A",
                inverse: "list",
                isToMany: true,
                isOrdered: true
            ),
        ]
        entities[2].relationships = [
            RelationshipDescription(name: "peers", target: "A", inverse: "peers", isToMany: true)
        ]
        var store = ModelStore(schema: SchemaDescription(version: 1, entities: entities))
        for entity in entities { store.rows[entity.name] = [:] }
        return store
    }

    mutating func delete(_ entity: String, _ id: ObjectID) {
        rows[entity]?[id] = nil
        guard entity == "B" || entity == "C" else { return }
        for (other, row) in rows["A"] ?? [:] {
            var row = row
            if row.owner == id { row.owner = nil }
            if row.list == id { row.list = nil }
            row.peers.remove(id)
            rows["A"]?[other] = row
        }
    }

    /// Whether two rows have the same value where that is forbidden.
    var breaksConstraint: Bool {
        schema.entities.contains { entity in
            entity.uniqueConstraints.contains { constraint in
                let values = (rows[entity.name] ?? [:]).values.compactMap { row in
                    row.values[constraint.properties[0]]
                }.filter { $0 != .null }
                return Set(values).count < values.count
            }
        }
    }

    // MARK: Comparing

    /// What the store shows otherwise than the model; nil: nothing.
    func difference(from container: PersistentContainer) throws -> String? {
        let snapshot = try container.store.snapshot()
        for description in schema.entities {
            guard let entity = snapshot.schema.entity(named: description.name) else {
                return "there is no \(description.name)"
            }
            let wanted = rows[entity.name] ?? [:]
            let ids = try snapshot.fetchIDs(RecordQuery(entity: entity.id))
            if Set(ids) != Set(wanted.keys) {
                return "\(entity.name) has \(ids.count) rows, and \(wanted.count) in the model"
            }
            for (id, row) in wanted {
                let found = try self.row(entity, id, snapshot, container)
                if found != row { return "\(entity.name) \(id.rawValue): \(found), model \(row)" }
            }
        }
        return try listDifference(snapshot)
    }

    private func row(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ snapshot: RecordSnapshot,
        _ container: PersistentContainer
    ) throws -> ModelRow {
        var row = ModelRow()
        guard let stored = try snapshot.row(entity.id, id) else { return row }
        for attribute in entity.attributes {
            switch try snapshot.value(of: stored, attribute.column) {
            case .text(let text): row.values[attribute.name] = .text(text)
            case .int(let number): row.values[attribute.name] = .int(number)
            case .data(let bytes): row.values[attribute.name] = .data(bytes)
            case .blob(let reference):
                let bytes = try snapshot.storage.blob(reference)?.readAll()
                row.values[attribute.name] = bytes.map { .blob($0) } ?? .null
            default: row.values[attribute.name] = .null
            }
        }
        if entity.name != "A" { return row }
        func targets(_ name: String) throws -> [ObjectID] {
            guard let relationship = entity.relationship(named: name) else { return [] }
            return try snapshot.relatedIDs(entity, relationship, of: id)
        }
        row.owner = try targets("owner").first
        row.list = try targets("list").first
        row.peers = Set(try targets("peers"))
        return row
    }

    /// The other sides of A's relationships.
    private func listDifference(_ snapshot: RecordSnapshot) throws -> String? {
        for (name, side) in [("B", "owned"), ("B", "members"), ("C", "peers")] {
            guard let entity = snapshot.schema.entity(named: name),
                let relationship = entity.relationship(named: side)
            else { continue }
            for id in (rows[name] ?? [:]).keys {
                let wanted = (rows["A"] ?? [:]).filter { _, row in
                    switch side {
                    case "owned": row.owner == id
                    case "members": row.list == id
                    default: row.peers.contains(id)
                    }
                }
                let found = try snapshot.relatedIDs(entity, relationship, of: id)
                if Set(found) != Set(wanted.keys) || found.count != wanted.count {
                    return "\(name) \(id.rawValue) \(side): \(found), model \(wanted.keys)"
                }
            }
        }
        return nil
    }
}
