// A place in a request's order that outlives the context: where a keyset page ended.
//
// Invariants
// - A cursor is bound to entity, filter and sort by a fingerprint; another request throws
//   `invalidCursor`.
// - Decoding a cursor that somebody else wrote gives an error or a cursor, never a trap.

import VarveBase
import VarveRecords

/// The place of one object in the order of one request. Codable and Sendable; the object itself
/// need not exist any more when the cursor is used.
public struct FetchCursor: Hashable, Sendable {
    let entity: String
    let fingerprint: UInt64
    let position: KeysetPosition
}

extension FetchCursor: Codable {
    private enum Key: String, CodingKey { case entity, fingerprint, object, values }

    /// Reads a cursor.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        entity = try container.decode(String.self, forKey: .entity)
        fingerprint = try container.decode(UInt64.self, forKey: .fingerprint)
        let object = try container.decode(UInt64.self, forKey: .object)
        let values = try container.decode([CodableValue].self, forKey: .values)
        position = KeysetPosition(values: values.map(\.value), object: ObjectID(object))
    }

    /// Writes the cursor.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(entity, forKey: .entity)
        try container.encode(fingerprint, forKey: .fingerprint)
        try container.encode(position.object.rawValue, forKey: .object)
        try container.encode(position.values.map(CodableValue.init), forKey: .values)
    }
}

/// A stored value as a tag and a payload. Floating point goes by its bits, so that NaN and infinity
/// survive JSON.
struct CodableValue: Codable {
    let value: StoredValue

    init(_ value: StoredValue) { self.value = value }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        switch try container.decode(String.self) {
        case "null": value = .null
        case "bool": value = .bool(try container.decode(Bool.self))
        case "int": value = .int(try container.decode(Int64.self))
        case "float": value = .float(Float(bitPattern: try container.decode(UInt32.self)))
        case "double": value = .double(Double(bitPattern: try container.decode(UInt64.self)))
        case "date": value = .date(Double(bitPattern: try container.decode(UInt64.self)))
        case "text": value = .text(try container.decode(String.self))
        case "data": value = .data(try container.decode([UInt8].self))
        case "uuid":
            let high = try container.decode(UInt64.self)
            value = .uuid(UUIDValue(high: high, low: try container.decode(UInt64.self)))
        case "decimal":
            let isNegative = try container.decode(Bool.self)
            let exponent = try container.decode(Int16.self)
            let digits = try container.decode([UInt8].self)
            let decimal = DecimalValue(isNegative: isNegative, exponent: exponent, digits: digits)
            guard decimal.isCanonical else { throw CodableValue.unreadable(container) }
            value = .decimal(decimal)
        case "reference": value = .reference(ObjectID(try container.decode(UInt64.self)))
        case "blob":
            let words = try (0..<4).map { _ in try container.decode(UInt64.self) }
            let length = try container.decode(UInt64.self)
            value = .blob(
                BlobReference(
                    digest: BlobDigest(words[0], words[1], words[2], words[3]),
                    length: length
                )
            )
        default: throw CodableValue.unreadable(container)
        }
    }

    private static func unreadable(_ container: any UnkeyedDecodingContainer) -> DecodingError {
        DecodingError.dataCorruptedError(
            in: container,
            debugDescription: "not a value of a cursor"
        )
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        switch value {
        case .null:
            try container.encode("null")
        case .bool(let value):
            try container.encode("bool")
            try container.encode(value)
        case .int(let value):
            try container.encode("int")
            try container.encode(value)
        case .float(let value):
            try container.encode("float")
            try container.encode(value.bitPattern)
        case .double(let value):
            try container.encode("double")
            try container.encode(value.bitPattern)
        case .date(let value):
            try container.encode("date")
            try container.encode(value.bitPattern)
        case .text(let value):
            try container.encode("text")
            try container.encode(value)
        case .data(let value):
            try container.encode("data")
            try container.encode(value)
        case .uuid(let value):
            try container.encode("uuid")
            try container.encode(value.high)
            try container.encode(value.low)
        case .decimal(let value):
            try container.encode("decimal")
            try container.encode(value.isNegative)
            try container.encode(value.exponent)
            try container.encode(value.digits)
        case .reference(let value):
            try container.encode("reference")
            try container.encode(value.rawValue)
        case .blob(let value):
            try container.encode("blob")
            let (first, second, third, fourth) = value.digest.words
            for word in [first, second, third, fourth] { try container.encode(word) }
            try container.encode(value.length)
        }
    }
}

/// A hash of text that is the same in every process, unlike `Hasher`: FNV-1a, 64 bits.
struct StableHash {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func combine(_ text: String) {
        for byte in text.utf8 { combine(byte) }
        combine(0xff)
    }

    private mutating func combine(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }
}
