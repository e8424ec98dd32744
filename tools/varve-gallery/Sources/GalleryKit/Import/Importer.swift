// Fills a store with countries, cities and pictures, batch by batch.

import Foundation
package import VarveObjects

/// Fills a store with countries, cities and pictures, in batches: one background task and one
/// durable save each, so that memory stays flat and a crash costs at most the batch under way. What
/// the store has already is left alone, so that an import that was cut off can be run again.
package struct Importer: Sendable {
    package static let citiesPerSave = 1_000
    package static let picturesPerSave = 8
    package static let syntheticCitiesPerSave = 50_000

    /// Rows that are in the store for good.
    package struct Saved: Sendable, Equatable {
        package var countries = 0
        package var cities = 0
        package var pictures = 0

        package init(countries: Int = 0, cities: Int = 0, pictures: Int = 0) {
            self.countries = countries
            self.cities = cities
            self.pictures = pictures
        }

        /// The line that `gallery import --acknowledge` prints after each save.
        package var line: String {
            "saved countries=\(countries) cities=\(cities) pictures=\(pictures)"
        }
    }

    let container: PersistentContainer
    let cities: [CityRecord]
    let pictures: PictureSource
    let pictureCount: Int
    /// Cities are made up until there are so many.
    let rows: Int

    package init(
        into container: PersistentContainer,
        cities: [CityRecord],
        pictures: PictureSource,
        pictureCount: Int,
        rows: Int = 0
    ) {
        self.rows = rows
        self.container = container
        self.cities = cities
        self.pictures = pictures
        self.pictureCount = pictureCount
    }

    /// Runs the import; calls `acknowledge` after each save that returned.
    package func run(acknowledge: (Saved) -> Void) async throws -> Saved {
        var saved = try await container.performBackgroundTask { context in
            Saved(
                countries: try context.count(Country.all),
                cities: try context.count(City.all),
                pictures: try context.count(Picture.all)
            )
        }
        try await importCountries(&saved, acknowledge)
        try await importCities(&saved, acknowledge)
        try await importSyntheticCities(&saved, acknowledge)
        try await importPictures(&saved, acknowledge)
        return saved
    }

    private func importCountries(
        _ saved: inout Saved,
        _ acknowledge: (Saved) -> Void
    ) async throws {
        let records = try GeoNames.countries()
        guard saved.countries < records.count else { return }
        saved.countries += try await container.performBackgroundTask(author: "import") { context in
            let known = Set(try context.fetch(Country.all).map(\.code))
            let missing = records.filter { !known.contains($0.code) }
            for record in missing {
                let country = Country(in: context)
                country.code = record.code
                country.name = record.name
                country.capital = record.capital
                country.continent = record.continent
                country.areaSquareKilometres = record.areaSquareKilometres
                country.population = record.population
            }
            try context.save()
            return missing.count
        }
        acknowledge(saved)
    }

    private func importCities(
        _ saved: inout Saved,
        _ acknowledge: (Saved) -> Void
    ) async throws {
        let missing = try await missingCities(stored: saved.cities)
        guard !missing.isEmpty else { return }
        let countryIDs = try await container.performBackgroundTask { context in
            Dictionary(
                try context.fetch(Country.all).map { ($0.code, $0.id) },
                uniquingKeysWith: { first, _ in first }
            )
        }
        let bar = ProgressBar("cities", total: missing.count)
        defer { bar.finish() }
        for start in stride(from: 0, to: missing.count, by: Self.citiesPerSave) {
            let end = min(start + Self.citiesPerSave, missing.count)
            let batch = missing[start..<end]
            try await container.performBackgroundTask(author: "import") { context in
                for record in batch {
                    let city = City(in: context)
                    city.geonameID = record.geonameID
                    city.name = record.name
                    city.latitude = record.latitude
                    city.longitude = record.longitude
                    city.population = record.population
                    city.timeZone = record.timeZone
                    city.division = record.division
                    if let id = countryIDs[record.countryCode] {
                        city.country = try context.object(with: id)
                    }
                }
                try context.save()
            }
            saved.cities += batch.count
            acknowledge(saved)
            bar.update(end)
        }
    }

    /// Made up cities, as a batch: without an object for each.
    private func importSyntheticCities(
        _ saved: inout Saved,
        _ acknowledge: (Saved) -> Void
    ) async throws {
        guard saved.cities < rows else { return }
        let bar = ProgressBar("more cities", total: rows - saved.cities)
        defer { bar.finish() }
        let first = saved.cities
        while saved.cities < rows {
            let count = min(Self.syntheticCitiesPerSave, rows - saved.cities)
            saved.cities += try await container.performBackgroundTask(author: "import") { context in
                // The codes in their order, so that each number has always the same city.
                let countries = try context.fetch(Country.all.sorted { [$0.code.ascending] })
                let codes = countries.map(\.code)
                let ids = Dictionary(uniqueKeysWithValues: countries.map { ($0.code, $0.id) })
                let highest = try context.maximum(City.all) { $0.geonameID } ?? 0
                let next = max(0, highest + 1 - SyntheticCity.firstID)
                return try context.batchInsert(City.self, count: count) { row, number in
                    let record = SyntheticCity.record(next + number, countries: codes)
                    row.geonameID = record.geonameID
                    row.name = record.name
                    row.latitude = record.latitude
                    row.longitude = record.longitude
                    row.population = record.population
                    row.timeZone = record.timeZone
                    row.division = record.division
                    row.country = ids[record.countryCode]
                }.inserted
            }
            acknowledge(saved)
            bar.update(saved.cities - first)
        }
    }

    /// The cities that the store does not hold yet, in their order.
    private func missingCities(stored: Int) async throws -> [CityRecord] {
        guard stored > 0 else { return cities }
        let known = try await container.performBackgroundTask { context in
            Set(try context.fetchBatched(City.all, size: 1_000).map(\.geonameID))
        }
        return cities.filter { !known.contains($0.geonameID) }
    }

    /// Picture n belongs to the n-th most populous city.
    private func importPictures(
        _ saved: inout Saved,
        _ acknowledge: (Saved) -> Void
    ) async throws {
        guard saved.pictures < pictureCount else { return }
        let owners = try await container.performBackgroundTask { [pictureCount] context in
            try context.fetchIDs(
                City.all.sorted { [$0.population.descending] }.limit(pictureCount)
            )
        }
        let bar = ProgressBar("pictures", total: pictureCount - saved.pictures)
        defer { bar.finish() }
        let first = saved.pictures
        for start in stride(from: first, to: pictureCount, by: Self.picturesPerSave) {
            let end = min(start + Self.picturesPerSave, pictureCount)
            try await container.performBackgroundTask(author: "import") { [pictures] context in
                for index in start..<end {
                    let picture = Picture(in: context)
                    picture.serial = index + 1
                    picture.fileName = pictures.name(of: index)
                    picture.data = try Self.blob(index, from: pictures, in: context)
                    picture.city = try context.object(with: owners[index])
                }
                try context.save()
            }
            saved.pictures = end
            acknowledge(saved)
            bar.update(end - first)
        }
    }

    /// The bytes of a picture: those of the row that had the same file one cycle ago, or read and
    /// written anew.
    private static func blob(
        _ index: Int,
        from pictures: PictureSource,
        in context: ManagedObjectContext
    ) throws -> Blob? {
        let serial = index + 1 - pictures.cycle
        if serial > 0, let same = try context.fetch(Picture.where { $0.serial == serial }).first,
            same.fileName == pictures.name(of: index), let blob = same.data
        {
            return blob
        }
        var writer = try context.makeBlob(for: Picture.columns.data)
        try pictures.write(index) { try writer.append(contentsOf: $0) }
        return try writer.finish()
    }
}
