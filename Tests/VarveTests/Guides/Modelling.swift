// The examples of the article Modelling.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: modelling") struct ModellingGuide {
    // Shown in Modelling: entity
    enum Urgency: Int, StoredEnum { case low, normal, high }

    @Entity final class Reminder: ManagedObject {
        #Index<Reminder>([\.isDone, \.due])
        #Unique<Reminder>([\.serial])
        var title: String = ""
        var due: Date?
        var urgency: Urgency = .normal
        var isDone: Bool = false
        var serial: UUID = UUID()
        @Attribute(.required) var list: String
        @Transient var isExpanded = false

        var isLate: Bool { !isDone && (due ?? .distantFuture) < .now }
    }
    // End.

    // Shown in Modelling: validate
    @Entity final class Person: ManagedObject {
        var name: String = ""
        var changed: Date = .distantPast

        func validate(_ report: inout ValidationReport) {
            if name.isEmpty { report.fail("name", "must not be empty") }
        }

        func willSave() {
            if !isDeleted { changed = .now }
        }
    }
    // End.

    // Shown in Modelling: rich
    @Composite struct Address: Hashable {
        var street: String = ""
        var city: String = ""
    }

    struct Theme: StoredCodable, Hashable {
        var name = "light"
        static let zeroValue = Theme()
    }

    enum DurationCodec: ValueCodec {
        static let zeroValue = Duration.zero
        static func encode(_ value: Duration) -> Double { value / .seconds(1) }
        static func decode(_ stored: Double) -> Duration? { .seconds(stored) }
    }

    @Entity final class Place: ManagedObject {
        #Index<Place>([\.address.city, \.sortName])
        @Attribute(.length(1...80)) var name: String = "Unnamed"
        @Attribute(.range(0...5)) var stars: Int = 0
        @Attribute(.composite) var address: Address = Address()
        @Attribute(.coded(by: DurationCodec.self)) var walk: Duration = .zero
        var theme: Theme = Theme()
        var nicknames: [String] = []
        @Derived var sortName: String { name.lowercased() }
    }
    // End.

    enum ModelSchema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Reminder.self, Person.self, Place.self] }
    }

    @Test("Values, defaults, required values and checks do what the article says")
    func values() throws {
        let context = try PersistentContainer.inMemory(schema: ModelSchema.self).newContext()
        let reminder = Reminder(in: context)
        #expect(code { try context.save() } == .missingValue)
        reminder.list = "Home"
        reminder.due = .distantPast
        let person = Person(in: context)
        #expect(code { try context.save() } == .invalid)
        person.name = "Ada"
        let place = Place(in: context)
        place.nicknames = ["home"]
        place.address.city = "Oslo"
        place.stars = 6
        #expect(code { try context.save() } == .invalid)
        place.stars = 5
        try context.save()
        // Shown in Modelling: ask
        let near = try context.fetch(
            Place.where { $0.address.city == "Oslo" && $0.walk < Coded(.seconds(600)) }
                .sorted { [$0.sortName.ascending] }
        )
        // End.
        #expect(near == [place] && place.sortName == "unnamed")
        #expect(reminder.isLate && person.changed != .distantPast && place.nicknames == ["home"])

        let note = reminder
        // Shown in Modelling: identity
        let data = try JSONEncoder().encode(note.id)
        let id = try JSONDecoder().decode(Reminder.ID.self, from: data)
        let same = try context.existingObject(with: id)
        // End.
        #expect(same === reminder)
    }
}
#endif
