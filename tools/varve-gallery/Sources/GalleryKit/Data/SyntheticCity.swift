// Cities that are made up, for lists of any length.

import Foundation

/// Makes a city out of its number: always the same one.
package enum SyntheticCity {
    /// The number that stands as `geonameID` in the first one; real ones are far below it.
    package static let firstID = 1_000_000_000

    private static let beginnings = [
        "Ash", "Birk", "Clay", "Dun", "Elm", "Fair", "Glen", "Hart", "Iron", "Kirk", "Lang",
        "Mill", "Nor", "Oak", "Pem", "Red", "Stan", "Thorn", "Wal", "Yar",
    ]
    private static let endings = [
        "borough", "bridge", "bury", "combe", "dale", "field", "ford", "gate", "ham", "ley",
        "mouth", "stead", "ton", "wick", "wood", "worth",
    ]

    /// The city with a number from 0 on; `countries` are the codes to choose from.
    package static func record(_ number: Int, countries: [String]) -> CityRecord {
        var random = SeededRandom(seed: UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        let name =
            beginnings[random.below(beginnings.count)] + endings[random.below(endings.count)]
        // Few are large: the reciprocal of an even distribution, as it is with real ones.
        let share = Double(random.below(1_000_000) + 1) / 1_000_000
        return CityRecord(
            geonameID: firstID + number,
            name: "\(name) \(number)",
            latitude: Double(random.below(180_000_000)) / 1_000_000 - 90,
            longitude: Double(random.below(360_000_000)) / 1_000_000 - 180,
            countryCode: countries.isEmpty ? "" : countries[random.below(countries.count)],
            population: min(30_000_000, Int(1_000 / share)),
            timeZone: "Etc/UTC",
            division: "\(random.below(100))"
        )
    }
}

extension SeededRandom {
    /// A number from 0 to `bound` - 1.
    fileprivate mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
