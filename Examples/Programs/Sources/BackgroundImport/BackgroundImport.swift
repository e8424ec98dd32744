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
    /// - Parameter download: the cities, as they arrive piece by piece; nil: their file.
    @MainActor static func start(
        _ container: PersistentContainer,
        _ input: Input,
        _ download: AsyncStream<Data>? = nil,
        tell: @escaping @MainActor (BatchProgress) -> Void
    ) -> Task<BatchResult, any Error> {
        Task {
            let (bar, source) = AsyncStream.makeStream(of: BatchProgress.self)
            async let result = run(container, input, download, source)
            for await progress in bar { tell(progress) }
            return try await result
        }
    }

    /// The import itself, off the main actor. It is cancelled with the task that waits for it.
    nonisolated static func run(
        _ container: PersistentContainer,
        _ input: Input,
        _ download: AsyncStream<Data>?,
        _ bar: AsyncStream<BatchProgress>.Continuation
    ) async throws -> BatchResult {
        defer { bar.finish() }
        return try await container.withBackgroundContext(author: "import") { context in
            // Countries first: a city names its country by the code.
            try await context.batchInsert(Country.self, jsonLines: input.countries)
            let tell: (BatchProgress) -> Void = { bar.yield($0) }
            if let download {
                return try await context.batchInsert(City.self, jsonLines: download, progress: tell)
            }
            return try await context.batchInsert(City.self, jsonLines: input.cities, progress: tell)
        }
    }

    @MainActor static func show(_ container: PersistentContainer, _ input: Input) async throws {
        let view = container.viewContext
        let count = try view.liveCount(City.all)

        // 1. A download that gets stuck. Cancelled: the commits before stand.
        let (download, server) = AsyncStream.makeStream(of: Data.self)
        let file = try Data(contentsOf: input.cities)
        server.yield(file.prefix(file.count * 3 / 10))
        var work: Task<BatchResult, any Error>?
        work = start(container, input, download) {
            if $0.completedRows == 5_000 { work?.cancel() }
        }
        do {
            _ = try await work?.value
            check("a cancelled import throws CancellationError", false)
        } catch is CancellationError {
            check("a cancelled import throws CancellationError", true)
        }
        view.advance()
        check("what was committed stands, and no more", count.value == 5_000)

        // 2. Begun again: what is there is passed over. The main actor has time all the while.
        var steps: [BatchProgress] = []
        let result = try await start(container, input) { steps.append($0) }.value
        view.advance()
        check("only the rest", result.inserted == 15_000 && result.skipped == 5_000)
        check("the count on the screen followed", count.value == input.cityCount)
        let told = steps.map(\.completedRows)
        check("each commit was told, in order", told == [5_000, 10_000, 15_000, 20_000])
        check("up to the last byte", steps.last?.completedBytes == file.count)

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
