// One spelling for each thing, everywhere: places, commits, objects, sizes, times, stored text.
//
// Invariants
// - What comes from a store cannot drive a terminal: control characters are always escaped.

import VarveBase

/// How things are written.
public enum Spelling {
    /// A place in the file: "p@" and the offset in lowercase hex.
    public static func place(_ offset: UInt64) -> String { "p@" + String(offset, radix: 16) }

    /// A commit: "c48211".
    public static func commit(_ number: UInt64) -> String { "c\(number)" }

    /// A blob: "b:" and the first 8 digits of its digest.
    public static func blob(_ digest: String) -> String { "b:" + digest.prefix(8) }

    /// The offset that "p@1f40", "g3:p@1f40", "0x1f40" or "1f40" names; nil for anything else.
    public static func offset(_ text: String) -> UInt64? {
        var digits = Substring(text)
        if digits.hasPrefix("g"), let colon = digits.firstIndex(of: ":") {
            digits = digits[digits.index(after: colon)...]
        }
        for prefix in ["p@", "0x"] where digits.hasPrefix(prefix) {
            digits = digits.dropFirst(2)
            break
        }
        let isHex = digits.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
        }
        return isHex && digits.utf8.count <= 16 ? UInt64(digits, radix: 16) : nil
    }

    /// Bytes for people: "431.6 MB"; 1 MB is 1,000,000 bytes.
    public static func size(_ bytes: UInt64) -> String {
        let units: [(name: String, size: UInt64)] = [
            ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000),
        ]
        for unit in units where bytes >= unit.size {
            let tenths = bytes / (unit.size / 10)
            return "\(tenths / 10).\(tenths % 10) \(unit.name)"
        }
        return "\(bytes) bytes"
    }

    /// A number with commas between thousands: "182,400".
    public static func number(_ number: UInt64) -> String {
        let digits = Array("\(number)")
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0 && (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return text
    }

    /// A moment as ISO 8601 in UTC, from microseconds since 1970: "2026-03-02T14:11:00.000250Z".
    /// The fraction is left out when it is zero.
    public static func time(_ microseconds: Int64) -> String {
        let (seconds, rest) = microseconds.flooredQuotient(by: 1_000_000)
        let (days, second) = seconds.flooredQuotient(by: 86_400)
        let (year, month, day) = civil(days)
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let years = year >= 0 && year < 1000 ? String("000\(year)".suffix(4)) : "\(year)"
        var text = "\(years)-\(two(month))-\(two(day))"
        text += "T\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        if rest != 0 {
            var digits = String("00000\(rest)".suffix(6))
            while digits.hasSuffix("0") { digits.removeLast() }
            text += "." + digits
        }
        return text + "Z"
    }

    /// Seconds between 1970 and 2001, the origin of stored dates.
    static let referenceSeconds: Int64 = 978_307_200

    /// A stored date; those far outside the calendar are told in seconds.
    static func date(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds.magnitude < 8e12 else { return "date(\(seconds))" }
        let whole = seconds.rounded(.down)
        let micro = ((seconds - whole) * 1_000_000).rounded()
        return time((Int64(whole) + referenceSeconds) * 1_000_000 + Int64(micro))
    }

    /// Seconds since 2001 of "2026-11-20", "2026-11-20T09:00", "...:30" or "...:30.5", each with or
    /// without "Z"; nil for anything else.
    static func date(_ text: String) -> Double? {
        var rest = Substring(text)
        if rest.hasSuffix("Z") { rest.removeLast() }
        let halves = rest.split(separator: "T", omittingEmptySubsequences: false)
        let day = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard halves.count <= 2, day.count == 3, day[0].count == 4, day[1].count == 2,
            day[2].count == 2, let year = Int64(day[0]), let month = Int64(day[1]),
            let date = Int64(day[2]), (1...12).contains(month), (1...31).contains(date)
        else { return nil }
        var seconds = Double(days(year, month, date) * 86_400 - referenceSeconds)
        if halves.count == 2 {
            let parts = halves[1].split(separator: ":", omittingEmptySubsequences: false)
            guard (2...3).contains(parts.count), let hour = UInt64(parts[0]), hour < 24,
                let minute = UInt64(parts[1]), minute < 60
            else { return nil }
            seconds += Double(hour * 3600 + minute * 60)
            if parts.count == 3 {
                guard let second = Double(parts[2]), second >= 0, second < 61 else { return nil }
                seconds += second
            }
        }
        return seconds
    }

    /// Year, month and day of a day counted from 1970-01-01 (proleptic Gregorian calendar).
    private static func civil(_ days: Int64) -> (Int64, Int64, Int64) {
        let (era, day) = (days + 719_468).flooredQuotient(by: 146_097)
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let date = dayOfYear - (153 * shifted + 2) / 5 + 1
        return (year + era * 400 + (month <= 2 ? 1 : 0), month, date)
    }

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = shifted.flooredQuotient(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }

    /// Whether a character could drive a terminal or hide text: C0, C1, DEL, line and paragraph
    /// separators, and the marks that turn the direction of text.
    public static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069, 0x200E...0x200F, 0x061C,
            0xFEFF:
            true
        default: false
        }
    }

    /// Stored text for one line of output: control characters as in Swift source, so "\n" and
    /// "\u{1B}"; a backslash doubled.
    public static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { isControl($0) || $0 == "\\" }) else {
            return text
        }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            default:
                if isControl(scalar) {
                    result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result
    }

    /// A UUID with its dashes.
    static func uuid(_ value: UUIDValue) -> String {
        let digits = [value.high, value.low].map { word in
            let text = String(word, radix: 16, uppercase: true)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var result = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { result += "-" }
            result.append(digit)
        }
        return result
    }

    /// Bytes in base64.
    static func base64(_ bytes: [UInt8]) -> String {
        let letters = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
        )
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let word =
                UInt32(bytes[index]) << 16 | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                | (left > 2 ? UInt32(bytes[index + 2]) : 0)
            result.append(letters[Int(word >> 18)])
            result.append(letters[Int(word >> 12 & 63)])
            result.append(left > 1 ? letters[Int(word >> 6 & 63)] : 0x3D)
            result.append(left > 2 ? letters[Int(word & 63)] : 0x3D)
            index += 3
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The name in `names` that `wrong` was probably meant to be.
    public static func suggestion(for wrong: String, among names: [String]) -> String? {
        let wanted = Array(wrong.lowercased())
        let scored = names.map { ($0, distance(wanted, Array($0.lowercased()))) }
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

extension Int64 {
    /// Division that rounds down, so that the remainder is never negative.
    fileprivate func flooredQuotient(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
