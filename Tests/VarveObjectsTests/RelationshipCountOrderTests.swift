// Counts of relationships under edits in unusual orders: displaced partners, owners and members
// deleted in one save, exchanges, undo, links of batches, and what others saved meanwhile.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

private final class Ship: ManagedObject {
    static let entityName = "Ship"
    struct Columns: Sendable {
        let captain = ToOneColumn<Ship, Hand>("captain", inverse: "commands", count: 1...1)
        let crew = ToManyColumn<Ship, Hand>("crew", inverse: "ship", ordered: true, count: ...3)
        let watch = ToManyColumn<Ship, Hand>("watch", count: ..<3)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var captain: Hand? {
        get { storedValue(Self.columns.captain, \.captain) }
        set { setStoredValue(newValue, Self.columns.captain, \.captain) }
    }
    var crew: ToMany<Hand> { storedValue(Self.columns.crew, \.crew) }
    var watch: ToMany<Hand> { storedValue(Self.columns.watch, \.watch) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Ship: Sendable {}

private final class Hand: ManagedObject {
    static let entityName = "Hand"
    struct Columns: Sendable {
        let commands = ToOneColumn<Hand, Ship>("commands")
        let ship = ToOneColumn<Hand, Ship>("ship")
        let ports = ToManyColumn<Hand, Port>("ports", inverse: "hands")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var commands: Ship? {
        get { storedValue(Self.columns.commands, \.commands) }
        set { setStoredValue(newValue, Self.columns.commands, \.commands) }
    }
    var ship: Ship? {
        get { storedValue(Self.columns.ship, \.ship) }
        set { setStoredValue(newValue, Self.columns.ship, \.ship) }
    }
    var ports: ToMany<Port> { storedValue(Self.columns.ports, \.ports) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Hand: Sendable {}

private final class Port: ManagedObject {
    static let entityName = "Port"
    struct Columns: Sendable {
        let name = Column<Port, String>("name", default: "")
        let hands = ToManyColumn<Port, Hand>("hands", count: 1...2)
        let chief = ToOneColumn<Port, Hand>("chief", deleteRule: .noAction, count: 1...1)
        let guards = ToManyColumn<Port, Hand>("guards", count: 1...)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var hands: ToMany<Hand> { storedValue(Self.columns.hands, \.hands) }
    var chief: Hand? {
        get { storedValue(Self.columns.chief, \.chief) }
        set { setStoredValue(newValue, Self.columns.chief, \.chief) }
    }
    var guards: ToMany<Hand> { storedValue(Self.columns.guards, \.guards) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Port: Sendable {}

private enum Harbour: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Ship.self, Hand.self, Port.self] }
}

private let noCaptain = "captain must lead to 1 object, not to 0"
private let noHands = "hands must lead to 1 to 2 objects, not to 0"

@Suite(.verified) struct RelationshipCountOrderTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext

    init() throws {
        container = try PersistentContainer.inMemory(
            schema: Harbour.self,
            options: ContainerOptions()
        )
        context = container.newContext()
        context.undoLimit = 10
    }

    private func ship(crew: Int = 0) -> Ship {
        let ship = Ship(in: context)
        ship.captain = Hand(in: context)
        for _ in 0..<crew { ship.crew.append(Hand(in: context)) }
        return ship
    }

    private func port(hands: Int = 1) -> Port {
        let port = Port(in: context)
        for _ in 0..<hands { port.hands.append(Hand(in: context)) }
        port.chief = Hand(in: context)
        port.guards.append(Hand(in: context))
        return port
    }

    /// What is complained of, and of which objects.
    private func complaints(_ body: () throws -> Void) -> [String] {
        do {
            try body()
            return []
        } catch let error as StoreError where error.code == .invalid {
            return error.details.map(\.message).sorted()
        } catch {
            return ["\(error)"]
        }
    }

    private func blamed(_ body: () throws -> Void) -> [ManagedObjectID] {
        do { try body() } catch let error as StoreError {
            return error.details.flatMap(\.objects)
        } catch {}
        return []
    }

    // MARK: One to one

    @Test func aDisplacedPartnerIsCounted() throws {
        let (first, second) = (ship(), ship())
        let captain = try #require(first.captain)
        try context.save()
        second.captain = captain
        #expect(blamed { try context.save() } == [first.objectID])
        context.rollback()
        captain.commands = second
        #expect(blamed { try context.save() } == [first.objectID])
        context.rollback()
        // In batches, from either side, and by a new row.
        #expect(
            blamed { try context.batchUpdate([second.id]) { $0.captain = captain.id } }
                == [first.objectID]
        )
        #expect(
            blamed { try context.batchUpdate([captain.id]) { $0.commands = second.id } }
                == [first.objectID]
        )
        #expect(
            Set(
                blamed {
                    try context.batchInsert(Ship.self, 0..<1) { row, _ in row.captain = captain.id }
                }
            ) == [first.objectID]
        )
        // A new hand takes the ship over: the ship has a captain all the time.
        #expect(
            complaints {
                try context.batchInsert(Hand.self, 0..<1) { row, _ in row.commands = first.id }
            } == []
        )
        #expect(try context.count(Ship.where { _ in .isIn([first.id]) }) == 1)
        context.advance()
        #expect(first.captain != nil && first.captain !== captain)
    }

    @Test func twoExchangeTheirPartners() throws {
        let (first, second) = (ship(), ship())
        let (one, other) = (try #require(first.captain), try #require(second.captain))
        try context.save()
        (first.captain, second.captain) = (other, one)
        #expect(first.captain === other && second.captain === one)
        #expect(complaints { try context.save() } == [])
        #expect(
            complaints {
                try context.batchUpdate([first.id, second.id]) { row in
                    row.captain = row.id == first.id ? one.id : other.id
                }
            } == []
        )
        context.advance()
        #expect(first.captain === one && second.captain === other)
        // In the order in which the first takes what the second has not given up yet, backwards.
        #expect(
            complaints {
                try context.batchUpdate([one.id, other.id]) { row in
                    row.commands = row.id == one.id ? second.id : first.id
                }
            } == []
        )
        context.advance()
        #expect(first.captain === other && second.captain === one)
        // One commit for each row is half an exchange.
        #expect(
            complaints {
                try context.batchUpdate([first.id, second.id], rowsPerCommit: 1) { row in
                    row.captain = row.id == first.id ? one.id : other.id
                }
            } == [noCaptain]
        )
    }

    // MARK: Deleting

    @Test func ownersAndMembersDeletedInOneSave() throws {
        let (ship, port) = (ship(crew: 2), port())
        try context.save()
        let hand = port.hands[0]
        // Owner and member together: nobody is left to be counted.
        context.delete(hand)
        context.delete(port)
        context.delete(try #require(ship.captain))
        #expect(complaints { try context.save() } == [noCaptain])
        context.delete(ship)
        #expect(complaints { try context.save() } == [])
        #expect(try context.count(Ship.all) == 0 && context.count(Port.all) == 0)
    }

    @Test func aDeletedMemberCountsOnEverySide() throws {
        let port = port(hands: 2)
        let hands = Array(port.hands)
        let (chief, sentry) = (try #require(port.chief), port.guards[0])
        try context.save()
        for hand in hands { context.delete(hand) }
        #expect(complaints { try context.save() } == [noHands])
        context.rollback()
        let noChief = "chief must lead to 1 object, not to 0"
        let noGuards = "guards must lead to at least 1 object, not to 0"
        context.delete(chief)
        #expect(complaints { try context.save() } == [noChief])
        context.rollback()
        context.delete(sentry)
        #expect(complaints { try context.save() } == [noGuards])
        context.rollback()
        #expect(complaints { try context.batchDelete(hands.map(\.id)) } == [noHands])
        #expect(complaints { try context.batchDelete([chief.id]) } == [noChief])
        #expect(complaints { try context.batchDelete([sentry.id]) } == [noGuards])
        // With their owner, in one commit of a request that finds the members first.
        #expect(complaints { try context.batchDelete([hands[0].id]) } == [])
        #expect(complaints { try context.batchDelete([port.id]) } == [])
    }

    @Test func aMemberIsReplacedInTheSaveThatDeletesIt() throws {
        let port = port(hands: 1)
        try context.save()
        context.delete(port.hands[0])
        port.hands.append(Hand(in: context))
        #expect(complaints { try context.save() } == [])
        // Deleted before the rule ran, and moved away before it was deleted.
        let other = self.port(hands: 1)
        let hand = port.hands[0]
        hand.ports.removeAll()
        hand.ports.append(other)
        context.delete(hand)
        #expect(complaints { try context.save() } == [noHands])
        port.hands.append(other.hands[0])
        #expect(complaints { try context.save() } == [])
    }

    // MARK: Undo, transactions, branches

    @Test func undoIsJudgedLikeAnyEdit() throws {
        let ship = ship(crew: 1)
        try context.save()
        let captain = try #require(ship.captain)
        context.delete(captain)
        #expect(complaints { try context.save() } == [noCaptain])
        try context.undo()
        #expect(complaints { try context.save() } == [], "the deletion was taken back")
        // What was saved rightly is undone into what may not be saved.
        ship.crew.append(Hand(in: context))
        ship.crew.append(Hand(in: context))
        try context.save()
        let other = Hand(in: context)
        other.ship = ship
        #expect(
            complaints { try context.save() } == ["crew must lead to at most 3 objects, not to 4"]
        )
        try context.undo()
        #expect(ship.crew.count == 3)
        #expect(complaints { try context.save() } == [])
    }

    @Test func aBranchMayBeHalfOfAnEdit() throws {
        let ship = ship()
        try context.save()
        let branch = try context.branch()
        let same = try #require(try branch.existingObject(with: ship.id))
        same.captain = nil
        try branch.mergeIntoParent()
        #expect(complaints { try context.save() } == [noCaptain])
        ship.captain = Hand(in: context)
        #expect(complaints { try context.save() } == [])
    }

    // MARK: Others

    @Test func whatOthersSavedCanMakeACountRight() throws {
        let port = port(hands: 1)
        try context.save()
        let others = container.newContext()
        let same = try #require(try others.existingObject(with: port.id))
        let hand = port.hands[0]
        same.hands.append(Hand(in: others))
        try others.save()
        // By what this context read, nobody would be left.
        hand.ports.remove(port)
        #expect(complaints { try context.save() } == [])
        #expect(port.hands.count == 1 && port.hands[0] !== hand)
    }

    @Test func whatOthersSavedCanMakeACountWrong() throws {
        let (first, second) = (ship(), ship())
        let port = port(hands: 2)
        try context.save()
        let others = container.newContext()
        func theirs<Entity: ManagedObject>(_ object: Entity) throws -> Entity {
            try #require(try others.existingObject(with: object.id))
        }
        // They take the captain whom this context deletes.
        let captain = try #require(first.captain)
        let replaced = try #require(second.captain)
        let taken = Hand(in: others)
        try theirs(first).captain = taken
        try theirs(second).captain = theirs(captain)
        try others.save()
        context.delete(captain)
        #expect(
            blamed { try context.save(mergePolicy: .objectWinsByProperty) } == [second.objectID],
            "of its captain this context knew nothing"
        )
        context.rollback()
        context.advance()
        #expect(second.captain === captain && replaced.commands == nil)
        // A batch of theirs leaves one hand; this context removes the one that it sees as second.
        try others.batchDelete([port.hands[0].id])
        let hand = port.hands[1]
        hand.ports.removeAll()
        #expect(complaints { try context.save(mergePolicy: .objectWinsByProperty) } == [noHands])
    }

    // MARK: Links in batches

    @Test func linksInBatchesAreCountedOnBothSides() throws {
        let (port, full) = (port(hands: 1), port(hands: 2))
        let free = Hand(in: context)
        try context.save()
        let hand = port.hands[0]
        #expect(complaints { try context.batchUpdate([port.id]) { $0.hands = [] } } == [noHands])
        #expect(complaints { try context.batchUpdate([hand.id]) { $0.ports = [] } } == [noHands])
        #expect(
            complaints { try context.batchUpdate([hand.id]) { $0.ports = [full.id] } }
                == [
                    noHands, "hands must lead to 1 to 2 objects, not to 3",
                ].sorted()
        )
        #expect(
            complaints {
                try context.batchInsert(Hand.self, 0..<1) { row, _ in row.ports = [full.id] }
            } == ["hands must lead to 1 to 2 objects, not to 3"]
        )
        // The last one goes while another one comes, in one commit.
        #expect(
            complaints {
                try context.batchUpdate([hand.id, free.id]) { row in
                    row.ports = row.id == free.id ? [port.id] : []
                }
            } == []
        )
        #expect(complaints { try context.batchUpdate([port.id]) { $0.guards = [] } }.count == 1)
        #expect(
            complaints { try context.batchInsert(Port.self, 0..<1) { row, _ in row.name = "x" } }
                .count == 3
        )
        #expect(
            complaints {
                try context.batchInsert(Port.self, 0..<1) { row, _ in
                    row.hands = [free.id, hand.id]
                    row.guards = [free.id]
                    row.chief = free.id
                }
            } == []
        )
    }

    @Test func anOrderedListIsCountedInBatches() throws {
        let ship = ship(crew: 2)
        try context.save()
        let many = "crew must lead to at most 3 objects, not to 4"
        #expect(
            complaints {
                try context.batchInsert(Hand.self, 0..<2) { row, _ in row.ship = ship.id }
            } == [many]
        )
        #expect(
            complaints {
                try context.batchInsert(Hand.self, 0..<1) { row, _ in row.ship = ship.id }
            } == []
        )
        context.advance()
        #expect(ship.crew.count == 3)
        let other = Hand(in: context)
        try context.save()
        #expect(
            complaints { try context.batchUpdate([other.id]) { $0.ship = ship.id } } == [many]
        )
        // From one list to another, and out of it.
        let second = self.ship()
        try context.save()
        let moved = ship.crew[0]
        try context.batchUpdate([moved.id]) { $0.ship = second.id }
        try context.batchUpdate([other.id]) { $0.ship = second.id }
        context.advance()
        #expect(ship.crew.count == 2 && second.crew.map(\.id) == [moved.id, other.id])
        try context.batchUpdate([moved.id]) { $0.ship = nil }
        context.advance()
        #expect(second.crew.map(\.id) == [other.id] && moved.ship == nil)
    }

    @Test func nilOverNilIsNoChange() throws {
        try context.batchInsert(Hand.self, 0..<2) { _, _ in }
        let result = try context.batchUpdate(Hand.all) { row in
            row.ship = nil
            row.commands = nil
        }
        #expect(result.commit == nil && result.updated == 0 && result.skipped == 2)
    }
}
