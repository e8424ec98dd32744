// Numbers and JSON as text.

/// Numbers for people.
public enum Format {
    /// A number with three significant digits and its unit, for example "117 µs"; without a unit
    /// where the name of the number says it.
    public static func quantity(_ value: Double, unit: String) -> String {
        switch unit {
        case "s": return scaled(value, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])
        case "bytes": return scaled(value, [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")])
        case "1/s": return scaled(value, [(1e6, "M/s"), (1e3, "k/s"), (1, "/s")])
        default: return short(value)
        }
    }

    /// Three significant digits.
    public static func short(_ value: Double) -> String {
        guard value.isFinite else { return "\(value)" }
        let size = abs(value)
        if size >= 100 { return fixed(value, 0) }
        if size >= 10 { return fixed(value, 1) }
        return fixed(value, 2)
    }

    /// A number with a fixed number of digits after the point.
    public static func fixed(_ value: Double, _ digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
        var power = 1.0
        for _ in 0..<digits { power *= 10 }
        let units = (abs(value) * power).rounded()
        let sign = value < 0 && units > 0 ? "-" : ""
        let whole = Int64(units / power)
        guard digits > 0 else { return sign + String(whole) }
        let rest = String(Int64(units) - whole * Int64(power))
        return sign + String(whole) + "."
            + String(repeating: "0", count: max(0, digits - rest.count)) + rest
    }

    private static func scaled(_ value: Double, _ steps: [(Double, String)]) -> String {
        let step = steps.first { abs(value) >= $0.0 } ?? steps[steps.count - 1]
        return short(value / step.0) + " " + step.1
    }
}

/// JSON whose fields keep the order in which they are given.
public enum JSON {
    /// A value of a field.
    public enum Value {
        case text(String)
        case number(Double)
        case bool(Bool)
        case null
    }

    /// An object on one line.
    public static func object(_ fields: [(String, Value)]) -> String {
        "{" + fields.map { quoted($0.0) + ":" + text($0.1) }.joined(separator: ",") + "}"
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .text(let text): quoted(text)
        case .number(let number): number.isFinite ? "\(number)" : "null"
        case .bool(let flag): flag ? "true" : "false"
        case .null: "null"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            default:
                if scalar.value < 0x20 {
                    let hex = String(scalar.value, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result + "\""
    }
}
