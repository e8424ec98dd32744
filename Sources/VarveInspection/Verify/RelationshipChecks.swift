// What is wrong with relationships as problems of a check: one for each relationship and kind.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// Gathers the faults of one relationship at a time.
private final class RelationshipComplaints {
    private struct Complaint {
        let fault: RelationshipFault
        let words: RelationshipWords
        var count = 0
        var objects: [String] = []
        var findings: [String] = []
    }

    /// Findings that a problem spells out.
    private static let findingsMax = 20

    var report: VerifyReport
    private let schema: RecordSchema
    private let names: TreeNames
    private let progress: (UInt64, Int) -> Bool
    private var steps: UInt64 = 0
    private var complaints: [String: [Int: Complaint]] = [:]

    init(
        _ report: VerifyReport,
        _ schema: RecordSchema,
        _ names: TreeNames,
        _ progress: @escaping (UInt64, Int) -> Bool
    ) {
        self.report = report
        self.schema = schema
        self.names = names
        self.progress = progress
    }

    func step() throws(InspectionError) {
        steps += 1
        if steps % ContentChecks.entriesPerCall == 0,
            !progress(report.bytes, report.problems.count)
        {
            report.isComplete = false
            throw InspectionError(.cancelled, "the check was ended")
        }
    }

    func add(_ end: RelationshipEnd, _ fault: RelationshipFault) {
        let words = RelationshipWords(
            end: end,
            target: schema.entity(end.relationship.target),
            names: names
        )
        var complaint =
            complaints[end.name]?[fault.kind] ?? Complaint(fault: fault, words: words)
        // Not two owners of the list while it grows.
        complaints[end.name, default: [:]][fault.kind] = nil
        complaint.count += 1
        if complaint.objects.count < ContentChecks.objectsMax {
            let object = words.object(fault)
            if complaint.objects.last != object { complaint.objects.append(object) }
        }
        if complaint.findings.count < Self.findingsMax {
            complaint.findings.append(words.finding(fault))
        }
        complaints[end.name, default: [:]][fault.kind] = complaint
    }

    /// Turns what was gathered into problems.
    func finish() {
        for (name, kinds) in complaints.sorted(by: { $0.key < $1.key }) {
            for (_, complaint) in kinds.sorted(by: { $0.key < $1.key }) {
                let message = complaint.words.message(complaint.fault, complaint.count)
                if case .dangling(_, _, isAllowed: true) = complaint.fault {
                    report.notes.append("\(message); the first: \(complaint.findings[0])")
                    continue
                }
                var details = complaint.findings
                if complaint.count > details.count {
                    details.append("and \(complaint.count - details.count) more")
                }
                report.add(
                    VerifyProblem(
                        kind: .inconsistent,
                        subject: name,
                        isNeeded: true,
                        message: message,
                        objects: complaint.objects,
                        details: details
                    )
                )
            }
        }
        complaints = [:]
    }
}

extension ContentChecks {
    /// Holds both sides of every relationship against each other.
    mutating func checkRelationships() throws(InspectionError) {
        guard report.isComplete else { return }
        let complaints = RelationshipComplaints(report, snapshot.schema, names, progress)
        defer { report = complaints.report }
        let (damaged, wrong) = (damagedTrees, wrongIndexes)
        let walk = RelationshipWalk(
            schema: snapshot.schema,
            storage: storage,
            isSound: { damaged[$0] == nil && !wrong.contains($0) },
            step: { () throws(InspectionError) in try complaints.step() },
            skipped: { end in
                complaints.report.notChecked.append(
                    "both sides of \(end.name): rows or an index that this needs are not sound"
                )
            },
            found: { end, fault in complaints.add(end, fault) }
        )
        do throws(InspectionError) {
            try walk.run { complaints.finish() }
        } catch {
            complaints.finish()
            throw error
        }
    }
}
