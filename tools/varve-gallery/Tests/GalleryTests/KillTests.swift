// `gallery import` killed at 50 random moments: nothing acknowledged is lost.

import Foundation
import GalleryKit
import Testing
import VarveObjects

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
            // One whole import says how many saves there are, and how long one takes.
            let whole = try importing(into: "whole", table: table, folder: folder, killAt: nil)
            #expect(whole.saves == Array(Self.states.dropFirst()))
            try await check(whole, in: folder, name: "whole", seed: seed)

            var killed = 0
            for number in 0..<50 {
                let name = "kill-\(number)"
                let moment = Moment(
                    saves: Int.random(in: 0...whole.saves.count, using: &random),
                    seconds: Double.random(in: 0..<2, using: &random) * whole.secondsPerSave
                )
                let run = try importing(into: name, table: table, folder: folder, killAt: moment)
                killed += run.wasKilled ? 1 : 0
                try await check(run, in: folder, name: name, seed: seed)
                try FileManager.default.removeItem(at: folder.appending(path: name))
            }
            #expect(killed >= 30, "the moments are to lie inside the import; seed \(seed)")
        }
    }

    /// When to kill: some time after a number of saves was acknowledged. Not a time from the start,
    /// since other work on the machine would move that away from the import.
    private struct Moment {
        var saves: Int
        var seconds: Double
    }

    private struct KilledImport {
        var saves: [Importer.Saved]
        var wasKilled: Bool
        var secondsPerSave: Double
    }

    private func importing(
        into name: String,
        table: String,
        folder: URL,
        killAt moment: Moment?
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
            while process.isRunning, try Self.saves(in: output).count < moment.saves {
                Thread.sleep(forTimeInterval: 0.001)
            }
            Thread.sleep(forTimeInterval: moment.seconds)
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }
        process.waitUntilExit()
        let saves = try Self.saves(in: output)
        let seconds = (ContinuousClock.now - start).milliseconds / 1_000
        return KilledImport(
            saves: saves,
            wasKilled: process.terminationReason == .uncaughtSignal,
            secondsPerSave: seconds / Double(max(1, saves.count))
        )
    }

    private static func saves(in output: URL) throws -> [Importer.Saved] {
        // The last line may be under way still.
        try String(contentsOf: output, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .compactMap { saved(in: $0) }
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
        let last = run.saves.last ?? Importer.Saved()
        let acknowledged = try #require(states.firstIndex(of: last), label)
        let reached = try #require(
            states.firstIndex(of: found),
            "half a save: \(found), \(label)"
        )
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
