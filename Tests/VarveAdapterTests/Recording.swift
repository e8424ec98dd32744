// Who hears log lines and metrics in the tests, and an entity to work with.

import Foundation
import Logging
import Metrics
import Synchronization
import VarveObjects

/// A line that was logged.
struct LoggedLine: Sendable {
    let level: Logger.Level
    let message: String
    let metadata: Logger.Metadata

    /// A value of the metadata, without the prefix of its key.
    func value(_ key: String) -> String? { metadata["varve.\(key)"].map { "\($0)" } }
    func number(_ key: String) -> Int? { value(key).flatMap { Int($0) } }
    /// All that was written.
    var text: String { "\(message) \(metadata.sorted { $0.key < $1.key })" }
}

/// Keeps what is logged.
final class LineLog: Sendable {
    private let kept = Mutex<[LoggedLine]>([])

    func logger(_ level: Logger.Level = .trace) -> Logger {
        var logger = Logger(label: "varve") { _ in Handler(log: self) }
        logger.logLevel = level
        return logger
    }

    /// All lines since the last call.
    func take() -> [LoggedLine] {
        kept.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }

    private struct Handler: LogHandler {
        let log: LineLog
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            let line = LoggedLine(
                level: event.level,
                message: "\(event.message)",
                metadata: event.metadata ?? [:]
            )
            log.kept.withLock { $0.append(line) }
        }
    }
}

/// Keeps what is counted and timed, by label and dimensions: `varve_failures{code=conflict}`.
final class MetricLog: MetricsFactory {
    private let counted = Mutex<[String: Int64]>([:])
    private let timed = Mutex<[String: [Int64]]>([:])

    var counters: [String: Int64] { counted.withLock(\.self) }
    /// Nanoseconds.
    var timers: [String: [Int64]] { timed.withLock(\.self) }
    /// Every metric that ever got a value.
    var names: Set<String> { Set(counters.keys).union(timers.keys) }

    private static func name(_ label: String, _ dimensions: [(String, String)]) -> String {
        if dimensions.isEmpty { return label }
        return "\(label){\(dimensions.map { "\($0)=\($1)" }.joined(separator: ","))}"
    }

    /// Passes each value on.
    private final class Handler: CounterHandler, TimerHandler {
        let note: @Sendable (Int64) -> Void
        init(_ note: @escaping @Sendable (Int64) -> Void) { self.note = note }
        func increment(by amount: Int64) { note(amount) }
        func reset() {}
        func recordNanoseconds(_ duration: Int64) { note(duration) }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let name = Self.name(label, dimensions)
        return Handler { [self] amount in counted.withLock { $0[name, default: 0] += amount } }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let name = Self.name(label, dimensions)
        return Handler { [self] time in timed.withLock { $0[name, default: []].append(time) } }
    }

    func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler { NOOPMetricsHandler.instance }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}

// MARK: Something to keep

/// A person's note: what it holds must be in no line and no metric.
final class Note: ManagedObject {
    static let entityName = "Note"
    struct Columns: Sendable {
        let title = Column<Note, String>("title", default: "")
        let number = Column<Note, Int>("number", default: 0)
        let folder = ToOneColumn<Note, Folder>("folder", inverse: "notes")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var number: Int {
        get { storedValue(Self.columns.number, \.number) }
        set { setStoredValue(newValue, Self.columns.number, \.number) }
    }
    var folder: Folder? {
        get { storedValue(Self.columns.folder, \.folder) }
        set { setStoredValue(newValue, Self.columns.folder, \.folder) }
    }
    func validate(_ report: inout ValidationReport) {
        if number < 0 { report.fail("number", "must not be negative") }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Note: Sendable {}

final class Folder: ManagedObject {
    static let entityName = "Folder"
    struct Columns: Sendable {
        let name = Column<Folder, String>("name", default: "")
        let notes = ToManyColumn<Folder, Note>("notes", inverse: "folder")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var notes: ToMany<Note> { storedValue(Self.columns.notes, \.notes) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Folder: Sendable {}

enum NoteSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Note.self, Folder.self] }
}

/// The same with a rank, which a stage of a migration fills.
enum LaterNote {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let title = Column<LaterNote.Note, String>("title", default: "")
            let number = Column<LaterNote.Note, Int>("number", default: 0)
            let rank = Column<LaterNote.Note, Int>("rank", default: 1)
            let folder = ToOneColumn<LaterNote.Note, LaterNote.Folder>("folder", inverse: "notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var rank: Int {
            get { storedValue(Self.columns.rank, \.rank) }
            set { setStoredValue(newValue, Self.columns.rank, \.rank) }
        }
    }
    final class Folder: ManagedObject {
        static let entityName = "Folder"
        struct Columns: Sendable {
            let name = Column<LaterNote.Folder, String>("name", default: "")
            let notes = ToManyColumn<LaterNote.Folder, LaterNote.Note>("notes", inverse: "folder")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }
    enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: Schema.self) { migration in
                    try migration.update(LaterNote.Note.self) { old, new in
                        new.rank = try old["number"] as Int + 1
                    }
                }
            ]
        }
    }
    enum Schema: VersionedSchema {
        static let version = 2
        static var entities: [any ManagedObject.Type] {
            [LaterNote.Note.self, LaterNote.Folder.self]
        }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterNote.Note: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterNote.Folder: Sendable {}

/// A folder that is removed when the test lets go of it.
final class TemporaryFolder: Sendable {
    let url: URL
    init() throws {
        url = FileManager.default.temporaryDirectory
            .appending(path: "varve-adapters-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(at: url) }
    var store: URL { url.appending(path: "notes.varve") }
}

/// Work of each kind that a container tells of, once: what fails, too.
///
/// 1. saves 3 notes and a folder, changes 2 and deletes 1, and is refused a fourth;
/// 2. inserts, updates and deletes 100 notes by batches, one of which fails;
/// 3. asks for objects and counts, follows a relationship object by object, and edits an object of
///    a context that nobody held;
/// 4. compacts, deletes one by a batch, backs up twice, restores, and migrates the store.
@MainActor func work(_ folder: TemporaryFolder, _ options: ContainerOptions) async throws {
    var options = options
    options.repeatedFaultsMax = 5
    let container = try PersistentContainer.openNow(
        at: folder.store,
        schema: NoteSchema.self,
        options: options
    )
    let context = container.newContext(author: "Ada Lovelace")
    try editNotes(context)
    try context.batchInsert(Note.self, count: 100) { row, number in
        row.title = "secret \(number)"
        row.number = 1_000 + number
    }
    try context.batchUpdate(Note.where { $0.number >= 1_090 }) { row in row.number += 500 }
    try context.batchDelete(Note.where { $0.number >= 1_500 })
    _ = try? context.batchUpdate(Note.all) { row in row.number = -1 }
    try readNotes(container)
    forget(container)
    try await container.compact()
    // Something for the checkpoint with which a store is closed.
    try context.batchDelete(Note.where { $0.number == 6_000 })
    let backup = folder.url.appending(path: "backup.varve")
    try await container.backup(to: backup)
    try await container.backup(to: backup)
    try container.closeNow()
    let restored = folder.url.appending(path: "restored.varve")
    try await PersistentContainer.restore(from: backup, to: restored, trace: options.trace)
    _ = try? await PersistentContainer.restore(from: backup, to: restored, trace: options.trace)
    try PersistentContainer.openNow(
        at: restored,
        schema: LaterNote.Schema.self,
        migrations: LaterNote.Plan.self,
        options: options
    ).closeNow()
}

private func editNotes(_ context: ManagedObjectContext) throws {
    let folder = Folder(in: context)
    folder.name = "diary"
    let notes = (0..<3).map { number in
        let note = Note(in: context)
        note.title = "secret \(number)"
        note.folder = folder
        return note
    }
    try context.save()
    notes[0].number = 1
    notes[1].number = 2
    context.delete(notes[2])
    try context.save()
    notes[0].number = -1
    _ = try? context.save()
    context.rollback()
}

/// Edits an object whose context has ended with another edit.
private func forget(_ container: PersistentContainer) {
    func left() -> Note {
        let note = Note(in: container.newContext(author: "Ada Lovelace"))
        note.title = "secret"
        return note
    }
    left().title = "lost"
}

@MainActor private func readNotes(_ container: PersistentContainer) throws {
    // Each note in a folder of its own, for the relationship that is read one by one.
    let maker = container.newContext(author: "Ada Lovelace")
    for number in 0..<20 {
        let note = Note(in: maker)
        note.number = 5_000 + number
        note.folder = Folder(in: maker)
        note.folder?.name = "folder \(number)"
    }
    try maker.save()
    let view = container.viewContext
    view.advance()
    let found = try view.fetch(Note.where { $0.title == "secret 7" })
    precondition(found.count == 1)
    _ = try view.count(Note.where { $0.number >= 5_000 })
    container.trimMemory()
    for note in try view.fetch(Note.where { $0.number >= 5_000 }) { _ = note.folder?.name }
    // Another context moves on to what this one saves.
    maker.advance()
    let late = Note(in: view)
    late.number = 6_000
    try view.save()
    maker.advance()
}
