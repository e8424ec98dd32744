// What a salvage kept, what it lost, and what is known of that.
//
// Invariants
// - Every list is bounded; what it leaves out is counted.
// - A row is counted once: kept, lost or set aside.

import VarveBase

/// The result of a salvage, or of its plan.
public struct SalvageReport: Hashable, Sendable {
    /// A frame that cannot be read.
    public struct Damage: Hashable, Sendable {
        /// "leaf of Loan", "DELTA", ...
        public var subject: String
        /// Where it starts.
        public var place: UInt64
        /// Its bytes, as far as they are known.
        public var bytes: UInt64?
        /// Entries below it, as its parent says.
        public var rows: UInt64?
        /// The commit that wrote it, as it says itself.
        public var writtenBy: UInt64?
        /// What is wrong.
        public var message: String
        /// What became of what it held.
        public var outcome: String
    }

    /// What became of the rows of an entity.
    public struct Entity: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Rows in the new store.
        public var kept: UInt64 = 0
        /// Those of them that lay in damaged pages and were put together from older ones.
        public var rebuilt: UInt64 = 0
        /// Rows that are known to have been there and are not in the new store; those set aside
        /// included.
        public var lost: UInt64 = 0
        /// Entries of damaged pages of which not even the object is known.
        public var unnamed: UInt64 = 0
    }

    /// An attribute and its value.
    public struct Value: Hashable, Sendable {
        /// The attribute or relationship.
        public var name: String
        /// Its value.
        public var value: InspectedValue
    }

    /// A row that is not in the new store, or only as it was.
    public struct LostRow: Hashable, Sendable {
        /// "Loan:12".
        public var object: String
        /// Why.
        public var reason: String
        /// What indexes still say of it.
        public var known: [Value] = []
        /// The commit as of which `older` is.
        public var asOf: UInt64?
        /// The row as it was then, in parts.
        public var older: [Value] = []
        /// Whether the new store has it as it was then.
        public var isUsed = false
    }

    /// A value of a row that is in the new store without it.
    public struct LostValue: Hashable, Sendable {
        /// "Book:8".
        public var object: String
        /// Which attribute.
        public var attribute: String
        /// "4,200 bytes of text" or "blob 9f…".
        public var what: String
        /// Why.
        public var reason: String
    }

    /// A commit that is newer than the state that was kept.
    public struct LostCommit: Hashable, Sendable {
        /// Its number.
        public var number: UInt64
        /// Where its frame is.
        public var place: UInt64
        /// "DELTA", "TREE".
        public var kind: String
        /// Who made it.
        public var author: String
        /// Objects that it changed, as far as it says.
        public var objects: [String]
    }

    static let listMax = 10_000

    /// The commit whose state was kept.
    public var commit: UInt64 = 0
    /// The TREE or CKPT that it starts from.
    public var start: UInt64 = 0
    /// Where that is.
    public var startPlace: UInt64 = 0
    /// Commits with row changes after it.
    public var deltas = 0
    /// Damaged checkpoints that were passed over.
    public var bridged: [UInt64] = []
    /// Whether the newest commit was asked for and could not be used.
    public var isOlder = false
    /// Whether every step came to its end.
    public var isComplete = true
    /// Whether a store was written.
    public var isWritten = false
    /// Bytes of rows and values; the new store is about as large.
    public var bytes: UInt64 = 0
    /// Blobs kept.
    public var blobs: UInt64 = 0
    /// Bytes of blobs kept.
    public var blobBytes: UInt64 = 0
    /// Large values kept.
    public var values: UInt64 = 0
    /// By entity; those without a row are left out.
    public var entities: [Entity] = []
    /// What cannot be read.
    public var damage: [Damage] = []
    /// Commits that are not in the new store.
    public var lostCommits: [LostCommit] = []
    /// Rows that are not in it.
    public var lostRows: [LostRow] = []
    /// Values that are not in it.
    public var lostValues: [LostValue] = []
    /// References to lost rows that were taken out: "Loan:12.book -> Book:7".
    public var clearedReferences: [String] = []
    /// How many those are.
    public var clearedCount: UInt64 = 0
    /// Relationships whose sides did not agree, each with what was done:
    /// "Node:3.next leads to Node:2, whose previous leads to Node:1: cleared".
    public var settledRelationships: [String] = []
    /// How many those are.
    public var settledCount: UInt64 = 0
    /// Entries that the lists leave out.
    public var leftOut: UInt64 = 0
    /// What else is worth knowing.
    public var notes: [String] = []

    /// Whether the new store has everything that the damaged one had.
    public var isWhole: Bool {
        isComplete && !isOlder && lostCommits.isEmpty && lostRows.isEmpty && lostValues.isEmpty
            && clearedCount == 0 && settledCount == 0
            && entities.allSatisfy { $0.lost == 0 && $0.unnamed == 0 }
    }

    mutating func add<T>(_ item: T, to list: WritableKeyPath<SalvageReport, [T]>) {
        if self[keyPath: list].count < Self.listMax {
            self[keyPath: list].append(item)
        } else {
            leftOut += 1
        }
    }
}

// MARK: As JSON

extension SalvageReport {
    /// The report as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("written", .bool(isWritten)), ("whole", .bool(isWhole)),
            ("complete", .bool(isComplete)), ("commit", .uint(commit)),
            ("older", isOlder ? .bool(true) : nil),
            (
                "start",
                .members([
                    ("commit", .uint(start)), ("place", .string(Spelling.place(startPlace))),
                    ("deltas", .count(deltas)),
                    (
                        "passedOver",
                        bridged.isEmpty ? nil : .array(bridged.map { .string(Spelling.place($0)) })
                    ),
                ])
            ),
            ("bytes", .uint(bytes)), ("values", .uint(values)), ("blobs", .uint(blobs)),
            ("blobBytes", .uint(blobBytes)), ("entities", .array(entities.map(\.json))),
            ("damage", .array(damage.map(\.json))),
            ("lostCommits", .array(lostCommits.map(\.json))),
            ("lostRows", .array(lostRows.map(\.json))),
            ("lostValues", .array(lostValues.map(\.json))),
            ("clearedReferences", .array(clearedReferences.map { .string($0) })),
            ("cleared", .uint(clearedCount)),
            ("settledRelationships", .array(settledRelationships.map { .string($0) })),
            ("settled", .uint(settledCount)), ("leftOut", .uint(leftOut)),
            ("notes", .array(notes.map { .string($0) })),
        ])
    }
}

extension SalvageReport.Damage {
    fileprivate var json: JSON {
        .members([
            ("subject", .string(subject)), ("place", .string(Spelling.place(place))),
            ("bytes", bytes.map { .uint($0) }), ("rows", rows.map { .uint($0) }),
            ("writtenBy", writtenBy.map { .uint($0) }), ("message", .string(message)),
            ("outcome", .string(outcome)),
        ])
    }
}

extension SalvageReport.Entity {
    fileprivate var json: JSON {
        .members([
            ("name", .string(name)), ("kept", .uint(kept)), ("rebuilt", .uint(rebuilt)),
            ("lost", .uint(lost)), ("unnamed", .uint(unnamed)),
        ])
    }
}

extension SalvageReport.LostRow {
    fileprivate var json: JSON {
        .members([
            ("object", .string(object)), ("reason", .string(reason)),
            ("known", known.isEmpty ? nil : Self.json(known)),
            ("asOf", asOf.map { .uint($0) }), ("older", older.isEmpty ? nil : Self.json(older)),
            ("used", isUsed ? .bool(true) : nil),
        ])
    }

    private static func json(_ values: [SalvageReport.Value]) -> JSON {
        .object(values.map { JSON.Member(name: $0.name, value: $0.value.json) })
    }
}

extension SalvageReport.LostValue {
    fileprivate var json: JSON {
        .members([
            ("object", .string(object)), ("attribute", .string(attribute)),
            ("what", .string(what)), ("reason", .string(reason)),
        ])
    }
}

extension SalvageReport.LostCommit {
    fileprivate var json: JSON {
        .members([
            ("commit", .uint(number)), ("place", .string(Spelling.place(place))),
            ("kind", .string(kind)), ("author", .string(author)),
            ("objects", .array(objects.map { .string($0) })),
        ])
    }
}

// MARK: As text

extension SalvageReport {
    /// The report in lines for people: what it starts from, what is lost, what is known of that.
    public var lines: [String] {
        var lines: [String] = []
        func line(_ title: String, _ text: String) {
            lines.append(title + String(repeating: " ", count: max(1, 12 - title.count)) + text)
        }
        let changes = deltas == 1 ? "1 delta" : "\(deltas) deltas"
        line(
            "start",
            "checkpoint \(Spelling.commit(start)) at \(Spelling.place(startPlace)) and \(changes): "
                + "\(Spelling.commit(commit))"
        )
        for place in bridged {
            line(
                "passed over",
                "the checkpoint at \(Spelling.place(place)): damaged, and not needed"
            )
        }
        for entity in entities {
            var parts = ["\(Spelling.number(entity.kept)) \(entity.name)"]
            if entity.rebuilt > 0 { parts.append("\(entity.rebuilt) of them put together") }
            if entity.lost > 0 { parts.append("\(entity.lost) lost") }
            if entity.unnamed > 0 { parts.append("\(entity.unnamed) lost without a name") }
            line("keeps", parts.joined(separator: ", "))
        }
        if blobs > 0 || values > 0 {
            line(
                "keeps",
                "\(values) large values, \(blobs) blobs (\(Spelling.size(blobBytes)))"
            )
        }
        for item in damage {
            line(
                "damaged",
                "\(item.subject) \(Spelling.place(item.place))"
                    + (item.rows.map { ": \($0) rows" } ?? "") + "; "
                    + Spelling.escaped(item.outcome)
            )
        }
        for commit in lostCommits {
            line(
                "lost",
                "commit \(Spelling.commit(commit.number)) at \(Spelling.place(commit.place)): "
                    + "it stands on what is damaged"
            )
        }
        let known = lostRows.filter { !$0.known.isEmpty }.count
        if known > 0 {
            line("from index", "attributes of \(known) lost rows, into the report")
        }
        let used = lostRows.filter(\.isUsed).count
        let aside = lostRows.filter { $0.asOf != nil }.count - used
        if aside > 0 {
            line("set aside", "\(aside) rows as they were before, into the report; or --use-older")
        }
        if used > 0 { line("older", "\(used) rows as they were before are in the store") }
        for value in lostValues.prefix(20) {
            line("lost", "\(value.object).\(value.attribute): \(Spelling.escaped(value.what))")
        }
        if lostValues.count > 20 { line("lost", "\(lostValues.count - 20) more values") }
        if clearedCount > 0 { line("cleared", "\(clearedCount) references to lost rows") }
        if settledCount > 0 {
            line("settled", "\(settledCount) relationships whose two sides did not agree")
        }
        if leftOut > 0 { line("left out", "\(leftOut) entries of the report") }
        if !isComplete { line("incomplete", "a limit was reached") }
        for note in notes.prefix(20) { line("note", Spelling.escaped(note)) }
        return lines
    }
}
