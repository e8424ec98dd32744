// Names to columns, constants to stored form, and the simplifications that help the planner.

import VarveBase

/// Turns a `Predicate` into nodes.
struct PredicateCompiler {
    let schema: RecordSchema
    /// Filters come from callers: a bound on their depth keeps the recursion off the stack's end.
    static let depthMax = 200
    private var depth = 0

    init(schema: RecordSchema) {
        self.schema = schema
    }

    mutating func compile(
        _ predicate: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode {
        depth += 1
        defer { depth -= 1 }
        if depth > Self.depthMax {
            throw .unsupportedPredicate("it is nested deeper than \(Self.depthMax)")
        }
        switch predicate {
        case .always: return .constant(true)
        case .never: return .constant(false)
        case .not(let inner):
            return Self.negate(try compile(inner, entity))
        case .and(let all):
            return Self.and(try compileAll(all, entity))
        case .or(let all):
            return Self.or(try compileAll(all, entity))
        case .any(let path, let test):
            return try members(path, .any, test, entity)
        case .all(let path, let test):
            return try members(path, .all, test, entity)
        case .count(let path, let test, let comparison, let number):
            return try members(path, .count(comparison, number), test, entity)
        default: return try compileTest(predicate, entity)
        }
    }

    /// A test of values of one object.
    private func compileTest(
        _ predicate: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode {
        switch predicate {
        case .compare(let path, let comparison, let value):
            return try compare(
                CompiledPath.of(path, entity, schema),
                comparison,
                value
            )
        case .compareProperties(let left, let comparison, let right):
            let left = try CompiledPath.of(left, entity, schema)
            let right = try CompiledPath.of(right, entity, schema)
            try checkComparable(left, right)
            try checkOrdered(left, comparison)
            return .compareTwo(left, comparison, right)
        case .isIn(let path, let values):
            let path = try CompiledPath.of(path, entity, schema)
            let list = try values.map { (value) throws(RecordError) in try path.coerce(value) }
            return Self.narrowed(Self.isIn(path, list))
        case .isInRequest:
            throw .unsupportedPredicate("a request inside it has not been answered")
        case .isWithin(let path, let range):
            return try within(CompiledPath.of(path, entity, schema), range)
        case .text(let path, let match, let text, let folding):
            let path = try CompiledPath.of(path, entity, schema)
            guard path.kind == .attribute(.text) || path.kind == .attribute(.url) else {
                throw .unsupportedPredicate("\(path.text) is not a text")
            }
            if match == .equal, folding.isEmpty { return .compare(path, .equal, .text(text)) }
            return .text(path, TextNeedle(match, text, ignoring: folding))
        default: preconditionFailure("joined and related tests are compiled by `compile`")
        }
    }

    private mutating func compileAll(
        _ all: [Predicate],
        _ entity: RecordEntity
    ) throws(RecordError) -> [PredicateNode] {
        var nodes: [PredicateNode] = []
        nodes.reserveCapacity(all.count)
        for predicate in all { nodes.append(try compile(predicate, entity)) }
        return nodes
    }

    private func compare(
        _ path: CompiledPath,
        _ comparison: Comparison,
        _ value: StoredValue
    ) throws(RecordError) -> PredicateNode {
        try checkOrdered(path, comparison)
        let value = try path.coerce(value)
        if value == .null, comparison != .equal, comparison != .notEqual { return .constant(false) }
        return Self.narrowed(.compare(path, comparison, value))
    }

    private func within(
        _ path: CompiledPath,
        _ range: ValueRange
    ) throws(RecordError) -> PredicateNode {
        try checkOrdered(path, .less)
        var range = range
        range.lower = try range.lower.map { (value) throws(RecordError) in try path.coerce(value) }
        range.upper = try range.upper.map { (value) throws(RecordError) in try path.coerce(value) }
        if range.isEmpty { return .constant(false) }
        if range.lower == nil, range.upper == nil { return .compare(path, .notEqual, .null) }
        return Self.narrowed(.isWithin(path, range))
    }

    /// A test of a year together with a range of moments that it lies in, which an index can serve.
    /// The test itself stays: where a zone changes its clocks, moments of a year need not stand
    /// together.
    private static func narrowed(_ node: PredicateNode) -> PredicateNode {
        let (path, range): (CompiledPath, ValueRange?)
        switch node {
        case .compare(let its, let comparison, .int(let year)):
            (path, range) = (its, CivilDate.moments(comparison, year))
        case .isIn(let its, let years):
            guard case .int(let first)? = years.first, case .int(let last)? = years.last,
                let from = CivilDate.moments(.greaterOrEqual, first),
                let to = CivilDate.moments(.lessOrEqual, last)
            else { return node }
            (path, range) = (its, ValueRange(from: from.lower, upTo: to.upper))
        case .isWithin(let its, let years):
            var moments = ValueRange(from: nil, upTo: nil)
            if case .int(let first)? = years.lower {
                moments.lower = CivilDate.moments(.greaterOrEqual, first)?.lower
            }
            if case .int(let last)? = years.upper {
                moments.upper = CivilDate.moments(.lessOrEqual, last)?.upper
            }
            (path, range) = (its, moments.lower == nil && moments.upper == nil ? nil : moments)
        default: return node
        }
        guard case .datePart(_, .year, _) = path.terminal, let range else { return node }
        return .and([.isWithin(path.wholeValue, range), node])
    }

    private func checkOrdered(_ path: CompiledPath, _ comparison: Comparison) throws(RecordError) {
        if path.kind == .attribute(.blob), comparison != .equal, comparison != .notEqual {
            throw .unsupportedPredicate("the content of blob \(path.text) has no order")
        }
    }

    private func checkComparable(_ left: CompiledPath, _ right: CompiledPath) throws(RecordError) {
        if left.kind == right.kind { return }
        if case .attribute(let one) = left.kind, case .attribute(let two) = right.kind {
            if one.isInteger, two.isInteger, (one == .uint64) == (two == .uint64) { return }
            let texts: Set<AttributeType> = [.text, .url]
            if texts.contains(one), texts.contains(two) { return }
        }
        throw .unsupportedPredicate("\(left.text) and \(right.text) have different types")
    }

    private mutating func members(
        _ path: PropertyPath,
        _ quantifier: Quantifier,
        _ test: Predicate,
        _ entity: RecordEntity
    ) throws(RecordError) -> PredicateNode {
        var current = entity
        var hops: [CompiledPath.Hop] = []
        for name in path.names.dropLast() {
            guard let relationship = current.relationship(named: name),
                case .column(let column, _) = relationship.storage,
                let target = schema.entity(relationship.target)
            else { throw .unknownProperty(entity: current.name, property: name) }
            hops.append(CompiledPath.Hop(column: column, target: target.id))
            current = target
        }
        guard let name = path.names.last, let relationship = current.relationship(named: name),
            relationship.isToMany, let target = schema.entity(relationship.target)
        else {
            throw .unknownProperty(entity: current.name, property: path.names.last ?? "")
        }
        let node = try compile(test, target)
        return .members(
            hops,
            target.id,
            ToManyStep(entity: current, relationship: relationship),
            quantifier,
            node
        )
    }

    // MARK: Simplifications

    static func and(_ nodes: [PredicateNode]) -> PredicateNode {
        if nodes.count > 1, !nodes.contains(where: \.isConstantOrAnd) { return .and(nodes) }
        var flat: [PredicateNode] = []
        for node in nodes {
            switch node {
            case .constant(true): break
            case .constant(false): return node
            case .and(let inner): flat += inner
            default: flat.append(node)
            }
        }
        return flat.count == 1 ? flat[0] : (flat.isEmpty ? .constant(true) : .and(flat))
    }

    /// Equal comparisons of one path become a list, which an index can serve.
    static func or(_ nodes: [PredicateNode]) -> PredicateNode {
        var flat: [PredicateNode] = []
        for node in nodes {
            switch node {
            case .constant(false): break
            case .constant(true): return node
            case .or(let inner): flat += inner
            default: flat.append(node)
            }
        }
        if flat.count > 1, let (path, values) = Self.equalities(flat) { return isIn(path, values) }
        return flat.count == 1 ? flat[0] : (flat.isEmpty ? .constant(false) : .or(flat))
    }

    private static func equalities(_ nodes: [PredicateNode]) -> (CompiledPath, [StoredValue])? {
        var path: CompiledPath?
        var values: [StoredValue] = []
        for node in nodes {
            let current: CompiledPath
            switch node {
            case .compare(let its, .equal, let value):
                current = its
                values.append(value)
            case .isIn(let its, let list):
                current = its
                values += list
            default: return nil
            }
            if let path, path != current { return nil }
            path = current
        }
        return path.map { ($0, values) }
    }

    static func isIn(_ path: CompiledPath, _ values: [StoredValue]) -> PredicateNode {
        let sorted = values.sorted { ValueOrder.compare($0, $1) < 0 }
        var unique: [StoredValue] = []
        for value in sorted {
            if let last = unique.last, ValueOrder.equal(last, value) { continue }
            unique.append(value)
        }
        switch unique.count {
        case 0: return .constant(false)
        case 1: return .compare(path, .equal, unique[0])
        default: return .isIn(path, unique)
        }
    }

    /// `==` and `!=` are each other's negation; the ordered comparisons are not, because of null.
    static func negate(_ node: PredicateNode) -> PredicateNode {
        switch node {
        case .constant(let value): .constant(!value)
        case .not(let inner): inner
        case .compare(let path, .equal, let value): .compare(path, .notEqual, value)
        case .compare(let path, .notEqual, let value): .compare(path, .equal, value)
        default: .not(node)
        }
    }
}

extension PredicateNode {
    /// Whether it changes an `&&` that it is a term of.
    fileprivate var isConstantOrAnd: Bool {
        switch self {
        case .constant, .and: true
        default: false
        }
    }
}
