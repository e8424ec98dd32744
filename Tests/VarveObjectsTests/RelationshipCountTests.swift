// Minimum and maximum counts of relationships: at saves, with what others saved, and in batches.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

private final class Team: ManagedObject {
    static let entityName = "Team"
    struct Columns: Sendable {
        let name = Column<Team, String>("name", default: "", rules: .of(String.self, .length(...5)))
        let players = ToManyColumn<Team, Player>("players", inverse: "team", count: 1...3)
        let badges = ToManyColumn<Team, Badge>(
            "badges",
            inverse: "teams",
            ordered: true,
            count: ...2
        )
        let captain = ToOneColumn<Team, Player>("captain", inverse: "leads", count: 1...1)
        let colors = ToManyColumn<Team, Badge>("colors", count: ..<2)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var players: ToMany<Player> { storedValue(Self.columns.players, \.players) }
    var badges: ToMany<Badge> { storedValue(Self.columns.badges, \.badges) }
    var captain: Player? {
        get { storedValue(Self.columns.captain, \.captain) }
        set { setStoredValue(newValue, Self.columns.captain, \.captain) }
    }
    var colors: ToMany<Badge> { storedValue(Self.columns.colors, \.colors) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Team: Sendable {}

private final class Player: ManagedObject {
    static let entityName = "Player"
    struct Columns: Sendable {
        let description = Column<Player, String>("description", default: "a player")
        let team = ToOneColumn<Player, Team>("team")
        let leads = ToOneColumn<Player, Team>("leads")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var description: String {
        get { storedValue(Self.columns.description, \.description) }
        set { setStoredValue(newValue, Self.columns.description, \.description) }
    }
    var team: Team? {
        get { storedValue(Self.columns.team, \.team) }
        set { setStoredValue(newValue, Self.columns.team, \.team) }
    }
    var leads: Team? {
        get { storedValue(Self.columns.leads, \.leads) }
        set { setStoredValue(newValue, Self.columns.leads, \.leads) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Player: Sendable {}

private final class Badge: ManagedObject {
    static let entityName = "Badge"
    struct Columns: Sendable { let teams = ToManyColumn<Badge, Team>("teams") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var teams: ToMany<Team> { storedValue(Self.columns.teams, \.teams) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Badge: Sendable {}

private enum League: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Team.self, Player.self, Badge.self] }
}

@Suite(.verified) struct RelationshipCountTests {
    private func league() throws -> PersistentContainer {
        try PersistentContainer.inMemory(schema: League.self, options: ContainerOptions())
    }

    /// A team that may be saved.
    private func team(_ context: ManagedObjectContext, players: Int = 2) -> Team {
        let team = Team(in: context)
        for _ in 0..<players { Player(in: context).team = team }
        team.captain = Player(in: context)
        return team
    }

    /// What a save complains of: property and message.
    private func complaints(_ body: () throws -> Void) -> [String] {
        do {
            try body()
            return []
        } catch let error as StoreError {
            if error.code != .invalid { return ["\(error.code)"] }
            return error.details.map { "\($0.place.attribute ?? "-"): \($0.message)" }.sorted()
        } catch {
            return ["\(error)"]
        }
    }

    @Test func aSaveTellsAllCountsWithAllOtherFailures() throws {
        let context = try league().newContext()
        let team = team(context, players: 4)
        team.captain = nil
        team.name = "too long"
        for _ in 0..<3 { team.badges.append(Badge(in: context)) }
        for _ in 0..<2 { team.colors.append(Badge(in: context)) }
        #expect(
            complaints { try context.save() } == [
                "badges: badges must lead to at most 2 objects, not to 3",
                "captain: captain must lead to 1 object, not to 0",
                "colors: colors must lead to less than 2 objects, not to 2",
                "name: name must have at most 5 characters",
                "players: players must lead to 1 to 3 objects, not to 4",
            ]
        )
        #expect(context.hasChanges, "nothing was saved")
        team.captain = Player(in: context)
        team.name = "ok"
        team.badges.remove(team.badges[0])
        team.colors.remove(team.colors[0])
        team.players[0].team = nil
        #expect(complaints { try context.save() } == [])
    }

    @Test func everyWayToChangeACountIsJudged() throws {
        let container = try league()
        let context = container.newContext()
        let team = team(context)
        let other = self.team(context, players: 3)
        try context.save()
        let none = "players: players must lead to 1 to 3 objects, not to 0"
        // From the other side.
        for player in Array(team.players) { player.team = nil }
        #expect(complaints { try context.save() } == [none])
        context.rollback()
        // By deleting members.
        for player in Array(team.players) { context.delete(player) }
        #expect(complaints { try context.save() } == [none])
        context.rollback()
        // By moving them: too few here, too many there.
        for player in Array(team.players) { player.team = other }
        #expect(
            complaints { try context.save() } == [
                none, "players: players must lead to 1 to 3 objects, not to 5",
            ]
        )
        context.rollback()
        // A captain is deleted, or becomes another team's.
        context.delete(try #require(team.captain))
        #expect(
            complaints { try context.save() } == [
                "captain: captain must lead to 1 object, not to 0"
            ]
        )
        context.rollback()
        other.captain = team.captain
        #expect(
            complaints { try context.save() } == [
                "captain: captain must lead to 1 object, not to 0"
            ]
        )
        context.rollback()
        // What is deleted with its members has no count.
        for player in Array(team.players) { context.delete(player) }
        context.delete(team)
        #expect(complaints { try context.save() } == [])
        // Badges, many to many: from the far side and by deletion the count falls, which is fine.
        for _ in 0..<2 { Badge(in: context).teams.append(other) }
        #expect(complaints { try context.save() } == [])
        Badge(in: context).teams.append(other)
        #expect(
            complaints { try context.save() }
                == ["badges: badges must lead to at most 2 objects, not to 3"]
        )
        context.delete(other.badges[0])
        #expect(complaints { try context.save() } == [])
    }

    @Test func twoSavesThatAreRightAloneAndWrongTogether() throws {
        let container = try league()
        let first = container.newContext()
        let team = team(first)
        try first.save()
        let second = container.newContext()
        let same = try #require(try second.existingObject(with: team.id))
        #expect(same.players.count == 2)
        // Each takes away one of two.
        team.players[0].team = nil
        same.players[1].team = nil
        try first.save()
        let none = "players: players must lead to 1 to 3 objects, not to 0"
        #expect(complaints { try second.save(mergePolicy: .objectWinsByProperty) } == [none])
        second.rollback()
        second.advance()
        // One deletes, the other takes away.
        let added = Player(in: second)
        added.team = same
        try second.save()
        first.advance()
        #expect(team.players.count == 2)
        let left = team.players.filter { $0.id != added.id }
        first.delete(left[0])
        added.team = nil
        try first.save()
        #expect(complaints { try second.save(mergePolicy: .objectWinsByProperty) } == [none])
        second.rollback()
        // Two add one each: four.
        first.advance()
        second.advance()
        for _ in 0..<2 { Player(in: first).team = team }
        try first.save()
        Player(in: second).team = same
        #expect(
            complaints { try second.save(mergePolicy: .objectWinsByProperty) }
                == ["players: players must lead to 1 to 3 objects, not to 4"]
        )
    }

    @Test func batchesAreJudgedByCommit() throws {
        let container = try league()
        let context = container.newContext()
        let team = team(context)
        let (id, players) = (team.id, team.players.ids)
        let captain = try #require(team.captain?.id)
        try context.save()
        #expect(
            complaints { try context.batchDelete(players) }
                == ["players: players must lead to 1 to 3 objects, not to 0"]
        )
        #expect(complaints { try context.batchDelete([players[0]]) } == [])
        #expect(
            complaints {
                try context.batchUpdate(Player.where { _ in .isIn([players[1]]) }) { row in
                    row.team = nil
                }
            } == ["players: players must lead to 1 to 3 objects, not to 0"]
        )
        #expect(
            complaints { try context.batchDelete([captain]) }
                == ["captain: captain must lead to 1 object, not to 0"]
        )
        #expect(
            complaints {
                try context.batchInsert(Player.self, 0..<3) { row, _ in row.team = id }
            } == ["players: players must lead to 1 to 3 objects, not to 4"]
        )
        #expect(
            complaints {
                try context.batchInsert(Player.self, 0..<2) { row, _ in row.team = id }
            } == []
        )
        #expect(
            complaints { try context.batchInsert(Team.self, 0..<1) { row, _ in row.name = "x" } }
                == [
                    "captain: captain must lead to 1 object, not to 0",
                    "players: players must lead to 1 to 3 objects, not to 0",
                ]
        )
        #expect(
            complaints {
                try context.batchInsert(Team.self, 0..<1) { row, _ in row.captain = captain }
            } == [
                "captain: captain must lead to 1 object, not to 0",
                "players: players must lead to 1 to 3 objects, not to 0",
            ],
            "the captain's first team loses it, and the new one has no players"
        )
        #expect(try context.count(Team.all) == 1 && context.count(Player.all) == 4)
    }

    @Test func aCountIsNoPartOfTheStoredSchema() throws {
        let description = try EntityDeclaration.describe(League.self)
        let team = try #require(description.entities.first { $0.name == "Team" })
        #expect(!"\(team)".contains("1...3"))
    }

    @Test func aBranchLeavesCountsToItsParent() throws {
        let container = try league()
        let context = container.newContext()
        let team = team(context)
        try context.save()
        let branch = try context.branch()
        let same = try #require(try branch.existingObject(with: team.id))
        for player in Array(same.players) { player.team = nil }
        try branch.mergeIntoParent()
        #expect(complaints { try context.save() }.count == 1)
    }

    @Test func theCountOfALongListReadsNoMembers() throws {
        let container = try league()
        let context = container.newContext()
        let badge = Badge(in: context)
        let team = team(context)
        try context.save()
        let before = container.statistics
        team.badges.append(badge)
        try context.save()
        #expect(container.statistics.storeReads - before.storeReads <= 2)
    }

    /// `description` is a name that attributes have.
    @Test func anAttributeCalledDescriptionIsAnAttribute() throws {
        let container = try league()
        let context = container.newContext()
        let player = Player(in: context)
        player.description = "tall"
        #expect("\(player)" == "tall")
        #expect(player.debugDescription.contains("(inserted): description: \"tall\""))
        try context.save()
        #expect(try context.fetch(Player.where { $0.description == "tall" }).count == 1)
    }
}
