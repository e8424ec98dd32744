// A logarithmic axis: from numbers to places, and where its marks stand.

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// Maps positive numbers to a range of places so that equal ratios are equal distances.
struct LogAxis {
    /// The ends of the axis.
    let bounds: ClosedRange<Double>
    private let start: Double
    private let end: Double

    /// An axis from one place to another (the second may be the smaller) whose ends lie on powers
    /// of ten outside the values. nil when no value is above zero.
    init?(_ values: some Sequence<Double>, from start: Double, to end: Double) {
        let positive = values.filter { $0 > 0 && $0.isFinite }
        guard let least = positive.min(), let greatest = positive.max() else { return nil }
        let lower = pow(10, log10(least).rounded(.down))
        let upper = pow(10, log10(greatest).rounded(.up))
        bounds = lower...max(upper, lower * 10)
        self.start = start
        self.end = end
    }

    /// The place of a number; what lies outside is put on the end.
    func place(_ value: Double) -> Double {
        let inside = min(max(value, bounds.lowerBound), bounds.upperBound)
        let share =
            log10(inside / bounds.lowerBound) / log10(bounds.upperBound / bounds.lowerBound)
        return start + share * (end - start)
    }

    /// The powers of ten on the axis.
    var marks: [Double] {
        var marks: [Double] = []
        var exponent = log10(bounds.lowerBound).rounded()
        while pow(10, exponent) <= bounds.upperBound * 1.000_001 {
            marks.append(pow(10, exponent))
            exponent += 1
        }
        return marks
    }
}
