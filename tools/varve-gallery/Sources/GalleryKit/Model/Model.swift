// The model of the gallery: a city lies in a country and may have one picture.
//
// The entities are written by hand, without macros, so that the demonstration builds without
// swift-syntax. Each has the same shape: its name, its columns, its indexes and constraints, its
// storage, one accessor for each property, and the line that keeps objects in their context
// (docs/PublicAPI.md, An entity without macros).

import Foundation
package import VarveObjects

/// A country of GeoNames' set.
package final class Country: ManagedObject {
    package static let entityName = "Country"

    package struct Columns: Sendable {
        package let code = Column<Country, String>("code", default: "")
        package let name = Column<Country, String>("name", default: "")
        package let capital = Column<Country, String>("capital", default: "")
        package let continent = Column<Country, String>("continent", default: "")
        package let areaSquareKilometres = Column<Country, Double>(
            "areaSquareKilometres",
            default: 0
        )
        package let population = Column<Country, Int>("population", default: 0)
        package let cities = ToManyColumn<Country, City>("cities", inverse: "country")
    }
    package static let columns = Columns()
    package static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.code)] }

    @safe @exclusivity(unchecked) package var storage: ObjectStorage
    package init(storage: consuming ObjectStorage) { self.storage = storage }

    /// ISO 3166-1 alpha-2.
    package var code: String {
        get { storedValue(Self.columns.code, \.code) }
        set { setStoredValue(newValue, Self.columns.code, \.code) }
    }
    package var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    package var capital: String {
        get { storedValue(Self.columns.capital, \.capital) }
        set { setStoredValue(newValue, Self.columns.capital, \.capital) }
    }
    package var continent: String {
        get { storedValue(Self.columns.continent, \.continent) }
        set { setStoredValue(newValue, Self.columns.continent, \.continent) }
    }
    package var areaSquareKilometres: Double {
        get { storedValue(Self.columns.areaSquareKilometres, \.areaSquareKilometres) }
        set { setStoredValue(newValue, Self.columns.areaSquareKilometres, \.areaSquareKilometres) }
    }
    package var population: Int {
        get { storedValue(Self.columns.population, \.population) }
        set { setStoredValue(newValue, Self.columns.population, \.population) }
    }
    package var cities: ToMany<City> { storedValue(Self.columns.cities, \.cities) }
}

/// A populated place of GeoNames' set.
package final class City: ManagedObject {
    package static let entityName = "City"

    package struct Columns: Sendable {
        package let geonameID = Column<City, Int>("geonameID", default: 0)
        package let name = Column<City, String>("name", default: "")
        package let latitude = Column<City, Double>("latitude", default: 0)
        package let longitude = Column<City, Double>("longitude", default: 0)
        package let population = Column<City, Int>("population", default: 0)
        package let timeZone = Column<City, String>("timeZone", default: "")
        package let division = Column<City, String>("division", default: "")
        package let country = ToOneColumn<City, Country>("country")
        package let picture = ToOneColumn<City, Picture>(
            "picture",
            inverse: "city",
            deleteRule: .cascade
        )
    }
    package static let columns = Columns()
    package static var indexes: [EntityIndex] {
        [EntityIndex(columns.population), EntityIndex(columns.name)]
    }
    package static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.geonameID)]
    }

    @safe @exclusivity(unchecked) package var storage: ObjectStorage
    package init(storage: consuming ObjectStorage) { self.storage = storage }

    package var geonameID: Int {
        get { storedValue(Self.columns.geonameID, \.geonameID) }
        set { setStoredValue(newValue, Self.columns.geonameID, \.geonameID) }
    }
    package var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    /// Degrees, WGS 84.
    package var latitude: Double {
        get { storedValue(Self.columns.latitude, \.latitude) }
        set { setStoredValue(newValue, Self.columns.latitude, \.latitude) }
    }
    /// Degrees, WGS 84.
    package var longitude: Double {
        get { storedValue(Self.columns.longitude, \.longitude) }
        set { setStoredValue(newValue, Self.columns.longitude, \.longitude) }
    }
    package var population: Int {
        get { storedValue(Self.columns.population, \.population) }
        set { setStoredValue(newValue, Self.columns.population, \.population) }
    }
    /// IANA name.
    package var timeZone: String {
        get { storedValue(Self.columns.timeZone, \.timeZone) }
        set { setStoredValue(newValue, Self.columns.timeZone, \.timeZone) }
    }
    /// First administrative division, as GeoNames numbers it.
    package var division: String {
        get { storedValue(Self.columns.division, \.division) }
        set { setStoredValue(newValue, Self.columns.division, \.division) }
    }
    package var country: Country? {
        get { storedValue(Self.columns.country, \.country) }
        set { setStoredValue(newValue, Self.columns.country, \.country) }
    }
    package var picture: Picture? {
        get { storedValue(Self.columns.picture, \.picture) }
        set { setStoredValue(newValue, Self.columns.picture, \.picture) }
    }
}

/// A picture of a city. Its bytes are a file beside the store when they are above the external
/// limit.
package final class Picture: ManagedObject {
    package static let entityName = "Picture"

    package struct Columns: Sendable {
        package let serial = Column<Picture, Int>("serial", default: 0)
        package let fileName = Column<Picture, String>("fileName", default: "")
        package let data = Column<Picture, Blob?>("data", externalStorageAbove: 102_400)
        package let city = ToOneColumn<Picture, City>("city")
    }
    package static let columns = Columns()
    package static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.serial)] }

    @safe @exclusivity(unchecked) package var storage: ObjectStorage
    package init(storage: consuming ObjectStorage) { self.storage = storage }

    /// 1 for the first picture of the gallery, then one more for each.
    package var serial: Int {
        get { storedValue(Self.columns.serial, \.serial) }
        set { setStoredValue(newValue, Self.columns.serial, \.serial) }
    }
    package var fileName: String {
        get { storedValue(Self.columns.fileName, \.fileName) }
        set { setStoredValue(newValue, Self.columns.fileName, \.fileName) }
    }
    package var data: Blob? {
        get { storedValue(Self.columns.data, \.data) }
        set { setStoredValue(newValue, Self.columns.data, \.data) }
    }
    package var city: City? {
        get { storedValue(Self.columns.city, \.city) }
        set { setStoredValue(newValue, Self.columns.city, \.city) }
    }
}

@available(*, unavailable, message: "pass the id or a snapshot")
extension Country: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension City: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Picture: Sendable {}

/// What a gallery's store holds.
package enum GallerySchema: VersionedSchema {
    package static let version = 1
    package static var entities: [any ManagedObject.Type] {
        [Country.self, City.self, Picture.self]
    }
}
