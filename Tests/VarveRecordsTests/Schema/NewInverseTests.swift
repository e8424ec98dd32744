// That both sides agree when a schema makes relationships each other's inverse.

import Testing
import VarveBase
import VarveEngine
import VarveFormat

@testable import VarveRecords

@Suite(.verified) struct NewInverseTests {
    private func toOne(
        _ name: String,
        _ inverse: String? = nil,
        _ rule: DeleteRule = .nullify
    ) -> RelationshipDescription {
        RelationshipDescription(name: name, target: "Node", inverse: inverse, deleteRule: rule)
    }

    private func list(_ name: String, _ inverse: String? = nil) -> RelationshipDescription {
        RelationshipDescription(
            name: name,
            target: "Node",
            inverse: inverse,
            isToMany: true,
            isOrdered: true
        )
    }

    private func schema(
        _ version: UInt32,
        _ relationships: RelationshipDescription...
    ) -> SchemaDescription {
        SchemaDescription(
            version: version,
            entities: [EntityDescription(name: "Node", relationships: relationships)]
        )
    }

    /// Nodes 1 to 9 under a schema, changed by `body`, and the store closed. Returns their IDs.
    private func nodes(
        _ directory: TestDirectory,
        _ schema: SchemaDescription,
        _ body: (RecordTransaction, RecordEntity, [ObjectID]) throws -> Void
    ) throws -> [ObjectID] {
        let store = try directory.open(schema)
        let node = try store.schema.require("Node")
        let first = store.allocateObjectIDs(10).rawValue
        let ids = (0..<10).map { ObjectID(first + $0) }
        _ = try store.write { transaction in
            for id in ids { try transaction.insert(node.id, id, []) }
            try body(transaction, node, ids)
        }
        try store.close()
        return ids
    }

    private func related(
        _ store: RecordStore,
        _ name: String,
        of id: ObjectID
    ) throws -> [ObjectID] {
        let node = try store.schema.require("Node")
        let relationship = try #require(node.relationship(named: name))
        return try store.snapshot().relatedIDs(node, relationship, of: id)
    }

    private func set(
        _ transaction: RecordTransaction,
        _ node: RecordEntity,
        _ object: ObjectID,
        _ name: String,
        _ target: ObjectID
    ) throws {
        try transaction.update(
            node.id,
            object,
            [ColumnValue(node.column(name), .reference(target))]
        )
    }

    @Test func `A to-one gets an inverse that is to-one`() throws {
        let directory = TestDirectory()
        let ids = try nodes(directory, schema(1, toOne("next"))) { transaction, node, ids in
            try set(transaction, node, ids[1], "next", ids[2])
            try set(transaction, node, ids[3], "next", ids[3])
        }
        let store = try directory.open(schema(2, toOne("next", "previous"), toOne("previous")))
        #expect(try related(store, "previous", of: ids[2]) == [ids[1]])
        #expect(try related(store, "previous", of: ids[3]) == [ids[3]])
        #expect(try related(store, "previous", of: ids[1]) == [])
    }

    @Test func `Two to-ones become each other's inverse`() throws {
        let directory = TestDirectory()
        let before = schema(1, toOne("next"), toOne("previous"))
        let ids = try nodes(directory, before) { transaction, node, ids in
            try set(transaction, node, ids[1], "next", ids[2])
            try set(transaction, node, ids[4], "previous", ids[3])
            try set(transaction, node, ids[5], "next", ids[6])
            try set(transaction, node, ids[6], "previous", ids[5])
        }
        let store = try directory.open(schema(2, toOne("next", "previous"), toOne("previous")))
        #expect(try related(store, "previous", of: ids[2]) == [ids[1]])
        #expect(try related(store, "next", of: ids[3]) == [ids[4]])
        #expect(try related(store, "next", of: ids[5]) == [ids[6]])
    }

    @Test func `A list gets an inverse, and an inverse gets a list`() throws {
        let directory = TestDirectory()
        let ids = try nodes(directory, schema(1, list("chapters"))) { transaction, node, ids in
            try transaction.setOrder(
                node,
                try #require(node.relationship(named: "chapters")),
                of: ids[1],
                [ids[5], ids[2], ids[4]]
            )
        }
        let store = try directory.open(schema(2, list("chapters", "book"), toOne("book")))
        for id in [ids[2], ids[4], ids[5]] {
            #expect(try related(store, "book", of: id) == [ids[1]])
        }
        #expect(try related(store, "chapters", of: ids[1]) == [ids[5], ids[2], ids[4]])

        let other = TestDirectory()
        let members = try nodes(other, schema(1, toOne("book"))) { transaction, node, ids in
            for member in [5, 2, 4] {
                try set(transaction, node, ids[member], "book", ids[1])
            }
        }
        let listed = try other.open(schema(2, toOne("book", "chapters"), list("chapters")))
        #expect(
            try related(listed, "chapters", of: members[1])
                == [members[2], members[4], members[5]]
        )
    }

    @Test func `Sides that disagree refuse the opening, and nothing is written`() throws {
        let directory = TestDirectory()
        let before = schema(1, toOne("next"))
        let ids = try nodes(directory, before) { transaction, node, ids in
            try set(transaction, node, ids[1], "next", ids[3])
            try set(transaction, node, ids[2], "next", ids[3])
        }
        let error = #expect(throws: RecordError.self) {
            try directory.open(schema(2, toOne("next", "previous"), toOne("previous")))
        }
        guard case .schemaMismatch(let problems)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(problems.count == 1)
        #expect(problems[0].contains("Node.next has an inverse now"))
        #expect(problems[0].contains("1 objects, as Node \(ids[2].rawValue)"), "\(problems)")
        let store = try directory.open(before)
        #expect(try related(store, "next", of: ids[2]) == [ids[3]])
    }

    @Test func `References to deleted objects go when their rule does`() throws {
        let directory = TestDirectory()
        let before = schema(1, toOne("stale", nil, .noAction))
        let ids = try nodes(directory, before) { transaction, node, ids in
            try set(transaction, node, ids[1], "stale", ids[2])
            try set(transaction, node, ids[3], "stale", ids[4])
            try transaction.delete(node.id, ids[2])
        }
        let store = try directory.open(schema(2, toOne("stale")))
        #expect(try related(store, "stale", of: ids[1]) == [])
        #expect(try related(store, "stale", of: ids[3]) == [ids[4]])
    }
}
