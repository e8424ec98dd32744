// A filter with its names resolved: what rows and unsaved objects are tested with.
//
// Invariants
// - Semantics are those at the top of Predicate.swift; comparisons use ValueOrder and nothing else.
// - Compiling reports every misuse; evaluating can only fail by reading.

public import VarveBase

/// A filter over one entity, ready to be evaluated.
public struct CompiledPredicate: Sendable {
    /// The entity it tests.
    public let entity: RecordEntity

    let root: PredicateNode

    /// Resolves the names of `predicate`.
    ///
    /// Throws `unknownProperty` or `unsupportedPredicate`.
    public init(
        _ predicate: Predicate,
        entity: RecordEntity,
        schema: RecordSchema
    ) throws(RecordError) {
        self.entity = entity
        var compiler = PredicateCompiler(schema: schema)
        self.root = try compiler.compile(predicate, entity)
    }

    /// Whether an object passes.
    public func matches(
        _ object: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> Bool {
        try root.matches(object, resolver)
    }
}

/// How the members of a to-many relationship are counted against a test.
enum Quantifier: Hashable, Sendable {
    case any, all
    case count(Comparison, Int)
}

/// A text to look for, prepared once.
struct TextNeedle: Hashable, Sendable {
    let match: TextMatch
    let bytes: [UInt8]
    let folding: TextFolding

    /// - Parameter text: as the filter gives it; what is ignored is taken from it here.
    init(_ match: TextMatch, _ text: String, ignoring folding: TextFolding) {
        self.match = match
        self.folding = folding
        bytes = Array(folding.folded(text).utf8)
    }

    func matches(_ text: String) -> Bool {
        var text = folding.folded(text)
        return text.withUTF8Bytes { haystack in Self.find(haystack, bytes, match) }
    }

    static func find(_ haystack: Span<UInt8>, _ needle: [UInt8], _ match: TextMatch) -> Bool {
        let slack = haystack.count - needle.count
        if slack < 0 { return false }
        switch match {
        case .equal: return slack == 0 && equal(haystack, needle, at: 0)
        case .hasPrefix: return equal(haystack, needle, at: 0)
        case .hasSuffix: return equal(haystack, needle, at: slack)
        case .contains:
            guard let first = needle.first else { return true }
            var start = 0
            while start <= slack {
                if haystack[start] == first, equal(haystack, needle, at: start) { return true }
                start += 1
            }
            return false
        }
    }

    private static func equal(_ haystack: Span<UInt8>, _ needle: [UInt8], at start: Int) -> Bool {
        var index = 0
        while index < needle.count {
            if haystack[start + index] != needle[index] { return false }
            index += 1
        }
        return true
    }
}

extension String {
    /// Calls `body` with the bytes of the UTF-8 form.
    mutating func withUTF8Bytes<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        makeContiguousUTF8()
        return body(utf8Span.span)
    }
}

/// One node of a compiled filter.
indirect enum PredicateNode: Hashable, Sendable {
    case constant(Bool)
    case compare(CompiledPath, Comparison, StoredValue)
    case compareTwo(CompiledPath, Comparison, CompiledPath)
    /// The values stand in order, without duplicates.
    case isIn(CompiledPath, [StoredValue])
    /// Bounds that are there are not null.
    case isWithin(CompiledPath, ValueRange)
    case text(CompiledPath, TextNeedle)
    case not(PredicateNode)
    case and([PredicateNode])
    case or([PredicateNode])
    /// Hops to the owner, the relationship of its entity, the test of a member.
    case members(
        [CompiledPath.Hop],
        EntityID,
        ToManyStep,
        Quantifier,
        PredicateNode
    )

    func matches(
        _ object: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> Bool {
        switch self {
        case .constant(let result): return result
        case .compare(let path, let comparison, let constant):
            if constant == .null, path.hops.isEmpty, case .column(let column) = path.terminal {
                let isNull = try object.isNull(column)
                return comparison == .equal ? isNull : (comparison == .notEqual ? !isNull : false)
            }
            return Self.compare(try path.value(object, resolver), comparison, constant)
        case .compareTwo(let left, let comparison, let right):
            return Self.compare(
                try left.value(object, resolver),
                comparison,
                try right.value(object, resolver)
            )
        case .isIn(let path, let values):
            return Self.contains(values, try path.value(object, resolver))
        case .isWithin(let path, let range):
            return range.contains(try path.value(object, resolver))
        case .text(let path, let needle):
            guard case .text(let text) = try path.value(object, resolver) else { return false }
            return needle.matches(text)
        case .not(let inner): return try !inner.matches(object, resolver)
        case .and(let all):
            for node in all where try !node.matches(object, resolver) { return false }
            return true
        case .or(let all):
            for node in all where try node.matches(object, resolver) { return true }
            return false
        case .members(let hops, _, let step, let quantifier, let test):
            return try Self.members(object, resolver, hops, step, quantifier, test)
        }
    }

    /// The rules about null live here and in `ValueOrder`.
    static func compare(_ left: StoredValue, _ comparison: Comparison, _ right: StoredValue) -> Bool
    {
        switch comparison {
        case .equal: return ValueOrder.equal(left, right)
        case .notEqual: return !ValueOrder.equal(left, right)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            if left == .null || right == .null { return false }
            let order = ValueOrder.compare(left, right)
            return switch comparison {
            case .less: order < 0
            case .lessOrEqual: order <= 0
            case .greater: order > 0
            default: order >= 0
            }
        }
    }

    static func contains(_ values: [StoredValue], _ value: StoredValue) -> Bool {
        var low = 0
        var high = values.count
        while low < high {
            let middle = (low + high) / 2
            let order = ValueOrder.compare(values[middle], value)
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }

    private static func members(
        _ object: some RecordValues,
        _ resolver: some RecordResolver,
        _ hops: [CompiledPath.Hop],
        _ step: ToManyStep,
        _ quantifier: Quantifier,
        _ test: PredicateNode
    ) throws(RecordError) -> Bool {
        var owner: ObjectID? = object.objectID
        if let first = hops.first {
            owner = try object.reference(first.column)
            for index in hops.indices.dropFirst() {
                guard let id = owner else { break }
                let values = try resolver.values(hops[index - 1].target, id)
                owner = try values?.reference(hops[index].column)
            }
        }
        var members: [ObjectID] = []
        if let owner { members = try resolver.related(step.entity, step.relationship, of: owner) }
        if case .count(let comparison, let number) = quantifier, test == .constant(true) {
            return compare(.int(Int64(members.count)), comparison, .int(Int64(number)))
        }
        var count = 0
        for member in members {
            guard let values = try resolver.values(step.relationship.target, member) else {
                continue
            }
            let passes = try test.matches(values, resolver)
            switch quantifier {
            case .any: if passes { return true }
            case .all: if !passes { return false }
            case .count: if passes { count += 1 }
            }
        }
        return switch quantifier {
        case .any: false
        case .all: true
        case .count(let comparison, let number):
            compare(.int(Int64(count)), comparison, .int(Int64(number)))
        }
    }

    /// Adds the columns of the query's own entity that the filter looks at.
    func collectColumns(into columns: inout Set<ColumnID>) {
        switch self {
        case .constant: break
        case .compare(let path, _, _), .isIn(let path, _), .isWithin(let path, _),
            .text(let path, _):
            path.collectColumns(into: &columns)
        case .compareTwo(let left, _, let right):
            left.collectColumns(into: &columns)
            right.collectColumns(into: &columns)
        case .not(let inner): inner.collectColumns(into: &columns)
        case .and(let all), .or(let all):
            for node in all { node.collectColumns(into: &columns) }
        case .members(let hops, _, _, _, _):
            if let first = hops.first { columns.insert(first.column) }
        }
    }

    /// Whether it can be answered from columns of the object's own row.
    var readsOwnRowOnly: Bool {
        switch self {
        case .constant: true
        case .compare(let path, _, _), .isIn(let path, _), .isWithin(let path, _),
            .text(let path, _):
            path.hops.isEmpty
        case .compareTwo(let left, _, let right): left.hops.isEmpty && right.hops.isEmpty
        case .not(let inner): inner.readsOwnRowOnly
        case .and(let all), .or(let all): all.allSatisfy(\.readsOwnRowOnly)
        case .members: false
        }
    }
}

extension CompiledPath {
    func collectColumns(into columns: inout Set<ColumnID>) {
        if let first = hops.first {
            columns.insert(first.column)
            return
        }
        switch terminal {
        case .object: break
        case .column(let column), .blobLength(let column), .blobDigest(let column),
            .datePart(let column, _, _):
            columns.insert(column)
        }
    }
}

extension Comparison {
    /// Whether it is true of two values, by the rules of filters.
    public func holds(_ left: StoredValue, _ right: StoredValue) -> Bool {
        PredicateNode.compare(left, self, right)
    }
}

extension ValueRange {
    /// Whether a value lies in it, by the rules of filters.
    public func has(_ value: StoredValue) -> Bool { !isEmpty && contains(value) }

    /// Whether a value lies in it.
    func contains(_ value: StoredValue) -> Bool {
        if value == .null { return false }
        if let lower, ValueOrder.compare(value, lower) < 0 { return false }
        guard let upper else { return true }
        let order = ValueOrder.compare(value, upper)
        return order < 0 || (includesUpper && order == 0)
    }

    /// Whether no value can lie in it.
    var isEmpty: Bool {
        if lower == .null || upper == .null { return true }
        guard let lower, let upper else { return false }
        let order = ValueOrder.compare(lower, upper)
        return order > 0 || (order == 0 && !includesUpper)
    }
}

/// A to-many relationship and the entity that declares it.
struct ToManyStep: Hashable, Sendable {
    let entity: RecordEntity
    let relationship: RecordRelationship

    static func == (left: ToManyStep, right: ToManyStep) -> Bool {
        left.entity.id == right.entity.id && left.relationship == right.relationship
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(entity.id)
        hasher.combine(relationship)
    }
}
