// Codable values, arrays and dictionaries as attributes: kept as JSON text.
//
// Invariants
// - Equal values have equal texts: keys are sorted, and numbers are written in one way. What an app
//   encodes in any order (a set) is the exception.
// - The text is JSON that any tool reads. Its form is the app's: a field that is added must be
//   optional or have a default in `init(from:)`, or older rows cannot be read.

import Foundation
public import VarveBase
public import VarveRecords

/// A Codable type of the app's own that an attribute can have, kept as JSON text.
///
/// ```swift
/// struct Settings: StoredCodable {
///     var theme = "light"
///     var sizes: [String: Double] = [:]
///     static let zeroValue = Settings()
/// }
/// ```
///
/// A request can compare it as a whole and cannot look into it. Values whose parts are filtered,
/// sorted or indexed are composites: see `Composite`.
///
/// Equal values must be encoded equally: a `Set` inside, or a dictionary whose keys are no texts
/// and no integers, is encoded in any order. Encode it sorted, in an `encode(to:)` of the type's
/// own; else an equal value that is set again is an edit, and no request finds it for sure.
public protocol StoredCodable: Codable, FilterableValue {}

extension StoredCodable {
    /// Text.
    public static var attributeType: AttributeType { .text }
    /// Why it cannot be encoded.
    public var _refusal: String? { JSONText.refusal(self) }
    /// The JSON text.
    public var stored: StoredValue { JSONText.stored(self) }
    /// Nil if the text is no such value.
    public init?(stored: StoredValue) {
        guard let value = JSONText.value(Self.self, stored) else { return nil }
        self = value
    }
}

extension Array: StorableValue where Element: StorableValue & Codable {
    /// Text.
    public static var attributeType: AttributeType { .text }
    /// Empty.
    public static var zeroValue: [Element] { [] }
    /// Why it cannot be encoded.
    public var _refusal: String? { JSONText.refusal(self) }
    /// The JSON text.
    public var stored: StoredValue { JSONText.stored(self) }
    /// Nil if the text is no such array.
    public init?(stored: StoredValue) {
        guard let value = JSONText.value(Self.self, stored) else { return nil }
        self = value
    }
}

extension Array: FilterableValue where Element: FilterableValue & Codable {}

extension Dictionary: StorableValue where Key == String, Value: StorableValue & Codable {
    /// Text.
    public static var attributeType: AttributeType { .text }
    /// Empty.
    public static var zeroValue: [String: Value] { [:] }
    /// Why it cannot be encoded.
    public var _refusal: String? { JSONText.refusal(self) }
    /// The JSON text.
    public var stored: StoredValue { JSONText.stored(self) }
    /// Nil if the text is no such dictionary.
    public init?(stored: StoredValue) {
        guard let value = JSONText.value(Self.self, stored) else { return nil }
        self = value
    }
}

extension Dictionary: FilterableValue where Key == String, Value: FilterableValue & Codable {}

/// Values as JSON texts.
private enum JSONText {
    private static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func stored(_ value: some Encodable) -> StoredValue {
        // What cannot be encoded was refused before.
        (try? encode(value)).map { .text($0) } ?? .null
    }

    static func refusal(_ value: some Encodable) -> String? {
        do {
            let text = try encode(value)
            // Foundation writes a decimal that is not a number as it describes it.
            if text.contains("NaN"), !isJSON(text) {
                return "cannot be written as JSON: a decimal in it is not a number"
            }
            return nil
        } catch let EncodingError.invalidValue(_, context) {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            return "cannot be written as JSON"
                + (path.isEmpty ? "" : " (at \(path))") + ": \(context.debugDescription)"
        } catch {
            return "cannot be written as JSON: \(error)"
        }
    }

    private static func isJSON(_ text: String) -> Bool {
        let found = try? JSONSerialization.jsonObject(
            with: Data(text.utf8),
            options: .fragmentsAllowed
        )
        return found != nil
    }

    static func value<Value: Decodable>(_ type: Value.Type, _ stored: StoredValue) -> Value? {
        guard case .text(let text) = stored else { return nil }
        return try? JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
