// An import in the background: a file of JSON Lines becomes rows while the main actor shows how far
// it is, can be cancelled and begun again, and says which line is wrong.

import Check
import Foundation
import Varve

@Entity final class Country: ManagedObject {
    #Unique<Country>([\.code], onConflict: .upsert)
    var code: String = ""
    var name: String = ""
    @Relationship(inverse: \City.country) var cities: ToMany<City>
}

@Entity final class City: ManagedObject {
    #Unique<City>([\.geoID], onConflict: .upsert)
    #Index<City>([\.population])
    var geoID: Int = 0
    var name: String = ""
    var population: Int = 0
    @Relationship var country: Country?
}

enum AtlasSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Country.self, City.self] }
}

/// Two files of JSON Lines: a field is a property, and a city names its country by the code.
struct Input {
    let countries, cities: URL
    let cityCount = 20_000

    init(in folder: URL) throws {
        countries = folder.appending(path: "countries.jsonl")
        cities = folder.appending(path: "cities.jsonl")
        let nations = (0..<30).map { #"{"code": "C\#($0)", "name": "Country \#($0)"}"# }
        let places = (0..<cityCount).map {
            #"{"geoID": \#($0), "name": "City \#($0)", "country": "C\#($0 % 30)", "#
                + #""population": \#($0 * 7)}"#
        }
        try Self.write(nations, to: countries)
        try Self.write(places, to: cities)
    }

    /// Adds a city whose population is no number.
    func addMistake() throws {
        let text = try String(contentsOf: cities, encoding: .utf8)
        try Self.write(
            [text, #"{"geoID": -1, "name": "Nowhere", "population": "many"}"#],
            to: cities
        )
    }

    private static func write(_ lines: [String], to url: URL) throws {
        try lines.joined(separator: "\n").write(to: url, atomically: true, encoding: .utf8)
    }
}

@main struct BackgroundImport {
    @MainActor static func main() async throws {
        try await withFolder { folder in
            let input = try Input(in: folder)
            let container = try await PersistentContainer.open(
                at: folder.appending(path: "atlas.varve"),
                schema: AtlasSchema.self
            )
            try await show(container, input)
            try await container.close()
        }
    }

    /// Begins the import. `tell` hears on the main actor how far it is.
    @MainActor static func start(
        _ container: PersistentContainer,
        _ input: Input,
        tell: @escaping @MainActor (BatchProgress) -> Void
    ) -> Task<BatchResult, any Error> {
        let (bar, source) = AsyncStream.makeStream(of: BatchProgress.self)
        Task { for await progress in bar { tell(progress) } }
        return Task {
            defer { source.finish() }
            return try await container.performBackgroundTask(author: "import") { context in
                // Countries first: a city names its country by the code.
                try await context.batchInsert(Country.self, jsonLines: input.countries)
                var options = JSONLinesOptions()
                options.rowsPerCommit = 1_000
                return try await context.batchInsert(
                    City.self,
                    jsonLines: input.cities,
                    options: options,
                    progress: { source.yield($0) }
                )
            }
        }
    }

    @MainActor static func show(_ container: PersistentContainer, _ input: Input) async throws {
        let view = container.viewContext
        let count = try view.liveCount(City.all)

        // 1. Cancelled after a third: the commits before stand.
        var work: Task<BatchResult, any Error>?
        work = start(container, input) {
            if $0.completedRows * 3 > input.cityCount { work?.cancel() }
        }
        do {
            _ = try await work?.value
            check("a cancelled import throws CancellationError", false)
        } catch is CancellationError {
            check("a cancelled import throws CancellationError", true)
        }
        view.advance()
        let kept = count.value
        check("what was committed stands", kept * 3 > input.cityCount && kept < input.cityCount)

        // 2. Begun again: what is there is passed over. The main actor has time all the while.
        var steps: [BatchProgress] = []
        let started = ContinuousClock.now
        let result = try await start(container, input) { steps.append($0) }.value
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        view.advance()
        check("the rest was inserted", result.inserted == input.cityCount - kept)
        check("what was there was passed over", result.skipped == kept)
        check("the count on the screen followed", count.value == input.cityCount)
        let told = steps.map(\.completedRows)
        check("progress was told in order", told == told.sorted())
        check("up to the last byte", steps.last?.completedBytes == steps.last?.totalBytes)
        print("\(input.cityCount) cities in \(Int(seconds * 1_000)) ms, \(steps.count) commits")

        // 3. A mistake in the file: the error names the line and the field.
        try input.addMistake()
        do {
            _ = try await start(container, input) { _ in }.value
            check("a line that is wrong is an error", false)
        } catch let error as StoreError {
            check("line and field", error.place.attribute == "population")
            check(error.message, error.message.hasPrefix("line \(input.cityCount + 1):"))
        }
    }
}
