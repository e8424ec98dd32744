// Reverts of objects with derived attributes: what is derived follows what they leave.

import Testing
import VarveBase

@testable import VarveObjects

private final class Passenger: ManagedObject {
    static let entityName = "Passenger"
    struct Columns: Sendable {
        let first = Column<Passenger, String>("first", default: "")
        let last = Column<Passenger, String>("last", default: "")
        let label = Column<Passenger, String>("label", derived: Passenger.label)
    }
    static let columns = Columns()
    @Sendable private static func label(_ row: DerivedSource<Passenger>) -> String {
        "\(row[columns.first]) \(row[columns.last])"
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var first: String {
        get { storedValue(Self.columns.first, \.first) }
        set { setStoredValue(newValue, Self.columns.first, \.first) }
    }
    var last: String {
        get { storedValue(Self.columns.last, \.last) }
        set { setStoredValue(newValue, Self.columns.last, \.last) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Passenger: Sendable {}

private enum Passengers: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Passenger.self] }
}

@Suite(.verified) struct DerivedRevertTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext
    private let person: Passenger
    private let bad: CommitNumber

    /// A commit that is to be reverted, and one behind it that changed something else.
    init() throws {
        container = try PersistentContainer.inMemory(
            schema: Passengers.self,
            options: historyOptions()
        )
        context = container.newContext()
        person = Passenger(in: context)
        (person.first, person.last) = ("Ada", "King")
        try context.save()
        person.first = "bad"
        bad = try #require(try context.save().commit)
        person.last = "Byron"
        try context.save()
    }

    private func check(_ label: String) throws {
        #expect(person.snapshot().label == label)
        #expect(try context.count(Passenger.where { $0.label == label }) == 1)
        try context.save()
        #expect(person.snapshot().label == label)
        #expect(try container.newContext().count(Passenger.where { $0.label == label }) == 1)
    }

    /// It threw `revertConflict` because of the label, which both commits had changed.
    @Test func `What is derived of the rest meets nobody`() throws {
        #expect(try context.revert(commit: bad).isEmpty)
        try check("Ada Byron")
    }

    @Test func `What is derived is not told as skipped`() throws {
        person.first = "better"
        try context.save()
        let left = try context.revert(commit: bad, policy: .skip)
        #expect(left.map(\.property) == ["first"])
        #expect(!context.hasChanges)
        try check("better Byron")
    }

    /// The label showed what it had before the commit, until the save.
    @Test func `What overwrites the rest derives anew`() throws {
        #expect(try context.revert(commit: bad, policy: .overwrite).isEmpty)
        try check("Ada Byron")
    }

    @Test func `An object of an earlier commit has what was derived then`() throws {
        try context.revert(person, to: .commit(bad))
        try check("bad King")
        context.delete(person)
        try context.save()
        try context.revert(person.id, to: .commit(bad))
        try check("bad King")
    }
}
