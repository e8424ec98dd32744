// A plan in words: property names, comparisons, counts; never the values that are compared with.

import VarveBase

extension FetchPlan {
    /// One line per part: access, filter, order, window.
    func text(_ window: FetchWindow) -> String {
        var lines: [String] = []
        let direction = isReversed != window.isBackward ? " backward" : ""
        switch access {
        case .nothing: lines.append("nothing: no object of \(entity.name) can match")
        case .objects(let ids): lines.append("objects: \(ids.count) of \(entity.name) by ID")
        case .rows:
            lines.append("rows: all \(candidates) of \(entity.name)\(isOrdered ? direction : "")")
        case .index(let index, let ranges):
            let columns = index.terms.indices.map { position in
                index.names[position] + (index.terms[position].isDescending ? " descending" : "")
            }
            let parts = ranges.count == 1 ? "1 range" : "\(ranges.count) ranges"
            lines.append(
                "index: \(entity.name)(\(columns.joined(separator: ", ")))"
                    + "\(isOrdered || groupedTerms > 0 ? direction : ""), \(parts), "
                    + "\(candidates) entries"
            )
        case .set(let set):
            lines.append("set: \(set.text(entity)), \(candidates) entries")
        }
        if let residual {
            lines.append("filter: \(residual.text)" + (isCovered ? ", on keys" : ""))
        }
        if case .nothing = access { return lines[0] }
        lines.append(
            "order: \(sort.text), "
                + (isOrdered
                    ? "as read"
                    : groupedTerms > 0
                        ? "\(groupedTerms) terms as read, the rest sorted in memory"
                        : isCovered ? "keys sorted in memory" : "sorted in memory")
                + (isOrdered || window.limit == nil ? "" : ", only what the limit needs")
        )
        var parts: [String] = []
        if let limit = window.limit { parts.append("limit \(limit)") }
        if window.offset > 0 { parts.append("offset \(window.offset)") }
        if window.after != nil { parts.append("after a place") }
        if window.before != nil { parts.append("before a place") }
        if !parts.isEmpty { lines.append("window: " + parts.joined(separator: ", ")) }
        return lines.joined(separator: "\n")
    }
}

extension EntrySet {
    /// The ranges and how they are joined.
    func text(_ entity: RecordEntity) -> String {
        switch self {
        case .objects(let ids): return "\(ids.count) by ID"
        case .ranges(let index, let ranges):
            let parts = ranges.count == 1 ? "1 range" : "\(ranges.count) ranges"
            return "\(entity.name)(\(index.names.joined(separator: ", "))) \(parts)"
        case .union(let sets):
            return "any of [" + sets.map { $0.text(entity) }.joined(separator: "; ") + "]"
        case .intersection(let sets):
            return "all of [" + sets.map { $0.text(entity) }.joined(separator: "; ") + "]"
        }
    }
}

extension CompiledSort {
    var text: String {
        let all = terms.map { $0.path.text + ($0.isDescending ? " descending" : "") }
        return (all + ["ID" + (isTieDescending ? " descending" : "")]).joined(separator: ", ")
    }
}

extension Comparison {
    var text: String {
        switch self {
        case .equal: "=="
        case .notEqual: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }
}

extension TextFolding {
    fileprivate var text: String {
        var names: [String] = []
        if contains(.caseDifferences) { names.append("case") }
        if contains(.diacritics) { names.append("diacritics") }
        return names.isEmpty ? "" : " ignoring " + names.joined(separator: " and ")
    }
}

extension PredicateNode {
    /// The test with "?" for every constant but null.
    var text: String {
        switch self {
        case .constant(let value): return value ? "true" : "false"
        case .compare(let path, let comparison, let value):
            return "\(path.text) \(comparison.text) " + (value == .null ? "null" : "?")
        case .compareTwo(let left, let comparison, let right):
            return "\(left.text) \(comparison.text) \(right.text)"
        case .isIn(let path, let values): return "\(path.text) in \(values.count) values"
        case .isWithin(let path, let range):
            let (lower, upper) = (range.lower == nil ? "" : "?", range.upper == nil ? "" : "?")
            return "\(path.text) in \(lower)\(range.includesUpper ? "..." : "..<")\(upper)"
        case .text(let path, let needle):
            return "\(path.text) \(needle.match) ?" + needle.folding.text
        case .not(let inner): return "not (\(inner.text))"
        case .and(let all): return all.map { "(\($0.text))" }.joined(separator: " and ")
        case .or(let all): return all.map { "(\($0.text))" }.joined(separator: " or ")
        case .members(_, _, let step, let quantifier, let test):
            let name = "\(step.entity.name).\(step.relationship.name)"
            switch quantifier {
            case .any: return "any \(name): (\(test.text))"
            case .all: return "all \(name): (\(test.text))"
            case .count(let comparison, _):
                return "count \(name): (\(test.text)) \(comparison.text) ?"
            }
        }
    }
}
