// How numbers are written for people.

import Foundation

extension Int {
    /// With a comma between groups of three digits.
    package var grouped: String {
        let digits = String(magnitude)
        var groups: [Substring] = []
        var rest = digits[...]
        while rest.count > 3 {
            groups.insert(rest.suffix(3), at: 0)
            rest = rest.dropLast(3)
        }
        groups.insert(rest, at: 0)
        return (self < 0 ? "-" : "") + groups.joined(separator: ",")
    }

    /// As a number of MB (1,000,000 bytes) with one digit after the point.
    var megabytes: String {
        let tenths = Int((Double(magnitude) / 100_000).rounded())
        return (self < 0 ? "-" : "") + "\((tenths / 10).grouped).\(tenths % 10) MB"
    }

    /// As kB (1,000 bytes).
    var kilobytes: String { "\((Double(self) / 1_000).fixed(0)) kB" }
}

extension Double {
    /// With exactly this many digits after the point.
    func fixed(_ digits: Int) -> String { String(format: "%.\(digits)f", self) }
}

extension Duration {
    /// In milliseconds.
    package var milliseconds: Double {
        Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15
    }
}

extension String {
    func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: Swift.max(0, width - count)) + self
    }

    func rightPadded(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, width - count))
    }
}
