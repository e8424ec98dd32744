// The canonical form of a decimal number: equal numbers have equal parts.

extension DecimalValue {
    /// The most digits a decimal keeps; a number of 38 digits fits 127 bits.
    public static let digitsMax = 38

    /// Zero in its canonical form.
    public static var zero: DecimalValue {
        DecimalValue(isNegative: false, exponent: 0, digits: [])
    }

    /// Whether the parts are in the one form that equal numbers share.
    public var isCanonical: Bool {
        guard let first = digits.first, let last = digits.last else {
            return !isNegative && exponent == 0
        }
        return first != 0 && last != 0 && digits.count <= Self.digitsMax
            && digits.allSatisfy { $0 <= 9 }
    }

    /// Brings parts into canonical form: drops zero digits at both ends, moves the exponent.
    /// Returns nil when more than 38 digits, or an exponent outside 16 bits, remain, or when a
    /// digit is above 9.
    public init?(normalizing isNegative: Bool, digits: [UInt8], exponent: Int) {
        guard digits.allSatisfy({ $0 <= 9 }) else { return nil }
        guard let first = digits.firstIndex(where: { $0 != 0 }),
            let last = digits.lastIndex(where: { $0 != 0 })
        else {
            self = .zero
            return
        }
        let (moved, overflow) = exponent.addingReportingOverflow(digits.count - 1 - last)
        guard !overflow, let moved = Int16(exactly: moved), last - first < Self.digitsMax else {
            return nil
        }
        self.init(isNegative: isNegative, exponent: moved, digits: Array(digits[first...last]))
    }
}
