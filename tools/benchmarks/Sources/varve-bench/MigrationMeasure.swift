// A migration in stages of many rows, beside reading the same rows.
//
// Invariants
// - What is read is everything that the migration has to read: every value of every row.

import Foundation
import VarveObjects

/// The app before: a rank that is a text.
private enum MeasuredBefore {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let title = Column<Note, String>("title", default: "")
            let rank = Column<Note, String>("rank", default: "")
            let number = Column<Note, Int>("number", default: 0)
            let body = Column<Note, String>("body", default: "")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var title: String { storedValue(Self.columns.title, \.title) }
        var rank: String { storedValue(Self.columns.rank, \.rank) }
        var number: Int { storedValue(Self.columns.number, \.number) }
        var body: String { storedValue(Self.columns.body, \.body) }
    }
    enum Schema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Note.self] }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension MeasuredBefore.Note: Sendable {}

/// The app after: an attribute added, one renamed, an index, the rank a number.
private enum MeasuredAfter {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let headline = Column<Note, String>("headline", default: "", originalName: "title")
            let rank = Column<Note, Int>("rank", default: 0)
            let number = Column<Note, Int>("number", default: 0)
            let body = Column<Note, String>("body", default: "")
            let isPinned = Column<Note, Bool>("isPinned", default: false)
        }
        static let columns = Columns()
        static var indexes: [EntityIndex] { [EntityIndex(columns.rank.ascending)] }
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }
    enum Schema: VersionedSchema {
        static let version = 2
        static var entities: [any ManagedObject.Type] { [Note.self] }
    }
    enum ByNames: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: Schema.self) { migration in
                    try migration.convert("Note", "rank") { (rank: String) in Int(rank) ?? -1 }
                }
            ]
        }
    }
    enum ByClass: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: Schema.self) { migration in
                    try migration.update(Note.self) { old, new in
                        new.rank = Int(try old["rank"] as String) ?? -1
                    }
                }
            ]
        }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension MeasuredAfter.Note: Sendable {}

/// Makes a store, reads it, migrates copies of it.
struct MigrationMeasure {
    let folder: URL
    let rows: Int

    /// Prints milliseconds, and the migration's time in times of reading.
    func run() throws {
        let store = folder.appending(path: "migration.varve")
        try make(store)
        let objects = try time { try readObjects(store) }
        let values = try time { try readValues(store) }
        print("\(rows) rows: read as objects \(objects) ms, as values \(values) ms")
        let plans: [(String, any MigrationPlan.Type)] = [
            ("by names", MeasuredAfter.ByNames.self), ("by class", MeasuredAfter.ByClass.self),
        ]
        for (name, plan) in plans {
            let copy = folder.appending(path: "copy.varve")
            try? FileManager.default.removeItem(at: copy)
            try FileManager.default.copyItem(at: store, to: copy)
            let spent = Spent()
            var options = ContainerOptions()
            options.compactsAutomatically = false
            options.onMigrationProgress = { spent.note($0.step) }
            let migration = try time {
                let container = try PersistentContainer.openNow(
                    at: copy,
                    schema: MeasuredAfter.Schema.self,
                    migrations: plan,
                    options: options
                )
                try container.closeNow()
            }
            print(
                "migration \(name): \(migration) ms,",
                "\(migration / objects) x objects, \(migration / values) x values;",
                "peak \(peakMegabytes()) MB; \(spent.text)"
            )
        }
    }

    private func make(_ store: URL) throws {
        let container = try PersistentContainer.openNow(
            at: store,
            schema: MeasuredBefore.Schema.self
        )
        let body = String(repeating: "lorem ipsum ", count: 5)
        try container.newContext().batchInsert(MeasuredBefore.Note.self, 0..<rows) { row, number in
            row.title = "note number \(number)"
            row.rank = "\(number &* 7_919 % 1_000_003)"
            row.number = number
            row.body = body
        }
        try container.closeNow()
    }

    private func readObjects(_ store: URL) throws {
        let container = try PersistentContainer.openNow(
            at: store,
            schema: MeasuredBefore.Schema.self
        )
        let context = container.newContext()
        var sum = 0
        for note in try context.fetchBatched(MeasuredBefore.Note.all, size: 1_000) {
            sum &+= note.title.utf8.count &+ note.rank.utf8.count &+ note.number
            sum &+= note.body.utf8.count
        }
        precondition(sum != 0)
        try container.closeNow()
    }

    private func readValues(_ store: URL) throws {
        let container = try PersistentContainer.openNow(
            at: store,
            schema: MeasuredBefore.Schema.self
        )
        let read = try container.newContext().select(MeasuredBefore.Note.all) {
            ($0.title, $0.rank, $0.number, $0.body)
        }
        precondition(read.count == rows)
        try container.closeNow()
    }

    private func time(_ body: () throws -> Void) throws -> Double {
        let seconds = try ContinuousClock().measure(body) / .seconds(1)
        return (seconds * 1_000).rounded()
    }

    private func peakMegabytes() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
        let kilobytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }
        return (kilobytes ?? 0) / 1_024
    }
}

/// How long each step of a migration took.
private final class Spent: @unchecked Sendable {
    private let clock = ContinuousClock()
    private var steps: [(step: String, start: ContinuousClock.Instant)] = []

    func note(_ step: String) {
        if steps.last?.step != step { steps.append((step, clock.now)) }
    }

    var text: String {
        var ends = steps.dropFirst().map(\.start)
        ends.append(clock.now)
        return zip(steps, ends).map { step, end in
            let milliseconds = (end - step.start) / .milliseconds(1)
            return "\(step.step) \(Int(milliseconds)) ms"
        }.joined(separator: ", ")
    }
}
