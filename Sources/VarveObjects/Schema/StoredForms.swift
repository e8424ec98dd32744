// Which stored values a property can have: an enum, a converted or a coded one does not have all
// that its stored type has.
//
// Invariants
// - What comes from outside by name, without the property's Swift type, is asked here.

import Foundation
import VarveBase

enum StoredForms {
    /// Types of which each value of the stored type is one.
    private static let plain: Set<ObjectIdentifier> = Set(
        ([
            Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self,
            UInt8.self, UInt16.self, UInt32.self, UInt64.self, Float.self, Double.self, Date.self,
            String.self, Data.self, UUID.self, Decimal.self, URL.self, Blob.self,
        ] as [Any.Type]).map { ObjectIdentifier($0) }
    )

    /// Whether a stored value is one of a type; nil: all are.
    static func check<Value: StorableValue>(
        of type: Value.Type
    ) -> (@Sendable (StoredValue) -> Bool)? {
        if plain.contains(ObjectIdentifier(unwrapped(type))) { return nil }
        return { Value(stored: $0) != nil }
    }

    /// What an optional wraps.
    static func unwrapped(_ type: Any.Type) -> Any.Type {
        (type as? any WrappingType.Type)?.wrappedType ?? type
    }
}

/// Optionals, whatever they wrap.
private protocol WrappingType {
    static var wrappedType: Any.Type { get }
}

extension Optional: WrappingType {
    fileprivate static var wrappedType: Any.Type { Wrapped.self }
}
