// What scrolling holds in memory, and what wrong calls say.

import Foundation
import GalleryKit
import Testing

@Suite("Scrolling", .serialized) struct ScrollTests {
    @Test("Rounds 3 and 4 hold no more than the window, whatever the number of pictures")
    func memoryFollowsTheWindow() throws {
        try withTemporaryFolder { folder in
            let store = folder.appending(path: "scroll.varve").path
            let cities = try smallTable(in: folder, rows: 200)
            let imported = try GalleryProgram.run([
                "import", "--into", store, "--pictures", "60", "--cities", cities, "--json",
            ])
            #expect(imported.status == 0, "\(imported.errors)")
            #expect(try imported.objects().first?["pictures"] as? Int == 60)

            let chart = folder.appending(path: "chart.svg").path
            let scrolled = try GalleryProgram.run([
                "scroll", store, "--pictures", "20", "--pictures", "60", "--window", "5", "--json",
                "--chart", chart,
            ])
            #expect(scrolled.status == 0, "\(scrolled.errors)")
            let results = try scrolled.objects()
            try #require(results.count == 8)
            #expect(try String(contentsOfFile: chart, encoding: .utf8).hasPrefix("<svg "))

            for result in results {
                let round = try #require(result["round"] as? Int)
                let pictures = try #require(result["pictures"] as? Int)
                let window = try #require(result["windowBytesMax"] as? Int)
                let start = try #require(result["residentBytesAtStart"] as? Int)
                let peak = try #require(result["residentBytesPeak"] as? Int)
                let end = try #require(result["residentBytesEnd"] as? Int)
                let read = try #require(result["blobBytesRead"] as? Int)
                #expect((5 * 1_048_576...5 * 3_000_000).contains(window))
                #expect(peak >= end && end > 0 && start > 0)
                #expect(read >= pictures * 1_048_576)
                if round == 1 {
                    #expect(peak - start >= read, "round 1 is to hold every picture")
                } else {
                    #expect(peak - start <= window + 24_000_000, "round \(round), \(pictures)")
                }
            }
        }
    }

    @Test("The JSON of a round has the documented names, in their order") func jsonNamesAreStable()
    {
        var result = ScrollRound.Result(round: 3, pictures: 100)
        result.windowBytesMax = 1
        result.residentBytesAtStart = 2
        result.residentBytesPeak = 3
        result.residentBytesEnd = 4
        result.blobBytesRead = 5
        result.rowCacheBytes = 6
        let names = #"{"round":3,"pictures":100,"windowBytesMax":1,"residentBytesAtStart":2,"#
        let rest =
            #""residentBytesPeak":3,"residentBytesEnd":4,"blobBytesRead":5,"rowCacheBytes":6}"#
        #expect(result.json.text == names + rest)
    }

    @Test("More pictures than the store holds, and a store that is not there, are errors")
    func wrongCallsAreErrors() throws {
        try withTemporaryFolder { folder in
            let store = folder.appending(path: "small.varve").path
            let cities = try smallTable(in: folder, rows: 20)
            #expect(
                try GalleryProgram.run([
                    "import", "--into", store, "--pictures", "1", "--cities", cities,
                ]).status == 0
            )
            let chart = folder.appending(path: "chart.svg").path
            let tooMany = try GalleryProgram.run([
                "scroll", store, "--pictures", "2", "--chart", chart,
            ])
            #expect(tooMany.status != 0)
            #expect(tooMany.errors.contains("the store holds 1 pictures"))
            let missing = try GalleryProgram.run(["list", folder.path + "/other"])
            #expect(missing.status != 0)
            #expect(missing.errors.contains("there is no store at \(folder.path)/other.varve"))
            let impossible = try GalleryProgram.run([
                "import", "--into", folder.path + "/other", "--pictures", "21", "--cities", cities,
            ])
            #expect(impossible.status != 0)
            #expect(impossible.errors.contains("--pictures can be 0 to 20"))
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/other.varve"))
        }
    }
}

/// A table with the first rows of the bundled one.
func smallTable(in folder: URL, rows: Int) throws -> String {
    let file = folder.appending(path: "cities-\(rows).tsv")
    var text = "id\tname\tlatitude\tlongitude\tcountry\tpopulation\ttimezone\tadmin1\n"
    for city in try GeoNames.cities().prefix(rows) {
        text += "\(city.geonameID)\t\(city.name)\t\(city.latitude)\t\(city.longitude)\t"
        text += "\(city.countryCode)\t\(city.population)\t\(city.timeZone)\t\(city.division)\n"
    }
    try Data(text.utf8).write(to: file)
    return file.path
}
