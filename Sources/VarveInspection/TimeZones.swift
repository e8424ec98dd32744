// Time zones for filters over parts of dates, by their names.

import Foundation
import VarveRecords

extension DateZone {
    /// The system's time zone of a name; nil: there is none.
    static func named(_ name: String) -> DateZone? {
        guard let zone = TimeZone(identifier: name) else { return nil }
        return DateZone(name) { seconds in
            zone.secondsFromGMT(for: Date(timeIntervalSinceReferenceDate: seconds))
        }
    }
}
