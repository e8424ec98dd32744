// Uniqueness constraints and their policies.

import Testing
import VarveBase
import VarveEngine

@testable import VarveRecords

@Suite(.verified) struct UniqueConstraintTests {
    private static let schema = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "User",
                attributes: [
                    AttributeDescription(name: "mail", type: .text, isOptional: true),
                    AttributeDescription(name: "first", type: .text, isOptional: true),
                    AttributeDescription(name: "last", type: .text, isOptional: true),
                ],
                uniqueConstraints: [
                    UniqueConstraintDescription(["mail"], policy: .upsert),
                    UniqueConstraintDescription(["first", "last"]),
                ]
            )
        ]
    )

    private func violations(_ body: () throws -> Void) -> [UniqueViolation] {
        do {
            try body()
            return []
        } catch RecordError.notUnique(let violations) {
            return violations
        } catch {
            Issue.record(error)
            return []
        }
    }

    @Test func `Equal values are refused, all of them listed, nothing is saved`() throws {
        let store = try Cities.store(Self.schema)
        let user = try store.schema.require("User")
        let there = try store.insert(
            "User",
            [("mail", .text("a")), ("first", .text("x")), ("last", .text("y"))]
        )
        let ids = (0..<4).map { _ in store.allocateObjectIDs(1) }
        let found = violations {
            _ = try store.write { transaction in
                try transaction.insert(user.id, ids[0], user.values([("mail", .text("a"))]))
                try transaction.insert(
                    user.id,
                    ids[1],
                    user.values([("first", .text("x")), ("last", .text("y"))])
                )
                try transaction.insert(user.id, ids[2], user.values([("mail", .text("b"))]))
                try transaction.insert(user.id, ids[3], user.values([("mail", .text("b"))]))
            }
        }
        #expect(found.map(\.properties) == [["mail"], ["mail"], ["first", "last"]])
        #expect(found.map(\.objects) == [[there, ids[0]], [ids[2], ids[3]], [there, ids[1]]])
        #expect(found.map(\.policy) == [.upsert, .upsert, .error])
        #expect(try store.snapshot().count(store.query("User")) == 1)
    }

    @Test func `Null equals nothing, compound constraints compare all parts`() throws {
        let store = try Cities.store(Self.schema)
        try store.insert("User", [("mail", .null), ("first", .text("x"))])
        try store.insert("User", [("mail", .null), ("first", .text("x"))])
        try store.insert("User", [("first", .text("x")), ("last", .text("a"))])
        try store.insert("User", [("first", .text("x")), ("last", .text("b"))])
        #expect(try store.snapshot().count(store.query("User")) == 4)
    }

    @Test func `Two objects may exchange their values in one write`() throws {
        let store = try Cities.store(Self.schema)
        let user = try store.schema.require("User")
        let one = try store.insert("User", [("mail", .text("1"))])
        let two = try store.insert("User", [("mail", .text("2"))])
        _ = try store.write { transaction in
            try transaction.update(user.id, one, user.values([("mail", .text("2"))]))
            try transaction.update(user.id, two, user.values([("mail", .text("1"))]))
        }
        let found = violations {
            _ = try store.write { try $0.update(user.id, one, user.values([("mail", .text("1"))])) }
        }
        #expect(found.map(\.objects) == [[one, two]])
    }

    @Test func `Texts longer than a key keeps are compared whole`() throws {
        let store = try Cities.store(Self.schema)
        let user = try store.schema.require("User")
        let long = String(repeating: "m", count: 3_000)
        let one = try store.insert("User", [("mail", .text(long + "1"))])
        let two = try store.insert("User", [("mail", .text(long + "2"))])
        let found = violations {
            _ = try store.write {
                try $0.update(user.id, two, user.values([("mail", .text(long + "1"))]))
            }
        }
        #expect(found.map(\.objects) == [[one, two]])
    }

    @Test func `Conflicts are found before the insert, for upsert and ignore`() throws {
        let store = try Cities.store(Self.schema)
        let user = try store.schema.require("User")
        let there = try store.insert(
            "User",
            [("mail", .text("a")), ("first", .text("x")), ("last", .text("y"))]
        )
        _ = try store.write { (transaction) throws in
            let mail = user.values([("mail", .text("a"))])
            let both = mail + user.values([("first", .text("x")), ("last", .text("y"))])
            #expect(
                try transaction.uniqueConflicts(user.id, values: mail).map(\.objects) == [[there]]
            )
            #expect(try transaction.uniqueConflicts(user.id, values: both).count == 2)
            #expect(
                try transaction.uniqueConflicts(user.id, values: both, excluding: there).isEmpty
            )
            #expect(try transaction.uniqueConflicts(user.id, values: []).isEmpty)
        }
    }

    @Test func `A new constraint over duplicates fails with a list, the old commit stands`()
        throws
    {
        let directory = TestDirectory()
        var schema = Self.schema
        schema.entities[0].uniqueConstraints = []
        do {
            let store = try directory.open(schema)
            try store.insert("User", [("mail", .text("a"))])
            try store.insert("User", [("mail", .text("a"))])
            try store.insert("User", [("mail", .text("b"))])
            try store.close()
        }
        let found = violations { _ = try directory.open(Self.schema) }
        #expect(found.map(\.properties) == [["mail"]])
        #expect(found.first?.objects.count == 2)
        let store = try directory.open(schema)
        #expect(try store.snapshot().count(store.query("User")) == 3)
        #expect(try store.schema.require("User").indexes.isEmpty)
        try store.close()
    }
}
