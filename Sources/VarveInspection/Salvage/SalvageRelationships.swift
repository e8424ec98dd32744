// Both sides of every relationship made to agree, in the new store.
//
// Invariants
// - The new store has no relationship that `verify` complains of, whatever the damaged one had.
// - Nothing is invented: what one side says and the other leaves open is completed, what one side
//   says and the other contradicts is taken out. Of a list and a column, the column is right.
// - Everything that is changed is in the report.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension Salvage {
    private struct Finding {
        let end: RelationshipEnd
        let fault: RelationshipFault
    }

    /// Faults that are mended in one commit take about this much memory each.
    private static let findingBytes = 128
    /// More than this says that what is changed does not mend it: `verify` then refuses.
    private static let passesMax = 64

    /// Settles what is wrong. A plan, which writes nothing, does not know of it.
    /// - Complexity: O(entries of relationships), again for each `memoryBytesMax` of faults.
    func mendRelationships(in writer: SalvageWriter) throws {
        let findingsMax = max(4096, options.memoryBytesMax / 8 / Self.findingBytes)
        for _ in 0..<Self.passesMax {
            let findings = try findings(in: writer, max: findingsMax)
            if findings.isEmpty { return }
            try mend(findings, in: writer)
        }
    }

    private func findings(in writer: SalvageWriter, max: Int) throws -> [Finding] {
        let snapshot = try writer.store.snapshot()
        var findings: [Finding] = []
        var steps = 0
        let full = InspectionError(.limit, "enough for one commit")
        try withoutActuallyEscaping(
            { (end: RelationshipEnd, fault: RelationshipFault) throws(InspectionError) in
                if case .dangling(_, _, isAllowed: true) = fault { return }
                findings.append(Finding(end: end, fault: fault))
                if findings.count == max { throw full }
            }
        ) { found in
            try withoutActuallyEscaping(
                { () throws(InspectionError) in
                    steps += 1
                    if steps % 4096 == 0 { try self.goOn(0) }
                }
            ) { step in
                let walk = RelationshipWalk(
                    schema: snapshot.schema,
                    storage: snapshot.storage,
                    isSound: { _ in true },
                    step: step,
                    skipped: { _ in },
                    found: found
                )
                do throws(InspectionError) {
                    try walk.run()
                } catch {
                    guard error.kind == .limit else { throw error }
                }
            }
        }
        return findings
    }

    private func mend(_ findings: [Finding], in writer: SalvageWriter) throws {
        // Positions last: they are given to the members that are left.
        let others = findings.filter { finding in
            if case .position = finding.fault { return false }
            return true
        }
        let now = others.isEmpty ? findings : others
        var told: [String] = []
        do {
            _ = try writer.store.write(author: "recover") { transaction in
                var numbered: Set<ObjectID> = []
                for finding in now {
                    if case .position(_, _, let owner, _) = finding.fault,
                        !numbered.insert(owner).inserted
                    {
                        continue
                    }
                    guard let change = try mend(finding, transaction) else { continue }
                    let words = RelationshipWords(
                        end: finding.end,
                        target: schema.entity(finding.end.relationship.target),
                        names: names
                    )
                    told.append("\(words.finding(finding.fault)): \(change)")
                }
            }
        } catch let error as RecordError {
            throw InspectionError(error)
        }
        for line in told {
            report.settledCount += 1
            report.add(line, to: \.settledRelationships)
        }
        try goOn(0)
    }

    /// Changes what settles one fault; nil when an earlier change has.
    private func mend(
        _ finding: Finding,
        _ transaction: RecordTransaction
    ) throws -> String? {
        let end = finding.end
        let own = end.entity
        let target = transaction.schema.entity(end.relationship.target)
        let inverse = end.relationship.inverse.flatMap { target?.relationship(named: $0) }
        func deleteLink(_ link: ObjectID) throws(RecordError) -> String? {
            guard let hidden = Self.hidden(end) else { return nil }
            return try transaction.deleteIfPresent(hidden, link) ? "the link row was left out" : nil
        }
        switch finding.fault {
        case .dangling(let owner, _, _), .noReference(let owner):
            guard let near = Self.column(end.relationship) else { return nil }
            try transaction.set(own, owner, near, nil)
            return "cleared"
        case .shared:
            return nil
        case .unanswered(let owner, let object, _):
            guard let near = Self.column(end.relationship), let far = Self.column(inverse),
                let target,
                try transaction.row(own.id, owner)?.reference(near) == object,
                let row = try transaction.row(target.id, object)
            else { return nil }
            let answer = try row.reference(far)
            if answer == owner { return nil }
            if answer == nil {
                try transaction.set(target, object, far, owner)
                return "the other side was completed"
            }
            try transaction.set(own, owner, near, nil)
            return "cleared"
        case .lostEnd(let link, _, _), .brokenLink(let link), .twice(let link, _, _):
            return try deleteLink(link)
        case .listed(let link, let owner, let member, _):
            guard let far = Self.column(inverse), let target,
                let row = try transaction.row(target.id, member)
            else { return nil }
            let said = try row.reference(far)
            if said == owner { return nil }
            if said == nil {
                try transaction.set(target, member, far, owner)
                return "the other side was completed"
            }
            return try deleteLink(link)
        case .unlisted(let owner, let member):
            guard let far = Self.column(inverse), let target,
                try transaction.row(target.id, member)?.reference(far) == owner
            else { return nil }
            try transaction.addLink(own, end.relationship, from: owner, to: member)
            return "it was put at the end of the list"
        case .position(_, _, let owner, _):
            let members = try transaction.relatedIDs(own, end.relationship, of: owner)
            try transaction.setOrder(own, end.relationship, of: owner, members)
            return "numbered anew, in the order of their IDs where it was not known"
        }
    }

    private static func column(_ relationship: RecordRelationship?) -> ColumnID? {
        if case .column(let column, _)? = relationship?.storage { return column }
        return nil
    }

    /// The link entity of a relationship; its own, where no relationship uses it.
    private static func hidden(_ end: RelationshipEnd) -> EntityID? {
        if case .link(let link) = end.relationship.storage { return link.entity }
        return end.entity.isHiddenLink ? end.entity.id : nil
    }
}

extension RecordTransaction {
    fileprivate func set(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ column: ColumnID,
        _ target: ObjectID?
    ) throws(RecordError) {
        let value = target.map { StoredValue.reference($0) } ?? .null
        try update(entity.id, object, [ColumnValue(column, value)])
    }
}
