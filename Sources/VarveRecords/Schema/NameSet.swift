// The names of a scope. An opening looks at those of every entity.

/// A set of names. As long as they are few, they are looked through one by one: that takes less
/// time than to hash one.
struct NameSet {
    private var few: [String] = []
    private var many: Set<String> = []
    private static let fewMax = 24

    init(expected: Int = 0) { few.reserveCapacity(min(expected, Self.fewMax)) }

    var count: Int { many.isEmpty ? few.count : many.count }

    /// - Complexity: O(1): at most 24 names are compared.
    func contains(_ name: String) -> Bool {
        many.isEmpty ? few.contains(name) : many.contains(name)
    }

    /// - Returns: false if the name was there.
    /// - Complexity: O(1), amortised.
    mutating func insert(_ name: String) -> Bool {
        if !many.isEmpty { return many.insert(name).inserted }
        if few.contains(name) { return false }
        if few.count < Self.fewMax {
            few.append(name)
        } else {
            many = Set(few)
            many.insert(name)
        }
        return true
    }
}
