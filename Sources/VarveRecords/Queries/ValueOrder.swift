// The one total order of stored values, used by filters, sorts in memory and cursors.
//
// Invariants
// - It is the order of the index keys: null first; NaN last and equal to itself; -0 equal to +0;
//   text and data by bytes; UUIDs, blobs by bytes; decimals by number.
// - Values of different types order by type; filters refuse to compare them before it comes to
//   that.

import VarveBase

/// Compares stored values.
enum ValueOrder {
    /// Below zero, zero or above zero as `left` is lower than, equal to or higher than `right`.
    static func compare(_ left: StoredValue, _ right: StoredValue) -> Int {
        switch (left, right) {
        case (.null, .null): 0
        case (.bool(let a), .bool(let b)): order(a ? 1 : 0, b ? 1 : 0)
        case (.int(let a), .int(let b)): order(a, b)
        case (.float(let a), .float(let b)): floats(Double(a), Double(b))
        case (.double(let a), .double(let b)), (.date(let a), .date(let b)): floats(a, b)
        case (.text(let a), .text(let b)): texts(a, b)
        case (.data(let a), .data(let b)): bytes(a, b)
        case (.uuid(let a), .uuid(let b)): order(a, b)
        case (.decimal(let a), .decimal(let b)): decimals(a, b)
        case (.reference(let a), .reference(let b)): order(a, b)
        case (.blob(let a), .blob(let b)):
            a.digest == b.digest ? order(a.length, b.length) : order(a.digest, b.digest)
        default: order(rank(left), rank(right))
        }
    }

    /// Whether two values are the same to a filter.
    static func equal(_ left: StoredValue, _ right: StoredValue) -> Bool {
        compare(left, right) == 0
    }

    private static func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
        left < right ? -1 : (right < left ? 1 : 0)
    }

    /// Orders floating-point numbers with NaN last.
    static func floats(_ left: Double, _ right: Double) -> Int {
        if left < right { return -1 }
        if left > right { return 1 }
        if left == right { return 0 }
        return order(left.isNaN ? 1 : 0, right.isNaN ? 1 : 0)
    }

    /// Orders texts by the bytes of their UTF-8 form. `String`'s own `<` compares normalized forms.
    static func texts(_ left: String, _ right: String) -> Int {
        var (left, right) = (left, right)
        return left.withUTF8Bytes { first in
            right.withUTF8Bytes { second in
                let shared = min(first.count, second.count)
                var index = 0
                while index < shared {
                    if first[index] != second[index] {
                        return first[index] < second[index] ? -1 : 1
                    }
                    index += 1
                }
                return order(first.count, second.count)
            }
        }
    }

    /// Orders byte sequences, shorter before longer.
    static func bytes(_ left: [UInt8], _ right: [UInt8]) -> Int {
        let shared = min(left.count, right.count)
        var index = 0
        while index < shared {
            if left[index] != right[index] { return left[index] < right[index] ? -1 : 1 }
            index += 1
        }
        return order(left.count, right.count)
    }

    private static func decimals(_ left: DecimalValue, _ right: DecimalValue) -> Int {
        if left.digits.isEmpty || right.digits.isEmpty {
            return order(signum(left), signum(right))
        }
        if left.isNegative != right.isNegative { return left.isNegative ? -1 : 1 }
        let sign = left.isNegative ? -1 : 1
        let leftPlace = Int(left.exponent) + left.digits.count
        let rightPlace = Int(right.exponent) + right.digits.count
        if leftPlace != rightPlace { return sign * order(leftPlace, rightPlace) }
        return sign * bytes(left.digits, right.digits)
    }

    private static func signum(_ value: DecimalValue) -> Int {
        value.digits.isEmpty ? 0 : (value.isNegative ? -1 : 1)
    }

    private static func rank(_ value: StoredValue) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .int: 2
        case .float: 3
        case .double: 4
        case .date: 5
        case .text: 6
        case .data: 7
        case .uuid: 8
        case .decimal: 9
        case .reference: 10
        case .blob: 11
        }
    }
}
