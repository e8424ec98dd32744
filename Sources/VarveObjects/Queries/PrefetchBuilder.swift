// Reads the list of relationships that a request prefetches.

/// Takes one relationship, a tuple of them, or several lines of either.
///
/// Not a closure that returns a parameter pack: an empty pack is `Void`, which every closure of one
/// expression can become, so prefetching an attribute would compile and do nothing.
@resultBuilder public enum PrefetchBuilder {
    /// One relationship.
    public static func buildExpression(_ path: some PrefetchableColumn) -> [PrefetchPath] {
        [path.prefetchPath]
    }

    /// Several relationships: `($0.picture, $0.tags)`.
    public static func buildExpression<each Relationship: PrefetchableColumn>(
        _ paths: (repeat each Relationship)
    ) -> [PrefetchPath] {
        var result: [PrefetchPath] = []
        for path in repeat each paths { result.append(path.prefetchPath) }
        return result
    }

    /// All lines together; at least one.
    public static func buildBlock(
        _ first: [PrefetchPath],
        _ further: [PrefetchPath]...
    ) -> [PrefetchPath] {
        first + further.flatMap(\.self)
    }
}
