// Year, month, day and time of a stored date, as a clock in a given time zone shows them.
//
// Invariants
// - The calendar is the Gregorian one for all times (proleptic), as in ISO 8601; year 0 is 1 BC.
// - A date that is not a number, or further than `CivilDate.secondsMax` from the reference date,
//   has no parts: they are null. Nothing traps.
// - Parts are whole: of a moment between two seconds the earlier one counts.

import VarveBase

/// A part of a date.
public enum DatePart: String, Hashable, Sendable, CaseIterable {
    case year
    /// 1 to 12.
    case month
    /// 1 to 31.
    case day
    /// 1, Sunday, to 7, Saturday.
    case weekday
    /// 0 to 23.
    case hour
    /// 0 to 59.
    case minute
}

/// A time zone, as filters need it: a name and what it adds to UTC. Zones are equal when their
/// names are.
public struct DateZone: Hashable, Sendable {
    /// The zone's name, such as "Europe/Berlin".
    public let name: String
    private let secondsEast: @Sendable (Double) -> Int

    /// A day: no zone is further from UTC.
    static let differenceMax = 86_400

    /// A zone of the caller's.
    /// - Parameters:
    ///   - name: its name; zones of one name must be the same.
    ///   - secondsEast: what the zone adds to UTC at a moment, in seconds. The moment is given in
    ///     seconds since the reference date and lies in the years 1 to 9999.
    public init(_ name: String, secondsEast: @escaping @Sendable (Double) -> Int) {
        self.name = name
        self.secondsEast = secondsEast
    }

    /// Coordinated universal time.
    public static let utc = DateZone("UTC") { _ in 0 }

    /// What the zone adds to UTC, for any moment.
    func difference(at seconds: Double) -> Int64 {
        let inYears = min(max(seconds, -63_113_904_000), 252_423_993_600)
        return Int64(
            min(max(secondsEast(inYears), -Self.differenceMax), Self.differenceMax)
        )
    }

    /// By the names.
    public static func == (left: DateZone, right: DateZone) -> Bool { left.name == right.name }

    /// The name.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension DatePart {
    /// The part of a moment; nil: it has none.
    /// - Parameters:
    ///   - seconds: the moment, in seconds since the reference date.
    ///   - zone: whose clock is read.
    public func value(of seconds: Double, in zone: DateZone) -> Int64? {
        guard seconds.magnitude <= CivilDate.secondsMax else { return nil }
        let local = Int64(seconds.rounded(.down)) + zone.difference(at: seconds)
        let (day, second) = (local + CivilDate.referenceSeconds).flooredQuotient(by: 86_400)
        switch self {
        case .hour: return second / 3_600
        case .minute: return second / 60 % 60
        // 1970-01-01 was a Thursday.
        case .weekday: return (day + 4).flooredQuotient(by: 7).1 + 1
        case .year: return CivilDate(daysSince1970: day).year
        case .month: return CivilDate(daysSince1970: day).month
        case .day: return CivilDate(daysSince1970: day).day
        }
    }
}

/// A day of the proleptic Gregorian calendar.
public struct CivilDate: Hashable, Sendable {
    /// Year, counted from 0, which is 1 BC.
    public var year: Int64
    /// 1 to 12.
    public var month: Int64
    /// 1 to 31.
    public var day: Int64

    /// Moments that are further from the reference date have no date here: about 317,000 years.
    public static let secondsMax = 1e13
    /// Seconds between 1970 and 2001, the origin of stored dates.
    public static let referenceSeconds: Int64 = 978_307_200
    /// Years further from 0 than this have no moments with parts.
    static let yearMax: Int64 = 400_000

    /// Joins year, month and day.
    public init(year: Int64, month: Int64, day: Int64) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// A day counted from 1970-01-01.
    /// - Parameter days: not further from zero than two thousand million.
    public init(daysSince1970 days: Int64) {
        let (era, day) = (days + 719_468).flooredQuotient(by: 146_097)
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        month = shifted < 10 ? shifted + 3 : shifted - 9
        self.day = dayOfYear - (153 * shifted + 2) / 5 + 1
        self.year = year + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The day counted from 1970-01-01. Of a day that the month does not have: the one that it
    /// would be, were the month longer.
    public var daysSince1970: Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = shifted.flooredQuotient(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }

    /// The beginning of the day in UTC, in seconds since the reference date.
    public var seconds: Double {
        Double(daysSince1970 * 86_400 - Self.referenceSeconds)
    }
}

extension CivilDate {
    /// Moments among which are all with such a year, whatever the zone; nil: this narrows nothing.
    static func moments(_ comparison: Comparison, _ year: Int64) -> ValueRange? {
        guard (-yearMax...yearMax).contains(year) else { return nil }
        func begin(_ year: Int64) -> Double {
            CivilDate(year: year, month: 1, day: 1).seconds
        }
        let slack = Double(DateZone.differenceMax)
        let lower = StoredValue.date(begin(comparison == .greater ? year + 1 : year) - slack)
        let upper = StoredValue.date(begin(comparison == .less ? year : year + 1) + slack)
        return switch comparison {
        case .equal: ValueRange(from: lower, upTo: upper)
        case .less, .lessOrEqual: ValueRange(from: nil, upTo: upper)
        case .greater, .greaterOrEqual: ValueRange(from: lower, upTo: nil)
        case .notEqual: nil
        }
    }
}

extension Int64 {
    /// Division that rounds down, so that the remainder is never negative.
    func flooredQuotient(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
