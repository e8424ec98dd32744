// The model of the gallery: a city lies in a country and may have one picture.

import Foundation
package import Varve

/// A country of GeoNames' set.
@Entity package final class Country: ManagedObject {
    #Unique<Country>([\.code])

    /// ISO 3166-1 alpha-2.
    package var code: String = ""
    package var name: String = ""
    package var capital: String = ""
    package var continent: String = ""
    package var areaSquareKilometres: Double = 0
    package var population: Int = 0

    @Relationship(inverse: \City.country) package var cities: ToMany<City>
}

/// A populated place of GeoNames' set.
@Entity package final class City: ManagedObject {
    #Unique<City>([\.geonameID])
    #Index<City>([\.population], [\.name])

    package var geonameID: Int = 0
    package var name: String = ""
    /// Degrees, WGS 84.
    package var latitude: Double = 0
    /// Degrees, WGS 84.
    package var longitude: Double = 0
    package var population: Int = 0
    /// IANA name.
    package var timeZone: String = ""
    /// First administrative division, as GeoNames numbers it.
    package var division: String = ""

    @Relationship package var country: Country?
    @Relationship(inverse: \Picture.city, deleteRule: .cascade) package var picture: Picture?
}

/// A picture of a city. Its bytes are a file beside the store when they are above the external
/// limit.
@Entity package final class Picture: ManagedObject {
    #Unique<Picture>([\.serial])

    /// 1 for the first picture of the gallery, then one more for each.
    package var serial: Int = 0
    package var fileName: String = ""
    @Attribute(.externalStorage(above: 102_400)) package var data: Blob?

    @Relationship package var city: City?
}

/// What a gallery's store holds.
package enum GallerySchema: VersionedSchema {
    package static let version = 1
    package static var entities: [any ManagedObject.Type] {
        [Country.self, City.self, Picture.self]
    }
}
