// The canonical form of a decimal number: equal numbers have equal parts.

extension DecimalValue {
    /// The most digits a decimal keeps. A number of 38 digits fits 127 bits; of those of 39 digits,
    /// the ones that fit 128 bits are kept, as `Foundation.Decimal` does.
    public static let digitsMax = 39
    /// The digits of the largest number of 128 bits.
    private static let largest: [UInt8] = [
        3, 4, 0, 2, 8, 2, 3, 6, 6, 9, 2, 0, 9, 3, 8, 4, 6, 3, 4, 6,
        3, 3, 7, 4, 6, 0, 7, 4, 3, 1, 7, 6, 8, 2, 1, 1, 4, 5, 5,
    ]

    /// Zero in its canonical form.
    public static var zero: DecimalValue {
        DecimalValue(isNegative: false, exponent: 0, digits: [])
    }

    /// Whether the parts are in the one form that equal numbers share.
    public var isCanonical: Bool {
        guard let first = digits.first, let last = digits.last else {
            return !isNegative && exponent == 0
        }
        return first != 0 && last != 0 && digits.allSatisfy { $0 <= 9 } && Self.fits(digits)
    }

    /// Whether digits without zeros at their front fit 128 bits as a number.
    private static func fits(_ digits: some Collection<UInt8>) -> Bool {
        if digits.count != digitsMax { return digits.count < digitsMax }
        return !largest.lexicographicallyPrecedes(digits)
    }

    /// Brings parts into canonical form: drops zero digits at both ends, moves the exponent.
    /// Returns nil when digits that do not fit 128 bits, or an exponent outside 16 bits, remain, or
    /// when a digit is above 9.
    public init?(normalizing isNegative: Bool, digits: [UInt8], exponent: Int) {
        guard digits.allSatisfy({ $0 <= 9 }) else { return nil }
        guard let first = digits.firstIndex(where: { $0 != 0 }),
            let last = digits.lastIndex(where: { $0 != 0 })
        else {
            self = .zero
            return
        }
        let (moved, overflow) = exponent.addingReportingOverflow(digits.count - 1 - last)
        guard !overflow, let moved = Int16(exactly: moved), Self.fits(digits[first...last])
        else {
            return nil
        }
        self.init(isNegative: isNegative, exponent: moved, digits: Array(digits[first...last]))
    }
}
