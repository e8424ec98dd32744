// The first example of README.md, letter by letter. A test compares the two and runs it.
#if Macros
import Foundation
import Varve

@Entity final class City: ManagedObject {
    #Index<City>([\.population])
    var name: String = ""
    var population: Int = 0
    @Relationship(inverse: \Country.cities) var country: Country?
}

@Entity final class Country: ManagedObject {
    #Unique<Country>([\.code])
    var code: String = ""
    @Relationship var cities: ToMany<City>
}

enum Atlas: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [City.self, Country.self] }
}

@MainActor func firstStore(at url: URL) async throws -> [String] {
    let container = try await PersistentContainer.open(at: url, schema: Atlas.self)
    let context = container.viewContext

    let iceland = Country(in: context)
    iceland.code = "IS"
    for (name, population) in [("Reykjavík", 118_918), ("Akureyri", 18_191), ("Vík", 318)] {
        let city = City(in: context)
        city.name = name
        city.population = population
        city.country = iceland
    }
    try context.save()

    let large = City.where { $0.population > 1_000 && $0.country.code == "IS" }
        .sorted { [$0.population.descending] }
    let names = try context.fetch(large).map(\.name)
    try await container.close()
    return names
}
#endif
