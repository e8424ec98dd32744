// Stored values as people and programs read them.

import VarveBase
import VarveRecords

/// One value of one row.
public enum InspectedValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    /// Seconds since 2001.
    case date(Double)
    case text(String)
    case data([UInt8])
    case uuid(String)
    /// A decimal number in digits.
    case decimal(String)
    /// An object: "Book:1042".
    case reference(String)
    /// 64 digits of a SHA-256, and the length in bytes.
    case blob(digest: String, length: UInt64)
    /// A value that could not be read, and why.
    case unreadable(String)

    /// The value as JSON. Data is base64, a date ISO 8601 in UTC.
    public var json: JSON {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .int(value)
        case .uint(let value): .uint(value)
        case .double(let value): .double(value)
        case .date(let seconds): .string(Spelling.date(seconds))
        case .text(let value), .uuid(let value), .decimal(let value), .reference(let value):
            .string(value)
        case .data(let bytes): .string(Spelling.base64(bytes))
        case .blob(let digest, let length):
            .members([("blob", .string(digest)), ("bytes", .uint(length))])
        case .unreadable(let reason): .members([("unreadable", .string(reason))])
        }
    }

    /// The value on one line; control characters are escaped. Text of more than `limit` characters
    /// is cut.
    public func text(limit: Int = .max) -> String {
        switch self {
        case .null: return "-"
        case .bool(let value): return value ? "true" : "false"
        case .int(let value): return "\(value)"
        case .uint(let value): return "\(value)"
        case .double(let value): return "\(value)"
        case .date(let seconds): return Spelling.date(seconds)
        case .uuid(let value), .decimal(let value), .reference(let value): return value
        case .text(let value):
            guard limit < .max, value.unicodeScalars.count > limit else {
                return Spelling.escaped(value)
            }
            var cut = String.UnicodeScalarView()
            cut.append(contentsOf: value.unicodeScalars.prefix(max(limit - 1, 1)))
            return Spelling.escaped(String(cut)) + "…"
        case .data(let bytes):
            return limit == .max
                ? Spelling.base64(bytes) : "data(\(Spelling.size(UInt64(bytes.count))))"
        case .blob(let digest, let length):
            let name = limit == .max ? "b:" + digest : Spelling.blob(digest)
            return "\(name) (\(Spelling.size(length)))"
        case .unreadable(let reason): return "unreadable: \(Spelling.escaped(reason))"
        }
    }
}

extension StoreObserver {
    func inspected(
        _ value: StoredValue,
        _ type: AttributeType?,
        target: EntityID?
    ) -> InspectedValue {
        names.inspected(value, type, target: target)
    }
}

extension TreeNames {
    func inspected(
        _ value: StoredValue,
        _ type: AttributeType?,
        target: EntityID?
    ) -> InspectedValue {
        switch value {
        case .null: return .null
        case .bool(let value): return .bool(value)
        case .int(let value):
            return type == .uint64 ? .uint(UInt64(bitPattern: value) ^ 1 << 63) : .int(value)
        case .float(let value): return .double(Double("\(value)") ?? Double(value))
        case .double(let value): return .double(value)
        case .date(let value): return .date(value)
        case .text(let value): return .text(value)
        case .data(let value): return .data(value)
        case .uuid(let value): return .uuid(Spelling.uuid(value))
        case .decimal(let value): return .decimal(Self.digits(value))
        case .reference(let object):
            return .reference(target.map { self.object($0, object) } ?? "\(object.rawValue)")
        case .blob(let reference):
            return .blob(digest: reference.digest.hexText, length: reference.length)
        }
    }

    private static func digits(_ value: DecimalValue) -> String {
        if value.digits.isEmpty { return "0" }
        let digits = value.digits.map { "\($0)" }.joined()
        let sign = value.isNegative ? "-" : ""
        let exponent = Int(value.exponent)
        if exponent > 40 || exponent < -80 { return "\(sign)\(digits)e\(exponent)" }
        if exponent >= 0 { return sign + digits + String(repeating: "0", count: exponent) }
        let whole = digits.count + exponent
        if whole > 0 { return sign + digits.prefix(whole) + "." + digits.dropFirst(whole) }
        return sign + "0." + String(repeating: "0", count: -whole) + digits
    }
}
