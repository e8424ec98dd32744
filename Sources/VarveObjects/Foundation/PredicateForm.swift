// What an expression of a `#Predicate` means to the store, while it is being translated.
//
// Invariants
// - A form says what Foundation's evaluation would give for every object. Where it could say
//   something else, or the evaluation could fail, the expression is refused by name.

import VarveBase
import VarveRecords

/// The filter of the records layer; Foundation has a `Predicate` of its own.
typealias RecordFilter = VarveRecords.Predicate

/// A translated expression.
indirect enum PredicateForm {
    /// True or false.
    case filter(RecordFilter)
    /// Nil where `present` is not true, else what the form says.
    case optional(present: RecordFilter, PredicateForm)
    /// What the form says where `present` is true, else the value.
    case choice(present: RecordFilter, PredicateForm, StoredValue)
    /// A stored value; nil is null.
    case value(PredicateValue)
    /// A stored value, and what stands for it where it is nil.
    case coalesced(PredicateValue, StoredValue)
    /// The object of the request, or one that to-one relationships lead to.
    case object([String], any ManagedObject.Type)
    /// The objects of a to-many relationship that pass a filter.
    case many(PropertyPath, RecordFilter, any ManagedObject.Type)
    /// How many these are.
    case count(PropertyPath, RecordFilter)
    /// A value that was given; `stored` if it is one that a store has.
    case constant(Any, stored: StoredValue?)
    /// A range that was given.
    case range(ValueRange)
}

/// A stored attribute, seen from the request's entity.
struct PredicateValue {
    var path: PropertyPath
    var type: AttributeType
    /// Whether the expression is a `String`: an enum is stored as one, too.
    var isString = false

    /// What is not a number, as the attribute stores it; nil: it stores no such thing.
    var notANumber: StoredValue? {
        switch type {
        case .double: .double(.nan)
        case .float: .float(.nan)
        case .date: .date(.nan)
        default: nil
        }
    }

    var infinity: StoredValue? {
        switch type {
        case .double: .double(.infinity)
        case .float: .float(.infinity)
        case .date: .date(.infinity)
        default: nil
        }
    }

    var isNil: RecordFilter { .compare(path, .equal, .null) }
    var isThere: RecordFilter { .compare(path, .notEqual, .null) }

    /// In Swift not-a-number equals nothing and has no place in an order.
    func compare(_ comparison: Comparison, _ constant: StoredValue) -> RecordFilter {
        if constant.isNotANumber { return comparison == .notEqual ? .always : .never }
        switch comparison {
        case .greater, .greaterOrEqual:
            let above = RecordFilter.compare(path, comparison, constant)
            guard let infinity else { return above }
            return .and([above, .compare(path, .lessOrEqual, infinity)])
        default: return .compare(path, comparison, constant)
        }
    }

    func compare(_ comparison: Comparison, _ other: PredicateValue) -> RecordFilter {
        if comparison == .notEqual { return .not(compare(.equal, other)) }
        let both = RecordFilter.compareProperties(path, comparison, other.path)
        guard let notANumber, let otherNot = other.notANumber else { return both }
        return .and([
            both, .compare(path, .notEqual, notANumber), .compare(other.path, .notEqual, otherNot),
        ])
    }

    func isWithin(_ range: ValueRange) -> RecordFilter {
        var range = range
        if let lower = range.lower, lower.isNotANumber { return .never }
        if let upper = range.upper, upper.isNotANumber { return .never }
        if range.upper == nil, let infinity {
            (range.upper, range.includesUpper) = (infinity, true)
        }
        return .isWithin(path, range)
    }
}

extension StoredValue {
    /// Whether it is a floating-point value that is not a number.
    var isNotANumber: Bool {
        switch self {
        case .double(let number), .date(let number): number.isNaN
        case .float(let number): number.isNaN
        default: false
        }
    }

    /// The stored form of a value of any type; nil: a store has no such value.
    static func of<Value>(_ value: Value) -> StoredValue? {
        if let optional = value as? any OptionalValue {
            guard let wrapped = optional.wrappedValue else { return .null }
            return ofAny(wrapped)
        }
        return ofAny(value)
    }

    private static func ofAny(_ value: Any) -> StoredValue? {
        if let value = value as? any StorableValue {
            // It would be stored as null, and is not nil.
            return value._refusal == nil ? value.stored : nil
        }
        if let id = value as? any ObjectReference { return .reference(id.referenced) }
        if let object = value as? any ManagedObject { return .reference(object.storage.object) }
        return nil
    }
}

/// Optionals, whatever they wrap.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrappedValue: Any? { map { $0 } }
}

/// IDs of objects.
private protocol ObjectReference {
    var referenced: ObjectID { get }
}

extension ManagedObjectID: ObjectReference {
    fileprivate var referenced: ObjectID { object }
}

extension TypedObjectID: ObjectReference {
    fileprivate var referenced: ObjectID { objectID.object }
}

/// Ranges of values that a store has.
protocol StoredRange {
    var valueRange: ValueRange { get }
}

extension Range: StoredRange where Bound: StorableValue {
    var valueRange: ValueRange { ValueRange(from: lowerBound.stored, upTo: upperBound.stored) }
}
extension ClosedRange: StoredRange where Bound: StorableValue {
    var valueRange: ValueRange { ValueRange(from: lowerBound.stored, through: upperBound.stored) }
}
extension PartialRangeFrom: StoredRange where Bound: StorableValue {
    var valueRange: ValueRange { ValueRange(from: lowerBound.stored, through: nil) }
}
extension PartialRangeThrough: StoredRange where Bound: StorableValue {
    var valueRange: ValueRange { ValueRange(from: nil, through: upperBound.stored) }
}
extension PartialRangeUpTo: StoredRange where Bound: StorableValue {
    var valueRange: ValueRange { ValueRange(from: nil, upTo: upperBound.stored) }
}
