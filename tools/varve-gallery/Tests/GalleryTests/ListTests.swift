// What the list of 40,000 rows reads and holds at each step.

import Foundation
import GalleryKit
import Testing
import VarveObjects

@Suite("The list of 40,000 rows") struct ListTests {
    @Test("Opening reads at most one batch, each jump costs one, only the screen is realised")
    @MainActor func listKeepsItsPromise() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "list.varve").path
            let filling = try await GalleryStore.open(path, createIfMissing: true)
            let cities = try GeoNames.cities()
            let importer = Importer(
                into: filling,
                cities: cities,
                pictures: .generated,
                pictureCount: 0
            )
            let saved = try await importer.run { _ in }
            #expect(saved == Importer.Saved(countries: 252, cities: 40_000, pictures: 0))
            try await filling.close()

            let container = try await GalleryStore.open(path)
            var steps: [String: ListScenario.Step] = [:]
            try ListScenario(container).run { steps[$0.name] = $0 }
            #expect(
                steps.keys.sorted() == [
                    "bottom", "firstScreen", "middle", "open", "pageByKey", "pageByOffset",
                    "pageWithCountries", "sortByName", "top",
                ]
            )
            #expect(steps["open"]?.rowsRead == 0)
            #expect(steps["open"]?.objectsRealised == 0)
            for jump in ["firstScreen", "bottom", "middle", "top", "sortByName"] {
                let step = try #require(steps[jump])
                #expect(step.rowsRead <= ListScenario.batchSize, "\(jump)")
                #expect(step.objectsRealised == ListScenario.screenSize, "\(jump)")
                #expect(step.rowCacheBytes < 8 << 20, "\(jump)")
            }
            for page in ["pageByOffset", "pageByKey"] {
                let step = try #require(steps[page])
                #expect(step.rowsRead <= ListScenario.batchSize, "\(page)")
                #expect(step.objectsRealised <= ListScenario.batchSize, "\(page)")
            }

            let byName = cities.map(\.name).sorted {
                Array($0.utf8).lexicographicallyPrecedes($1.utf8)
            }
            #expect(steps["firstScreen"]?.shown.hasPrefix("Shanghai … ") == true)
            #expect(steps["sortByName"]?.shown.hasPrefix(byName[0]) == true)
            #expect(steps["pageByOffset"]?.shown.hasPrefix(byName[20_000]) == true)
            #expect(steps["pageByKey"]?.shown.hasPrefix(byName[20_050]) == true)
            try await container.close()
        }
    }

    @Test("The JSON of a step has the documented names, in their order") func jsonNamesAreStable() {
        let step = ListScenario.Step(
            name: "open",
            duration: .milliseconds(2),
            rowsRead: 3,
            objectsRealised: 4,
            rowCacheBytes: 5,
            shown: ""
        )
        let names = #"{"step":"open","milliseconds":2.000,"rowsRead":3,"#
        #expect(step.json.text == names + #""objectsRealised":4,"rowCacheBytes":5}"#)
    }
}
