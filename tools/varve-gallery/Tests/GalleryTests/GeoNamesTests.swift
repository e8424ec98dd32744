// The bundled tables, and what a wrong table says.

import Foundation
import GalleryKit
import Testing

private let header = "id\tname\tlatitude\tlongitude\tcountry\tpopulation\ttimezone\tadmin1"

@Suite("Bundled data") struct GeoNamesTests {
    @Test("40,000 cities come with the program, most populous first") func citiesAreBundled() throws
    {
        let cities = try GeoNames.cities()
        #expect(cities.count == 40_000)
        #expect(Set(cities.map(\.geonameID)).count == 40_000)
        #expect(zip(cities, cities.dropFirst()).allSatisfy { $0.population >= $1.population })
        #expect(cities.first?.name == "Shanghai")
        #expect(cities.allSatisfy { (-90...90).contains($0.latitude) && !$0.name.isEmpty })
    }

    @Test("Every city lies in one of the countries") func countriesAreBundled() throws {
        let countries = try GeoNames.countries()
        let codes = Set(countries.map(\.code))
        #expect(countries.count == 252)
        #expect(codes.count == 252)
        #expect(try GeoNames.cities().allSatisfy { codes.contains($0.countryCode) })
    }

    @Test("The full set of GeoNames has more columns, and its order does not matter")
    func tablesWithOtherColumnsWork() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "cities.tsv")
            let text = """
                population\tname\tid\tlatitude\tlongitude\tcountry\ttimezone\tadmin1\tother
                10\tB\t2\t1\t2\tIS\tAtlantic/Reykjavik\t01\tx|y
                20\tA\t1\t1.5\t-2\tIS\tAtlantic/Reykjavik\t01\t
                """
            try Data(text.utf8).write(to: file)
            #expect(try GeoNames.cities(from: file).map(\.name) == ["A", "B"])
        }
    }

    @Test(
        "A table that is not one is an error that says where",
        arguments: [
            "", "id\tname\n",
            "\(header)\nx",
            "\(header)\nx\tA\t1\t1\tIS\t1\t\t",
        ]
    )
    func brokenTablesAreErrors(text: String) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "cities.tsv")
            try Data(text.utf8).write(to: file)
            #expect(throws: GalleryError.self) { try GeoNames.cities(from: file) }
        }
    }
}
