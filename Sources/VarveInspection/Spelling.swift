// One spelling for each thing, everywhere: places, commits, objects, sizes, times, stored text.
//
// Invariants
// - What comes from a store cannot drive a terminal: control characters are always escaped.

import VarveBase
import VarveRecords

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
        let civil = CivilDate(daysSince1970: days)
        let (year, month, day) = (civil.year, civil.month, civil.day)
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

    /// A stored date; those far outside the calendar are told in seconds.
    static func date(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds.magnitude < 8e12 else { return "date(\(seconds))" }
        let whole = seconds.rounded(.down)
        let micro = ((seconds - whole) * 1_000_000).rounded()
        return time((Int64(whole) + CivilDate.referenceSeconds) * 1_000_000 + Int64(micro))
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
        NameDistance.nearest(to: wrong, among: names)
    }
}

extension Int64 {
    /// Division that rounds down, so that the remainder is never negative.
    fileprivate func flooredQuotient(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
