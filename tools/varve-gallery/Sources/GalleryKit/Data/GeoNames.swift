// The bundled cities and countries, and tables of the same form.

package import Foundation

/// One populated place of GeoNames' set.
package struct CityRecord: Sendable {
    package var geonameID: Int
    package var name: String
    package var latitude: Double
    package var longitude: Double
    package var countryCode: String
    package var population: Int
    package var timeZone: String
    package var division: String
}

/// One country of GeoNames' set.
package struct CountryRecord: Sendable {
    package var code: String
    package var name: String
    package var capital: String
    package var continent: String
    package var areaSquareKilometres: Double
    package var population: Int
}

/// The bundled tables, and files of the same form. Resources/ATTRIBUTION.md names source and
/// licence.
package enum GeoNames {
    /// The cities of `file`, or the 40,000 most populous ones, which are bundled; by falling
    /// population.
    package static func cities(from file: URL? = nil) throws -> [CityRecord] {
        let table = try TabSeparatedFile(file ?? bundled("cities"))
        let id = try table.column("id")
        let name = try table.column("name")
        let latitude = try table.column("latitude")
        let longitude = try table.column("longitude")
        let country = try table.column("country")
        let population = try table.column("population")
        let timeZone = try table.column("timezone")
        let division = try table.column("admin1")

        var cities: [CityRecord] = []
        try table.forEachRow { fields, line in
            cities.append(
                CityRecord(
                    geonameID: try table.number(fields[id], line: line),
                    name: String(fields[name]),
                    latitude: try table.number(fields[latitude], line: line),
                    longitude: try table.number(fields[longitude], line: line),
                    countryCode: String(fields[country]),
                    population: try table.number(fields[population], line: line),
                    timeZone: String(fields[timeZone]),
                    division: String(fields[division])
                )
            )
        }
        cities.sort { ($1.population, $0.geonameID) < ($0.population, $1.geonameID) }
        return cities
    }

    /// The bundled countries, by their code.
    package static func countries() throws -> [CountryRecord] {
        let table = try TabSeparatedFile(bundled("countries"))
        let code = try table.column("iso")
        let name = try table.column("name")
        let capital = try table.column("capital")
        let continent = try table.column("continentcode")
        let area = try table.column("areakm2")
        let population = try table.column("population")

        var countries: [CountryRecord] = []
        try table.forEachRow { fields, line in
            countries.append(
                CountryRecord(
                    code: String(fields[code]),
                    name: String(fields[name]),
                    capital: String(fields[capital]),
                    continent: String(fields[continent]),
                    areaSquareKilometres: try table.number(fields[area], line: line),
                    population: try table.number(fields[population], line: line)
                )
            )
        }
        return countries.sorted { $0.code < $1.code }
    }

    private static func bundled(_ name: String) throws -> URL {
        guard let url = Bundle.module.url(forResource: name, withExtension: "tsv") else {
            throw GalleryError("the bundled table \(name).tsv is missing beside the program")
        }
        return url
    }
}
