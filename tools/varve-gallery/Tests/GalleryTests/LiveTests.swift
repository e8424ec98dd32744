// The list that another process changes: what it tells, and that the ledger finds what is wrong.

import Foundation
import GalleryKit
import Testing
import VarveObjects

@Suite("The list that another process changes") struct LiveTests {
    private func makeStore(_ path: String, rows: Int) async throws -> PersistentContainer {
        let container = try await GalleryStore.open(path, createIfMissing: true)
        let importer = Importer(
            into: container,
            cities: Array(try GeoNames.cities().prefix(500)),
            pictures: .generated,
            pictureCount: 0,
            rows: rows
        )
        let saved = try await importer.run { _ in }
        #expect(saved == Importer.Saved(countries: 252, cities: max(500, rows), pictures: 0))
        return container
    }

    @Test(
        "Nothing is missed, nothing told twice, with sections and without",
        arguments: [[], ["--sections"], ["--read-only"]]
    )
    @MainActor func programFollows(options: [String]) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "live.varve").path
            try await makeStore(path, rows: 2_000).close()
            let run = try GalleryProgram.run(
                ["live", path, "--seconds", "1", "--rate", "200", "--json"] + options
            )
            #expect(run.status == 0, "\(run.errors)")
            let objects = try run.objects()
            let last = try #require(objects.last)
            let commits = try #require(last["commits"] as? Int)
            #expect(commits > 1 && objects.count == commits + 1)
            #expect(last["missed"] as? Int == 0)
            #expect(last["doubled"] as? Int == 0)
            #expect(last["equalsFetch"] as? Bool == true)
            #expect(last["residentBytesAtStart"] as? Int ?? 0 > 0)
            #expect(last["residentBytesPeak"] as? Int ?? 0 > 0)
            let changed = objects.dropLast().map { $0["rowsChanged"] as? Int ?? 0 }
            let events = objects.dropLast().map { $0["events"] as? Int ?? 0 }
            #expect(changed.allSatisfy { (1...4).contains($0) })
            #expect(events.reduce(0, +) > 0 && events.reduce(0, +) <= changed.reduce(0, +))
            let names = try #require(run.lines.first).split(separator: ",").map {
                $0.split(separator: "\"").first { $0 != "{" }.map(String.init)
            }
            #expect(names == ["commit", "rowsChanged", "events", "milliseconds", "rowsExamined"])
        }
    }

    @Test("The ledger finds what a list left out and what it told twice")
    @MainActor func ledgerFindsMistakes() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "ledger.varve").path
            let container = try await makeStore(path, rows: 0)
            let context = container.newContext()
            let list = try context.live(City.all.sorted { [$0.population.descending] })
            var told: LiveChange<City>?
            let observation = list.onChange { told = $0 }
            defer { observation.cancel() }
            var notices = container.commits.makeAsyncIterator()
            try await container.performBackgroundTask { context in
                let cities = try context.fetch(City.all.limit(2))
                cities[0].name = "Other"
                context.delete(cities[1])
                City(in: context).geonameID = -1
                try context.save()
            }
            let notice = try #require(await notices.next())
            context.advance()
            let change = try #require(told)
            #expect(change.count == 3)

            func ledger(_ changes: [LiveChange<City>?]) -> LiveLedger {
                var ledger = LiveLedger()
                ledger.add(notice)
                for change in changes { ledger.close(at: notice.commit, change) }
                return ledger
            }
            let right = ledger([change])
            #expect(right.commits == 1 && right.missed == 0 && right.doubled == 0)
            let silent = ledger([nil])
            #expect(silent.missed == 3 && silent.doubled == 0)
            let twice = ledger([change, change])
            #expect(twice.missed == 0 && twice.doubled == 3)
            try await container.close()
        }
    }

    @Test("Made up cities are the same ones each time, and an import goes on where it stopped")
    func syntheticCities() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "many.varve").path
            try await makeStore(path, rows: 1_000).close()
            let container = try await makeStore(path, rows: 1_700)
            let codes = try GeoNames.countries().map(\.code)
            try await container.performBackgroundTask { context in
                let made = try context.fetch(
                    City.where { $0.geonameID >= SyntheticCity.firstID }
                        .sorted { [$0.geonameID.ascending] }
                )
                #expect(made.count == 1_200)
                for (number, city) in made.enumerated() {
                    let record = SyntheticCity.record(number, countries: codes)
                    #expect(city.geonameID == record.geonameID && city.name == record.name)
                    #expect(city.population == record.population)
                    #expect(city.country?.code == record.countryCode)
                }
            }
            try await container.close()
        }
    }
}
