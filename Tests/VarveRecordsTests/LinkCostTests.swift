// What links cost: index entries and pages are counted, not time, for n and 2n members.

import Testing
import VarveBase
import VarveEngine

@testable import VarveRecords

/// Lists with an order on one side, on both, and without one.
enum Lists {
    static let schema = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "List",
                relationships: [
                    RelationshipDescription(
                        name: "ordered",
                        target: "Member",
                        isToMany: true,
                        isOrdered: true
                    ),
                    RelationshipDescription(
                        name: "both",
                        target: "Member",
                        inverse: "lists",
                        isToMany: true,
                        isOrdered: true
                    ),
                    RelationshipDescription(
                        name: "far",
                        target: "Member",
                        inverse: "farLists",
                        isToMany: true
                    ),
                ]
            ),
            EntityDescription(
                name: "Member",
                relationships: [
                    RelationshipDescription(
                        name: "lists",
                        target: "List",
                        inverse: "both",
                        isToMany: true,
                        isOrdered: true
                    ),
                    RelationshipDescription(
                        name: "farLists",
                        target: "List",
                        inverse: "far",
                        isToMany: true,
                        isOrdered: true
                    ),
                ]
            ),
        ]
    )
}

/// A store with one list and its members, and what a transaction costs there.
struct ListStore {
    let store: RecordStore
    let list: RecordEntity
    let member: RecordEntity
    let owner: ObjectID
    let members: [ObjectID]

    init(_ count: Int) throws {
        store = try RecordStore.open(.memory, schema: Lists.schema, options: RecordOptions())
        (list, member) = (try store.schema.require("List"), try store.schema.require("Member"))
        owner = try store.insert("List")
        let store = store
        let member = member
        members = (0..<count).map { _ in store.allocateObjectIDs(1) }
        let ids = members
        _ = try store.write { transaction in
            for id in ids { try transaction.insert(member.id, id, []) }
        }
    }

    func relationship(_ name: String) throws -> RecordRelationship {
        try #require(list.relationship(named: name) ?? member.relationship(named: name))
    }

    func ids(_ name: String) throws -> [ObjectID] {
        try store.snapshot().relatedIDs(list, relationship(name), of: owner)
    }

    /// Index entries that the transaction read.
    func entries(_ body: (RecordTransaction) throws -> Void) throws -> Int {
        let before = store.statistics.entriesScanned
        _ = try store.write(body)
        return store.statistics.entriesScanned - before
    }
}

/// Expects that twice as much costs about twice as much; squared, it would be four times.
func expectLinear(
    _ count: Int,
    percent: Int = 225,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ cost: (Int) throws -> Int
) throws {
    let (once, twice) = (try cost(count), try cost(2 * count))
    #expect(
        twice <= once * percent / 100 + 64,
        "\(count): \(once), \(2 * count): \(twice)",
        sourceLocation: sourceLocation
    )
}

@Suite(.verified) struct LinkCostTests {
    @Test(arguments: ["ordered", "both", "far"])
    func `Appending n members reads a few entries for each`(_ name: String) throws {
        try expectLinear(300) { count in
            let lists = try ListStore(count)
            let relationship = try lists.relationship(name)
            let entries = try lists.entries { transaction in
                for id in lists.members {
                    try transaction.addLink(lists.list, relationship, from: lists.owner, to: id)
                }
            }
            #expect(entries <= 3 * count)
            #expect(try lists.ids(name) == lists.members)
            return entries
        }
    }

    @Test(arguments: ["lists", "farLists"])
    func `Linking n members from the other side reads a few entries for each`(
        _ name: String
    ) throws {
        try expectLinear(300) { count in
            let lists = try ListStore(count)
            let relationship = try lists.relationship(name)
            let entries = try lists.entries { transaction in
                for id in lists.members {
                    try transaction.addLink(lists.member, relationship, from: id, to: lists.owner)
                }
            }
            #expect(entries <= 3 * count)
            return entries
        }
    }

    @Test(arguments: ["ordered", "both", "far"])
    func `Removing n members one by one reads a few entries for each`(_ name: String) throws {
        try expectLinear(300) { count in
            let lists = try ListStore(count)
            let relationship = try lists.relationship(name)
            _ = try lists.store.write { transaction in
                for id in lists.members {
                    try transaction.addLink(lists.list, relationship, from: lists.owner, to: id)
                }
            }
            let entries = try lists.entries { transaction in
                for id in lists.members.reversed() {
                    try transaction.removeLink(lists.list, relationship, from: lists.owner, to: id)
                }
            }
            #expect(entries <= 3 * count)
            #expect(try lists.ids(name) == [])
            return entries
        }
    }

    @Test func `Deleting n members of lists reads a few entries for each`() throws {
        try expectLinear(300) { count in
            let lists = try ListStore(count)
            for name in ["ordered", "both", "far"] {
                let relationship = try lists.relationship(name)
                _ = try lists.store.write { transaction in
                    for id in lists.members {
                        try transaction.addLink(lists.list, relationship, from: lists.owner, to: id)
                    }
                }
            }
            let entries = try lists.entries { transaction in
                for id in lists.members { try transaction.delete(lists.member.id, id) }
            }
            #expect(entries <= 8 * count)
            for name in ["ordered", "both", "far"] { #expect(try lists.ids(name) == []) }
            return entries
        }
    }

    @Test func `Links of many lists ordered on both sides read each list once`() throws {
        // Every list has every member: no side is short.
        try expectLinear(400) { links in
            let side = 20
            let lists = try ListStore(side)
            let both = try lists.relationship("both")
            let owners = (0..<links / side).map { _ in lists.store.allocateObjectIDs(1) }
            _ = try lists.store.write { transaction in
                for owner in owners { try transaction.insert(lists.list.id, owner, []) }
            }
            let entries = try lists.entries { transaction in
                for owner in owners {
                    for id in lists.members {
                        try transaction.addLink(lists.list, both, from: owner, to: id)
                    }
                }
            }
            #expect(entries <= 4 * links)
            return entries
        }
    }
}
