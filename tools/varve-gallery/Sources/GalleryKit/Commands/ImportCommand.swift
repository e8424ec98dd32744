// `gallery import`.

import ArgumentParser
import Foundation
import VarveObjects

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Puts cities, their countries and pictures into a store.",
        discussion: """
            The cities are the 40,000 most populous ones of GeoNames' set (CC BY 4.0), which come \
            with the program. Every save is durable before the next begins; what the store has \
            already stays, so that an import that was cut off can be run again.
            """
    )

    @Option(help: "The store's file; made when it is missing.")
    var into: String

    @Option(help: "A folder of picture files. Without it, PNGs of 1 to 3 MB are generated.")
    var photos: String?

    @Option(help: "How many pictures, each attached to one city.")
    var pictures = 400

    @Option(help: "A table of cities to take instead, as GeoNames' set has them.")
    var cities: String?

    @Option(help: "Make cities up until there are so many, at most 10,000,000.")
    var rows = 0

    @Flag(help: "Print a line after each durable save.")
    var acknowledge = false

    @Flag(help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        guard (0...10_000_000).contains(rows) else {
            throw ValidationError("--rows can be 0 to 10,000,000")
        }
    }

    func run() async throws {
        let result = try await perform()
        if json {
            StandardOutput.line(result.json.text)
        } else {
            StandardOutput.line(result.text)
        }
    }

    func perform() async throws -> ImportReport {
        let start = ContinuousClock.now
        let records = try GeoNames.cities(from: cities.map { URL(filePath: $0) })
        let source = try PictureSource(folder: photos)
        guard (0...records.count).contains(pictures) else {
            throw GalleryError(
                "there are \(records.count.grouped) cities, each takes one picture: "
                    + "--pictures can be 0 to \(records.count)"
            )
        }
        let container = try await GalleryStore.open(into, createIfMissing: true)
        let importer = Importer(
            into: container,
            cities: records,
            pictures: source,
            pictureCount: pictures,
            rows: rows
        )
        let saved = try await importer.run { saved in
            if acknowledge { StandardOutput.line(saved.line) }
        }
        try await container.close()
        return ImportReport(saved: saved, duration: ContinuousClock.now - start)
    }
}

/// What the store holds after an import.
struct ImportReport {
    var saved: Importer.Saved
    var duration: Duration

    var json: JSONLine {
        JSONLine(fields: [
            ("countries", .integer(saved.countries)), ("cities", .integer(saved.cities)),
            ("pictures", .integer(saved.pictures)),
            ("milliseconds", .number(duration.milliseconds)),
        ])
    }

    var text: String {
        let seconds = (duration.milliseconds / 1_000).fixed(1)
        return "The store holds \(saved.cities.grouped) cities in \(saved.countries.grouped) "
            + "countries and \(saved.pictures.grouped) pictures (\(seconds) s)."
    }
}
