// What is wrong with the count and the inverse of a relationship, as far as one class shows it.
// What only two classes together show, the schema says when a store is opened.
#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder

/// A relationship as its class declares it.
struct DeclaredRelationship {
    let name: String
    /// The class that it leads to, as written.
    let target: String
    /// The key path to the relationship back, if one is written.
    let inverse: (path: KeyPathName, node: ExprSyntax)?

    /// The class that it leads to, without what it is nested in.
    var targetName: String { Self.last(target) }

    static func last(_ type: String) -> String {
        type.split(separator: ".").last.map(String.init) ?? type
    }
}

extension PropertyReader {
    /// The key path to the relationship back; nil: none is written, or there is a complaint.
    mutating func readInverse(
        _ relationship: AttributeSyntax
    ) -> (path: KeyPathName, node: ExprSyntax)? {
        guard let inverse = relationship.argument("inverse"), !inverse.is(NilLiteralExprSyntax.self)
        else { return nil }
        if let path = KeyPathName(inverse), path.field == nil { return (path, inverse) }
        complaints.add(
            "inverseIsNoKeyPath",
            "the inverse is a key path to one property of the other entity: '\\Tag.items'",
            at: inverse
        )
        return nil
    }

    /// The arguments of a relationship's column, in the order of its initialiser, however they were
    /// written; nil: one of them is wrong.
    mutating func columnArguments(
        _ relationship: AttributeSyntax,
        isToMany: Bool,
        inverse: KeyPathName?
    ) -> [String]? {
        var arguments: [String] = []
        if let inverse { arguments.append("inverse: \"\(inverse.name)\"") }
        if let ordered = relationship.argument("ordered") {
            if isToMany {
                arguments.append("ordered: \(ordered.trimmedDescription)")
            } else if ordered.trimmedDescription != "false" {
                complaints.add(
                    "orderedToOne",
                    "only a to-many relationship can be ordered",
                    at: ordered
                )
                return nil
            }
        }
        if let rule = relationship.argument("deleteRule") {
            arguments.append("deleteRule: \(rule.trimmedDescription)")
        }
        if let count = relationship.argument("count"), !count.is(NilLiteralExprSyntax.self) {
            guard checkCount(count, isToMany: isToMany) else { return nil }
            arguments.append("count: \(count.trimmedDescription)")
        }
        if let names = relationship.originalNames { arguments.append("originalName: \(names)") }
        return arguments
    }

    // MARK: Counts

    /// Looks at a count that is written in numbers; one that is not, the schema looks at.
    private mutating func checkCount(_ count: ExprSyntax, isToMany: Bool) -> Bool {
        let text = String(count.trimmedDescription.filter { !$0.isWhitespace && $0 != "_" })
        guard let wrong = Self.fault(inCount: text, isToMany: isToMany) else { return true }
        let fixes = wrong.use.map { new in
            [(text: "use '\(new)'", old: Syntax(count), new: Syntax("\(raw: new)" as ExprSyntax))]
        }
        complaints.add("count", wrong.says, at: count, fixes: fixes ?? [])
        return false
    }

    /// What is wrong with a count, and what could stand in its place.
    private static func fault(
        inCount text: String,
        isToMany: Bool
    ) -> (says: String, use: String?)? {
        let isNumber = Int(text) != nil
        let mark = text.firstRange(of: "...") ?? text.firstRange(of: "..<")
        let low = mark.map { text[..<$0.lowerBound] } ?? ""
        let high = mark.map { text[$0.upperBound...] } ?? ""
        let isWritten =
            mark != nil && (low.isEmpty || Int(low) != nil) && (high.isEmpty || Int(high) != nil)
        guard isNumber || isWritten else { return nil }
        if !isToMany {
            if text == "1...1" { return nil }
            return (
                "a relationship to one object leads to one or to none: 'count: 1...1' says that it "
                    + "must lead to one; leave 'count' out where it need not", "1...1"
            )
        }
        guard let mark, !(low.isEmpty && high.isEmpty) else {
            return (
                "a count is a range of numbers of objects: '1...5', '1...' or '...5'",
                Int(text).flatMap { $0 > 0 ? "\($0)...\($0)" : nil }
            )
        }
        let dots = text[mark]
        let lower = Int(low) ?? 0
        let last = Int(high).map { dots == "..<" ? $0 - 1 : $0 } ?? Int.max
        if last < 1 {
            return ("with the count '\(text)' no object could ever be in the relationship", nil)
        }
        if lower < 0 {
            return ("no relationship leads to fewer than 0 objects", "0\(dots)\(high)")
        }
        if last < lower {
            return (
                "no number of objects is in '\(text)'",
                dots == "..." ? "\(last)...\(lower)" : nil
            )
        }
        return nil
    }
}

extension EntityReader {
    /// Holds the inverses of a class's relationships against each other and against their targets.
    func inverseComplaints(_ relationships: [DeclaredRelationship]) -> Complaints {
        var complaints = Complaints()
        var named: [String: String] = [:]
        for relationship in relationships {
            guard let (path, node) = relationship.inverse else { continue }
            let place = "\(relationship.targetName).\(path.name)"
            if let fault = fault(relationship, path, relationships) {
                complaints.add("inverse", fault, at: node)
            } else if let other = named[place] {
                complaints.add(
                    "inverse",
                    "'\(other)' and '\(relationship.name)' both name '\\\(place)' as their "
                        + "inverse, and a relationship has one: give one of them a property of "
                        + "its own in '\(relationship.targetName)', or leave its 'inverse' out",
                    at: node
                )
            }
            named[place] = relationship.name
        }
        return complaints
    }

    private func fault(
        _ relationship: DeclaredRelationship,
        _ inverse: KeyPathName,
        _ relationships: [DeclaredRelationship]
    ) -> String? {
        let (own, back) = (relationship.name, inverse.name)
        if let root = inverse.root, DeclaredRelationship.last(root) != relationship.targetName {
            return "'\(own)' leads to '\(relationship.target)', so its inverse is a property of "
                + "'\(relationship.targetName)', not of '\(root)': write "
                + "'\\\(relationship.targetName).\(back)'"
        }
        guard relationship.targetName == name else { return nil }
        if back == own {
            return "'\(own)' cannot be its own inverse: name the relationship that leads back, or "
                + "leave 'inverse' out"
        }
        guard let other = relationships.first(where: { $0.name == back }) else {
            return "'\(own)' has the inverse '\(back)', but '\(name)' has no relationship "
                + "'\(back)': write '@Relationship var \(back): ToMany<\(name)>' or "
                + "'@Relationship var \(back): \(name)?'"
        }
        if other.targetName != name {
            return "'\(own)' has the inverse '\(back)', which leads to '\(other.target)' and not "
                + "back to '\(name)'"
        }
        if let theirs = other.inverse?.path.name, theirs != own {
            return "'\(own)' has the inverse '\(back)', whose own inverse is '\(theirs)': write "
                + "'inverse: \\\(name).\(own)' on '\(back)', or name another one here"
        }
        return nil
    }
}
#endif
