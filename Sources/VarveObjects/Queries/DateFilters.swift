// Parts of dates in filters, orders and selections: `$0.date.year(in: zone) == 2024`.
//
// Semantics: those of VarveRecords/Queries/DateParts.swift. A part is nil where there is no date, or
// none that a calendar has.

public import Foundation
import VarveRecords

/// Parts of a date.
extension Column where Value == Date {
    /// The year by the clock of a zone, in the Gregorian calendar for all times. A comparison of it is a
    /// range of moments, which an index of the dates serves.
    /// - Parameter zone: whose clock is read.
    public func year(in zone: TimeZone) -> Column<Root, Int?> { part(.year, zone) }

    /// The month, 1 to 12, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func month(in zone: TimeZone) -> Column<Root, Int?> { part(.month, zone) }

    /// The day of the month, 1 to 31, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func day(in zone: TimeZone) -> Column<Root, Int?> { part(.day, zone) }

    /// The day of the week, from 1, Sunday, to 7, Saturday, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func weekday(in zone: TimeZone) -> Column<Root, Int?> { part(.weekday, zone) }

    /// The hour, 0 to 23, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func hour(in zone: TimeZone) -> Column<Root, Int?> { part(.hour, zone) }

    /// The minute, 0 to 59, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func minute(in zone: TimeZone) -> Column<Root, Int?> { part(.minute, zone) }
}

/// Parts of an optional date.
extension Column where Value == Date? {
    /// The year by the clock of a zone, in the Gregorian calendar for all times. A comparison of it is a
    /// range of moments, which an index of the dates serves.
    /// - Parameter zone: whose clock is read.
    public func year(in zone: TimeZone) -> Column<Root, Int?> { part(.year, zone) }

    /// The month, 1 to 12, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func month(in zone: TimeZone) -> Column<Root, Int?> { part(.month, zone) }

    /// The day of the month, 1 to 31, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func day(in zone: TimeZone) -> Column<Root, Int?> { part(.day, zone) }

    /// The day of the week, from 1, Sunday, to 7, Saturday, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func weekday(in zone: TimeZone) -> Column<Root, Int?> { part(.weekday, zone) }

    /// The hour, 0 to 23, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func hour(in zone: TimeZone) -> Column<Root, Int?> { part(.hour, zone) }

    /// The minute, 0 to 59, by the clock of a zone.
    /// - Parameter zone: whose clock is read.
    public func minute(in zone: TimeZone) -> Column<Root, Int?> { part(.minute, zone) }
}

extension Column {
    fileprivate func part(_ part: DatePart, _ zone: TimeZone) -> Column<Root, Int?> {
        Column<Root, Int?>(
            definition: PropertyDefinition(
                path: PropertyPath(path.names, part: .date(part, DateZone(zone))),
                originalNames: [],
                kind: definition.kind
            )
        )
    }
}

extension DateZone {
    /// A time zone of Foundation's, under its identifier.
    init(_ zone: TimeZone) {
        self.init(zone.identifier) { seconds in
            zone.secondsFromGMT(for: Date(timeIntervalSinceReferenceDate: seconds))
        }
    }
}
