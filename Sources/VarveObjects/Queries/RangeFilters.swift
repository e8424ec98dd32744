// Filters over ranges of values: one place in an index each.

import VarveRecords

extension Column {
    fileprivate func within(_ range: ValueRange) -> TypedPredicate<Root> {
        TypedPredicate(.isWithin(path, range))
    }
}

/// Ranges of values. NaN stands above all numbers, so it is in ranges without an upper bound.
extension Column where Value: OrderedValue & Comparable {
    /// In the range: not below its first value, not above its last.
    public func isIn(_ range: ClosedRange<Value>) -> TypedPredicate<Root> {
        within(ValueRange(from: range.lowerBound.stored, through: range.upperBound.stored))
    }

    /// In the range: not below its first value, below its bound.
    public func isIn(_ range: Range<Value>) -> TypedPredicate<Root> {
        within(ValueRange(from: range.lowerBound.stored, upTo: range.upperBound.stored))
    }

    /// In the range: not below the value.
    public func isIn(_ range: PartialRangeFrom<Value>) -> TypedPredicate<Root> {
        within(ValueRange(from: range.lowerBound.stored, through: nil))
    }

    /// In the range: not above the value.
    public func isIn(_ range: PartialRangeThrough<Value>) -> TypedPredicate<Root> {
        within(ValueRange(from: nil, through: range.upperBound.stored))
    }

    /// In the range: below the value.
    public func isIn(_ range: PartialRangeUpTo<Value>) -> TypedPredicate<Root> {
        within(ValueRange(from: nil, upTo: range.upperBound.stored))
    }
}

/// Ranges of optional values.
extension Column {
    /// In the range: not below its first value, not above its last; nil is not.
    public func isIn<Wrapped: OrderedValue>(
        _ range: ClosedRange<Wrapped>
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        within(ValueRange(from: range.lowerBound.stored, through: range.upperBound.stored))
    }

    /// In the range: not below its first value, below its bound; nil is not.
    public func isIn<Wrapped: OrderedValue>(
        _ range: Range<Wrapped>
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        within(ValueRange(from: range.lowerBound.stored, upTo: range.upperBound.stored))
    }

    /// In the range: not below the value; nil is not.
    public func isIn<Wrapped: OrderedValue>(
        _ range: PartialRangeFrom<Wrapped>
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        within(ValueRange(from: range.lowerBound.stored, through: nil))
    }

    /// In the range: not above the value; nil is not.
    public func isIn<Wrapped: OrderedValue>(
        _ range: PartialRangeThrough<Wrapped>
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        within(ValueRange(from: nil, through: range.upperBound.stored))
    }

    /// In the range: below the value; nil is not.
    public func isIn<Wrapped: OrderedValue>(
        _ range: PartialRangeUpTo<Wrapped>
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        within(ValueRange(from: nil, upTo: range.upperBound.stored))
    }
}
