// Values of every kind, from a seed: edges often, anything sometimes.

import VarveBase
import VarveFormat
import VarveTesting

extension SeededRandom {
    enum Kind: CaseIterable {
        case null, bool, int, float, double, date, text, data, uuid, decimal, reference, blob
    }

    mutating func value(_ kind: Kind) -> StoredValue {
        switch kind {
        case .null: .null
        case .bool: .bool(Bool.random(using: &self))
        case .int: .int(int())
        case .float: .float(float())
        case .double: .double(double())
        case .date: .date(double())
        case .text: .text(text())
        case .data: .data(data())
        case .uuid: .uuid(UUIDValue(high: number(), low: number()))
        case .decimal: .decimal(decimal())
        case .reference: .reference(ObjectID(number()))
        case .blob: .blob(BlobReference(digest: digest(), length: number()))
        }
    }

    mutating func value() -> StoredValue { value(pick(Kind.allCases)) }

    mutating func row(columns: ClosedRange<Int> = 0...20) -> [StoredValue?] {
        (0..<Int.random(in: columns, using: &self)).map { _ in
            Int.random(in: 0..<6, using: &self) == 0 ? nil : value()
        }
    }

    mutating func int() -> Int64 {
        let edges: [Int64] = [
            0, 1, -1, 2, 127, 128, -128, -129, 32_767, 32_768, -32_768, -32_769,
            2_147_483_647, 2_147_483_648, -2_147_483_648, -2_147_483_649, .max, .min,
        ]
        return Bool.random(using: &self) ? pick(edges) : Int64(bitPattern: number())
    }

    mutating func double() -> Double {
        let edges: [Double] = [
            0, -0.0, 1, -1, .infinity, -.infinity, .nan, -.nan, .leastNonzeroMagnitude,
            -.leastNonzeroMagnitude, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
        ]
        return Bool.random(using: &self) ? pick(edges) : Double(bitPattern: next())
    }

    mutating func float() -> Float {
        let edges: [Float] = [0, -0.0, 1, -1, .infinity, -.infinity, .nan, -.nan]
        return Bool.random(using: &self)
            ? pick(edges) : Float(bitPattern: UInt32(truncatingIfNeeded: next()))
    }

    mutating func text() -> String {
        let parts = ["a", "b", "ab", "\0", "\u{1}", "ä", "ÿ", "€", "😀", "\u{7F}", "\u{FFFF}"]
        let count = pick([0, 1, 2, 3, 5, 100, 300])
        return (0..<count).map { _ in pick(parts) }.joined()
    }

    mutating func data() -> [UInt8] {
        let count = pick([0, 1, 2, 3, 8, 255, 256, 257, 1000])
        return (0..<count).map { _ in pick([0, 0, 1, 2, 0x7F, 0xFE, 0xFF]) }
    }

    mutating func decimal() -> DecimalValue {
        let count = pick([0, 1, 2, 3, 4, 19, 20, 37, 38, 39])
        let digits = (0..<count).map { _ in UInt8.random(in: 0...9, using: &self) }
        let exponent = pick([0, 1, -1, -2, 5, 100, -100, 32_700, -32_700])
        return DecimalValue(
            normalizing: Bool.random(using: &self),
            digits: digits,
            exponent: exponent
        ) ?? .zero
    }

    mutating func digest() -> BlobDigest {
        BlobDigest(next(), number(), number(), next())
    }
}

/// Equal bit for bit: NaN equals itself, -0 does not equal 0.
func same(_ left: StoredValue?, _ right: StoredValue?) -> Bool {
    switch (left, right) {
    case (.double(let left), .double(let right)), (.date(let left), .date(let right)):
        left.bitPattern == right.bitPattern
    case (.float(let left), .float(let right)): left.bitPattern == right.bitPattern
    default: left == right
    }
}
