// Texts of single values, as filters and tools read them: dates, UUIDs, decimals.

public import VarveBase

extension QueryText {
    /// Seconds since 2001 of "2026-11-20", "2026-11-20T09:00", "...:30" or "...:30.5", each with or
    /// without "Z"; nil for anything else.
    public static func date(_ text: String) -> Double? {
        var rest = Substring(text)
        if rest.hasSuffix("Z") { rest.removeLast() }
        let halves = rest.split(separator: "T", omittingEmptySubsequences: false)
        let day = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard halves.count <= 2, day.count == 3, day[0].count == 4, day[1].count == 2,
            day[2].count == 2, let year = digits(day[0]), let month = digits(day[1]),
            let date = digits(day[2]), (1...12).contains(month), (1...31).contains(date)
        else { return nil }
        let civil = CivilDate(year: year, month: month, day: date)
        guard CivilDate(daysSince1970: civil.daysSince1970) == civil else { return nil }
        var seconds = civil.seconds
        if halves.count == 2 {
            let parts = halves[1].split(separator: ":", omittingEmptySubsequences: false)
            guard (2...3).contains(parts.count), let hour = digits(parts[0]), hour < 24,
                let minute = digits(parts[1]), minute < 60
            else { return nil }
            seconds += Double(hour * 3600 + minute * 60)
            if parts.count == 3 {
                guard parts[2].utf8.first.map(QueryScanner.isDigit) ?? false,
                    let second = Double(parts[2]), second < 61
                else { return nil }
                seconds += second
            }
        }
        return seconds
    }

    private static func digits(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy(QueryScanner.isDigit) ? Int64(text) : nil
    }

    /// A UUID of 32 hexadecimal digits, dashes between any of them; nil for anything else.
    public static func uuid(_ text: String) -> UUIDValue? {
        guard text.utf8.count <= 64 else { return nil }
        let digits = text.filter { $0 != "-" }
        // `UInt64` takes a sign, too.
        guard digits.utf8.count == 32, !digits.contains("+"),
            let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        return UUIDValue(high: high, low: low)
    }

    /// A decimal such as "-12.50" or "3e-7"; nil for anything else, and for what has too many
    /// digits.
    public static func decimal(_ text: String) -> DecimalValue? {
        var rest = Substring(text)
        let isNegative = rest.hasPrefix("-")
        if isNegative || rest.hasPrefix("+") { rest.removeFirst() }
        var exponent = 0
        if let mark = rest.firstIndex(where: { $0 == "e" || $0 == "E" }) {
            guard let power = Int(rest[rest.index(after: mark)...]), power.magnitude < 100_000
            else {
                return nil
            }
            exponent = power
            rest = rest[..<mark]
        }
        let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
        let digits = parts.joined()
        guard parts.count <= 2, !digits.isEmpty, digits.utf8.count <= 256,
            digits.utf8.allSatisfy(QueryScanner.isDigit)
        else { return nil }
        return DecimalValue(
            normalizing: isNegative,
            digits: digits.utf8.map { $0 - 0x30 },
            exponent: exponent - (parts.count == 2 ? parts[1].utf8.count : 0)
        )
    }
}

/// Which of some names was probably meant.
public enum NameDistance {
    /// Longer names are not looked at: they come from anywhere.
    private static let lengthMax = 64

    /// The name in `names` that `wrong` was probably meant to be; nil: none is near.
    public static func nearest(to wrong: String, among names: [String]) -> String? {
        guard wrong.utf8.count <= lengthMax else { return nil }
        let wanted = Array(wrong.lowercased())
        let scored = names.filter { $0.utf8.count <= lengthMax }
            .map { ($0, distance(wanted, Array($0.lowercased()))) }
        guard let best = scored.min(by: { ($0.1, $0.0) < ($1.1, $1.0) }) else { return nil }
        return best.1 <= max(1, (wanted.count + 1) / 3) ? best.0 : nil
    }

    private static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var corner = row[0]
            row[0] = index + 1
            for column in right.indices {
                let above = row[column + 1]
                let change = corner + (letter == right[column] ? 0 : 1)
                row[column + 1] = min(change, above + 1, row[column] + 1)
                corner = above
            }
        }
        return row[right.count]
    }
}
