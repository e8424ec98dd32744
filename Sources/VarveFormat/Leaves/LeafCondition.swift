// What a filter asks of the columns of a row: packed leaves answer it for many rows at once.
//
// Invariants
// - An answer has two sides: rows that pass for certain, and rows that may pass. A condition that a
//   leaf cannot answer is neither: no row passes for certain, and every row may pass.
// - The order of numbers is that of filters and index keys: -0 is +0, NaN is above all others and
//   equal to itself.

public import VarveBase

/// What a filter asks of a row.
public indirect enum LeafCondition: Sendable {
    /// Every row passes, or none.
    case constant(Bool)
    /// Only the row itself can tell.
    case unknown
    /// One column is asked.
    case column(ColumnCondition)
    /// Rows pass that do not pass something.
    case not(LeafCondition)
    /// Rows pass that pass each of these.
    case and([LeafCondition])
    /// Rows pass that pass one of these.
    case or([LeafCondition])
}

/// What a filter asks of one column.
public struct ColumnCondition: Sendable {
    /// Which values pass.
    public enum Values: Sendable {
        /// All, or none.
        case any(Bool)
        /// Booleans that are equal.
        case bool(Bool)
        /// Integers of a range; nil: none.
        case integers(ClosedRange<Int64>?)
        /// 64-bit floats of a range of their ranks (`rank(_:)`); nil: none.
        case doubles(ClosedRange<Int64>?)
        /// Dates, as `doubles`.
        case dates(ClosedRange<Int64>?)
        /// References to one object.
        case reference(ObjectID)
        /// Texts, by the bytes of their UTF-8 form, which nobody checked.
        case texts(@Sendable (Span<UInt8>) -> Bool)
    }

    /// The column.
    public let column: ColumnID
    /// Which values pass.
    public let values: Values
    /// The opposite: values pass that are not among `values`.
    public let isNegated: Bool
    /// Whether a row without a value passes.
    public let passesNull: Bool
    /// Whether a row passes that does not store the column.
    public let passesAbsent: Bool

    /// Joins the parts.
    public init(
        _ column: ColumnID,
        _ values: Values,
        isNegated: Bool = false,
        passesNull: Bool,
        passesAbsent: Bool
    ) {
        self.column = column
        self.values = values
        self.isNegated = isNegated
        self.passesNull = passesNull
        self.passesAbsent = passesAbsent
    }

    /// The place of a number in the order of all numbers.
    @inline(__always)
    public static func rank(_ number: Double) -> Int64 {
        if number.isNaN { return .max }
        // -0 is +0.
        let bits = Int64(bitPattern: (number == 0 ? 0 : number).bitPattern)
        return bits ^ (bits &>> 63 & .max)
    }
}

/// Which of at most 64 rows pass; the lowest bit is the first row.
public struct LeafAnswer: Hashable, Sendable {
    /// Rows that pass for certain.
    public var passes: UInt64
    /// Rows that pass or may pass.
    public var mayPass: UInt64

    @inline(__always)
    init(_ passes: UInt64, mayPass: UInt64) {
        self.passes = passes
        self.mayPass = mayPass
    }

    /// Nothing is left open.
    @inline(__always)
    init(exact: UInt64) {
        passes = exact
        mayPass = exact
    }
}
