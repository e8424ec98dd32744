// Parts of dates and folded texts by Foundation: what the tests hold against the records layer.

import Foundation
import VarveBase

@testable import VarveRecords

/// Parts of dates as Foundation's calendar gives them.
enum QueryClock {
    static let zones: [DateZone] = ["Europe/Berlin", "America/St_Johns", "GMT"].map { name in
        let zone = TimeZone(identifier: name) ?? .gmt
        return DateZone(name) {
            zone.secondsFromGMT(for: Date(timeIntervalSinceReferenceDate: $0))
        }
    }

    /// For dates of the last centuries.
    static func part(_ part: DatePart, _ zone: DateZone, _ value: StoredValue) -> StoredValue {
        guard case .date(let seconds) = value, seconds.magnitude < 1e10 else { return .null }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone.name) ?? .gmt
        let components: [DatePart: Calendar.Component] = [
            .year: .year, .month: .month, .day: .day, .weekday: .weekday, .hour: .hour,
            .minute: .minute,
        ]
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        return .int(Int64(calendar.component(components[part] ?? .era, from: date)))
    }
}

/// Folding by what Foundation decomposes.
enum QueryFolding {
    static func folded(_ text: String, _ folding: TextFolding) -> String {
        let cased = folding.contains(.caseDifferences) ? text.lowercased() : text
        if !folding.contains(.diacritics) { return cased }
        var scalars = Array(cased.decomposedStringWithCanonicalMapping.unicodeScalars)
        scalars.removeAll {
            let order = $0.properties.canonicalCombiningClass.rawValue
            return order > 201 || (order > 9 && order < 37)
        }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }
}
