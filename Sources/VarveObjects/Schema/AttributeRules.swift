// Rules for the values of one attribute, checked when they are saved.
//
// Invariants
// - A rule sees stored values, so that objects, batches and imports are judged alike. Null breaks
//   no rule: whether a value may be missing, the attribute's type says.
// - A rule gives a reason without the value: errors end in logs.

public import Foundation
import Synchronization
import VarveBase

/// One rule for the values of an attribute: a range, a length, a pattern, or a check of the app's
/// own.
///
/// Written inside `@Attribute`: `@Attribute(.length(1...80)) var title: String = ""`.
public struct AttributeRule<Value: StorableValue>: Sendable {
    /// Why a value must not be saved, as the end of a sentence; nil: it may.
    let reason: @Sendable (StoredValue) -> String?

    private init(stored reason: @escaping @Sendable (StoredValue) -> String?) {
        self.reason = reason
    }

    /// A value that cannot be decoded is told of where it is read.
    private init(_ reason: @escaping @Sendable (Value) -> String?) {
        self.init(stored: { stored in Value(stored: stored).flatMap(reason) })
    }

    /// The app's own check of one value. It may be called on any thread.
    /// - Parameters:
    ///   - requirement: what a value must be, as the end of "must be …": it stands in the error.
    ///   - isValid: whether a value may be saved.
    public static func check(
        _ requirement: String,
        _ isValid: @escaping @Sendable (Value) -> Bool
    ) -> AttributeRule {
        AttributeRule { value in isValid(value) ? nil : "must be \(requirement)" }
    }
}

extension AttributeRule where Value: Comparable {
    /// Values within a range: `.range(0...5)`, `.range(1...)`. A NaN is in none.
    /// - Parameter range: the values that may be saved.
    public static func range<Range: RangeExpression & Sendable>(
        _ range: Range
    ) -> AttributeRule where Range.Bound == Value {
        let text = describe(range)
        return AttributeRule { value in range.contains(value) ? nil : "must be \(text)" }
    }
}

extension AttributeRule where Value == String {
    /// Texts with so many characters (`Character`, as `count` counts them): `.length(1...80)`.
    /// - Parameter range: how many characters may be saved.
    /// - Complexity: O(length) for each value that is saved.
    public static func length<Range: RangeExpression & Sendable>(
        _ range: Range
    ) -> AttributeRule where Range.Bound == Int {
        let text = describeCount(range, "character")
        return AttributeRule { value in
            range.contains(value.count) ? nil : "must have \(text)"
        }
    }

    /// Texts that a regular expression matches as a whole: `.pattern(/[A-Z]{2}/)`.
    /// - Parameter regex: made once, when the first value is saved.
    public static func pattern<Pattern: RegexComponent & SendableMetatype>(
        _ regex: @autoclosure @escaping @Sendable () -> Pattern
    ) -> AttributeRule {
        let pattern = CompiledPattern(regex)
        return AttributeRule { value in
            pattern.matches(value) ? nil : "does not have the form that its pattern asks for"
        }
    }
}

extension AttributeRule where Value == Data {
    /// Data with so many bytes.
    /// - Parameter range: how many bytes may be saved.
    public static func length<Range: RangeExpression & Sendable>(
        _ range: Range
    ) -> AttributeRule where Range.Bound == Int {
        let text = describeCount(range, "byte")
        return AttributeRule { value in
            range.contains(value.count) ? nil : "must have \(text)"
        }
    }
}

extension AttributeRule where Value == Blob {
    /// Blobs with so many bytes. No byte is read for it.
    /// - Parameter range: how many bytes may be saved.
    public static func length<Range: RangeExpression & Sendable>(
        _ range: Range
    ) -> AttributeRule where Range.Bound == Int {
        let text = describeCount(range, "byte")
        return AttributeRule(stored: { stored in
            guard case .blob(let reference) = stored else { return nil }
            let count = Int(clamping: reference.length)
            return range.contains(count) ? nil : "must have \(text)"
        })
    }
}

/// The rules of one attribute. What `@Attribute` writes into `Columns`.
public struct AttributeRules: Sendable {
    private let reasons: [@Sendable (StoredValue) -> String?]

    /// Rules for values of a type, all of which must hold.
    /// - Parameters:
    ///   - type: the attribute's type without its optional.
    ///   - rules: the rules, told in this order.
    public static func of<Value: StorableValue>(
        _ type: Value.Type,
        _ rules: AttributeRule<Value>...
    ) -> AttributeRules {
        AttributeRules(reasons: rules.map(\.reason))
    }

    /// Why a value must not be saved, one reason for each rule that it breaks.
    func failures(_ value: StoredValue) -> [String] {
        if value == .null { return [] }
        return reasons.compactMap { $0(value) }
    }
}

/// A regular expression that several threads use, one at a time: it is not Sendable.
private final class CompiledPattern<Pattern: RegexComponent & SendableMetatype>: Sendable {
    private let make: @Sendable () -> Pattern
    private let made = Mutex<Pattern?>(nil)

    init(_ make: @escaping @Sendable () -> Pattern) { self.make = make }

    func matches(_ text: String) -> Bool {
        made.withLock { made in
            let pattern = made ?? make()
            made = pattern
            return text.wholeMatch(of: pattern) != nil
        }
    }
}

/// "from 0 to 5", "at least 1".
private func describe<Range: RangeExpression>(_ range: Range) -> String {
    switch range {
    case let range as ClosedRange<Range.Bound>:
        "from \(range.lowerBound) to \(range.upperBound)"
    case let range as Swift.Range<Range.Bound>:
        "at least \(range.lowerBound) and less than \(range.upperBound)"
    case let range as PartialRangeFrom<Range.Bound>: "at least \(range.lowerBound)"
    case let range as PartialRangeThrough<Range.Bound>: "at most \(range.upperBound)"
    case let range as PartialRangeUpTo<Range.Bound>: "less than \(range.upperBound)"
    default: "in \(range)"
    }
}

/// "1 to 80 characters", "at least 1 byte".
func describeCount<Range: RangeExpression>(_ range: Range, _ unit: String) -> String
where Range.Bound == Int {
    func counted(_ count: Int) -> String { count == 1 ? "1 \(unit)" : "\(count) \(unit)s" }
    return switch range {
    case let range as ClosedRange<Int> where range.lowerBound == range.upperBound:
        counted(range.lowerBound)
    case let range as ClosedRange<Int>:
        "\(range.lowerBound) to \(counted(range.upperBound))"
    case let range as PartialRangeFrom<Int>: "at least \(counted(range.lowerBound))"
    case let range as PartialRangeThrough<Int>: "at most \(counted(range.upperBound))"
    case let range as PartialRangeUpTo<Int>: "less than \(counted(range.upperBound))"
    default: "\(describe(range)) \(unit)s"
    }
}
