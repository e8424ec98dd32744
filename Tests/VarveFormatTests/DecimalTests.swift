// The canonical form of decimals.

import Testing
import VarveBase

@Suite struct DecimalTests {
    @Test func normalizingDropsZerosAtBothEnds() {
        let value = DecimalValue(normalizing: true, digits: [0, 0, 1, 0, 2, 0, 0], exponent: -3)
        #expect(value == DecimalValue(isNegative: true, exponent: -1, digits: [1, 0, 2]))
        #expect(value?.isCanonical == true)
        #expect(DecimalValue(normalizing: true, digits: [0, 0], exponent: 99) == .zero)
        #expect(DecimalValue(normalizing: false, digits: [], exponent: .max) == .zero)
    }

    @Test func whatDoesNotFitIsRefused() {
        #expect(DecimalValue(normalizing: false, digits: [10], exponent: 0) == nil)
        #expect(DecimalValue(normalizing: false, digits: [1], exponent: 32_768) == nil)
        #expect(DecimalValue(normalizing: false, digits: [1], exponent: .min) == nil)
        #expect(DecimalValue(normalizing: false, digits: [1, 0], exponent: .max) == nil)
        let wide = [UInt8](repeating: 1, count: 40)
        #expect(DecimalValue(normalizing: false, digits: wide, exponent: 0) == nil)
        let largest = "\(UInt128.max)".utf8.map { $0 - UInt8(ascii: "0") }
        #expect(DecimalValue(normalizing: false, digits: largest, exponent: 0)?.digits == largest)
        let above = largest.dropLast() + [6]
        #expect(DecimalValue(normalizing: false, digits: Array(above), exponent: 0) == nil)
        let padded = [UInt8](repeating: 1, count: 38) + [0, 0]
        #expect(DecimalValue(normalizing: false, digits: padded, exponent: -2)?.exponent == 0)
    }

    @Test func onlyOneFormIsCanonical() {
        #expect(DecimalValue.zero.isCanonical)
        for other in [
            DecimalValue(isNegative: true, exponent: 0, digits: []),
            DecimalValue(isNegative: false, exponent: 1, digits: []),
            DecimalValue(isNegative: false, exponent: 0, digits: [0]),
            DecimalValue(isNegative: false, exponent: 0, digits: [0, 1]),
            DecimalValue(isNegative: false, exponent: 0, digits: [1, 0]),
            DecimalValue(isNegative: false, exponent: 0, digits: [1, 11, 1]),
            DecimalValue(
                isNegative: false,
                exponent: 0,
                digits: [UInt8](repeating: 4, count: 39)
            ),
        ] {
            #expect(!other.isCanonical)
        }
    }
}
