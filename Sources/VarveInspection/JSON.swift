// JSON with its members in the order in which they were given: the same answer, the same bytes.

/// A JSON value.
public indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    /// Written as a number up to 2^53, as a string above.
    case int(Int64)
    /// Written as a number up to 2^53, as a string above.
    case uint(UInt64)
    /// Not a number and infinities are written as strings.
    case double(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    /// One member of an object.
    public struct Member: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its value.
        public var value: JSON
    }

    /// An object from names and values; members that are nil are left out.
    public static func members(_ members: [(String, JSON?)]) -> JSON {
        .object(members.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }

    /// A number of things.
    public static func count(_ count: Int) -> JSON { .int(Int64(count)) }

    /// The value as one line.
    public var text: String {
        var result = ""
        write(to: &result)
        return result
    }

    private static let exactMax: UInt64 = 1 << 53

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .int(let value):
            text += value.magnitude <= Self.exactMax ? "\(value)" : "\"\(value)\""
        case .uint(let value): text += value <= Self.exactMax ? "\(value)" : "\"\(value)\""
        case .double(let value): text += value.isFinite ? "\(value)" : "\"\(value)\""
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default:
                if Spelling.isControl(scalar) {
                    let digits = String(scalar.value, radix: 16)
                    text += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
                } else {
                    text.unicodeScalars.append(scalar)
                }
            }
        }
        text += "\""
    }
}
