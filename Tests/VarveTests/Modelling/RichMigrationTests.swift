// Composites and derived attributes in stores that are older than they are.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

enum BeforeRich: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Visit.self] }

    @Entity final class Visit: ManagedObject {
        var name: String = ""
        @Attribute(.composite) var place: Address = Address()
    }
}

enum AfterRich: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [Visit.self] }

    @Entity final class Visit: ManagedObject {
        #Index<Visit>([\.sortName])
        var name: String = ""
        @Attribute(.composite) var place: Address?
        @Attribute(.composite) var next: Address?
        @Derived var sortName: String { "\(name.lowercased()) \(place?.city ?? "-")" }
    }
}

@Suite("Rich attributes of older stores") struct RichMigrationTests {
    @Test("A composite that becomes optional keeps its values, and old rows get derived ones")
    func becomesRich() async throws {
        let store = try TemporaryStore()
        do {
            let container = try await PersistentContainer.open(
                at: store.url,
                schema: BeforeRich.self
            )
            let context = container.newContext()
            for number in 0..<100 {
                let visit = BeforeRich.Visit(in: context)
                visit.name = "Visit \(number)"
                visit.place = Address(city: "City \(number)", zip: number)
            }
            try context.save()
            try await container.close()
        }
        let container = try await PersistentContainer.open(at: store.url, schema: AfterRich.self)
        let context = container.newContext()
        typealias Visit = AfterRich.Visit
        #expect(try context.count(Visit.where { $0.place == nil }) == 0)
        #expect(try context.count(Visit.where { $0.place != nil }) == 100)
        #expect(try context.count(Visit.where { $0.next == nil }) == 100)
        let visits = try context.fetch(Visit.where { $0.sortName == "visit 7 City 7" })
        #expect(visits.map(\.place?.zip) == [7] && visits.map(\.next) == [nil])
        for visit in try context.fetch(Visit.all) {
            #expect(visit.snapshot().sortName == visit.sortName)
        }
        #expect(!context.hasChanges)
        let visit = try #require(visits.first)
        visit.place = nil
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.count(Visit.where { $0.place == nil }) == 1)
        #expect(try fresh.count(Visit.where { $0.sortName == "visit 7 -" }) == 1)
        #expect(try container.problems().isEmpty)
    }
}
#endif
