// `gallery import` killed at 50 random moments: nothing acknowledged is lost.

import Foundation
import GalleryKit
import Testing
import Varve

/// The story of the demo that is pulled off the table: whenever the process dies, what it had
/// acknowledged is there.
@Suite("Import killed at any moment", .serialized) struct KillTests {
    private static let cities = 4_500
    private static let pictures = 44

    @Test("50 kills: the store opens, every acknowledged save is there, no half save")
    @MainActor func killedImportsLoseNothing() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededRandom(seed: seed)
        try await withTemporaryFolder { folder in
            let table = try smallTable(in: folder, rows: Self.cities)
            // One whole import says how long the moments to choose from last.
            let whole = try importing(into: "whole", table: table, folder: folder, killAfter: nil)
            #expect(
                whole.saves.last
                    == Importer.Saved(
                        countries: 252,
                        cities: Self.cities,
                        pictures: Self.pictures
                    )
            )
            try await check(whole, in: folder, name: "whole", seed: seed)

            var killed = 0
            var partly = 0
            for number in 0..<50 {
                let name = "kill-\(number)"
                let moment = Double.random(in: 0..<1, using: &random) * whole.seconds
                let run = try importing(
                    into: name,
                    table: table,
                    folder: folder,
                    killAfter: moment
                )
                killed += run.wasKilled ? 1 : 0
                partly += run.wasKilled && !run.saves.isEmpty ? 1 : 0
                try await check(run, in: folder, name: name, seed: seed)
                try FileManager.default.removeItem(at: folder.appending(path: name))
            }
            #expect(killed >= 40, "the moments are to lie inside the import; seed \(seed)")
            #expect(partly >= 10, "some kills are to come after a save; seed \(seed)")
        }
    }

    private struct KilledImport {
        var saves: [Importer.Saved]
        var wasKilled: Bool
        var seconds: Double
    }

    private func importing(
        into name: String,
        table: String,
        folder: URL,
        killAfter moment: Double?
    ) throws -> KilledImport {
        let home = folder.appending(path: name)
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
        let output = home.appending(path: "output")
        try Data().write(to: output)
        let process = Process()
        process.executableURL = try GalleryProgram.url()
        process.arguments = [
            "import", "--into", home.appending(path: "store.varve").path, "--cities", table,
            "--pictures", "\(Self.pictures)", "--acknowledge",
        ]
        process.standardOutput = try FileHandle(forWritingTo: output)
        let start = ContinuousClock.now
        try process.run()
        if let moment {
            Thread.sleep(forTimeInterval: moment)
            kill(process.processIdentifier, SIGKILL)
        }
        process.waitUntilExit()
        let lines = try String(contentsOf: output, encoding: .utf8).split(separator: "\n")
        return KilledImport(
            saves: lines.compactMap { Self.saved(in: $0) },
            wasKilled: process.terminationReason == .uncaughtSignal,
            seconds: (ContinuousClock.now - start).milliseconds / 1_000
        )
    }

    /// Reads an acknowledgement; nil for other lines.
    private static func saved(in line: Substring) -> Importer.Saved? {
        let numbers = line.split { !$0.isNumber }.compactMap { Int($0) }
        guard line.hasPrefix("saved "), numbers.count == 3 else { return nil }
        return Importer.Saved(countries: numbers[0], cities: numbers[1], pictures: numbers[2])
    }

    /// The store must hold the last acknowledged state or the one after it, whole.
    @MainActor
    private func check(
        _ run: KilledImport,
        in folder: URL,
        name: String,
        seed: UInt64
    ) async throws {
        let path = folder.appending(path: name).appending(path: "store.varve").path
        let label: Comment = "\(name), seed \(seed), acknowledged \(run.saves.count) saves"
        let container = try await GalleryStore.open(path, createIfMissing: true)
        let view = container.viewContext
        let found = Importer.Saved(
            countries: try view.count(Country.all),
            cities: try view.count(City.all),
            pictures: try view.count(Picture.all)
        )

        let states = Self.states
        let acknowledged = try run.saves.last.map { try #require(states.firstIndex(of: $0)) } ?? 0
        let reached = try #require(states.firstIndex(of: found), "half a save: \(found), \(label)")
        #expect((acknowledged...(acknowledged + 1)).contains(reached), label)

        // Not only the numbers: every row and every picture can be read, and all relationships
        // hold.
        let cities = try view.fetch(City.all.returningFaults(false))
        #expect(cities.count == found.cities, label)
        #expect(cities.allSatisfy { $0.geonameID > 0 && $0.country != nil }, label)
        for (index, picture) in try view.fetch(Picture.all.sorted { [$0.serial.ascending] })
            .enumerated()
        {
            #expect(picture.serial == index + 1, label)
            #expect(picture.city?.picture === picture, label)
            let bytes = try #require(try picture.data?.readAll(), label)
            #expect(bytes.count == GeneratedPicture(seed: UInt64(index)).byteCount, label)
        }
        #expect(view.readFailures.isEmpty, label)
        try await container.close()
    }

    /// What the store holds after each save of a whole import.
    private static let states: [Importer.Saved] = {
        var states = [Importer.Saved()]
        states.append(Importer.Saved(countries: 252))
        for start in stride(from: 0, to: cities, by: Importer.citiesPerSave) {
            let end = min(start + Importer.citiesPerSave, cities)
            states.append(Importer.Saved(countries: 252, cities: end))
        }
        for start in stride(from: 0, to: pictures, by: Importer.picturesPerSave) {
            let end = min(start + Importer.picturesPerSave, pictures)
            states.append(Importer.Saved(countries: 252, cities: cities, pictures: end))
        }
        return states
    }()
}
