// Medians, ratios and how they are written.

/// What the rounds of one measurement gave.
public struct Summary: Equatable, Sendable {
    /// The middle value; of an even number of values the mean of the two in the middle.
    public var median: Double
    /// The least value.
    public var min: Double
    /// The greatest value.
    public var max: Double

    /// Summarises values; nil when there are none or one is not a number.
    public init?(_ values: [Double]) {
        guard let first = values.first, values.allSatisfy({ $0.isFinite }) else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        median =
            sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
        min = sorted.first ?? first
        max = sorted.last ?? first
    }
}

/// Which way of a number is the good one.
public enum Preference: String, Codable, Sendable {
    /// Times and sizes.
    case less
    /// Rates.
    case more
}

/// How many times better Varve is than a peer: over 1 = Varve is better. nil when one value is
/// not above zero.
public func ratio(varve: Double, peer: Double, better: Preference) -> Double? {
    guard varve > 0, peer > 0, varve.isFinite, peer.isFinite else { return nil }
    return better == .less ? peer / varve : varve / peer
}

/// The value at a share of sorted values (0.5 = median, 0.99); nil when there are none.
public func percentile(_ share: Double, ofSorted values: [Double]) -> Double? {
    guard !values.isEmpty, share >= 0, share <= 1 else { return nil }
    let index = Int((Double(values.count - 1) * share).rounded())
    return values[index]
}
