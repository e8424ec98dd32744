// The app before and after a migration that the layer `migrate` kills, and what its store holds.

import Foundation
import VarveObjects

/// The app before: a rank that is a text, a long text in the row.
enum AppBefore {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let title = Column<Note, String>("title", default: "")
            let rank = Column<Note, String>("rank", default: "")
            let number = Column<Note, Int>("number", default: 0)
            let body = Column<Note, String>("body", default: "")
            let picture = Column<Note, Blob?>("picture")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var title: String { storedValue(Self.columns.title, \.title) }
        var rank: String { storedValue(Self.columns.rank, \.rank) }
        var number: Int { storedValue(Self.columns.number, \.number) }
        var body: String { storedValue(Self.columns.body, \.body) }
        var picture: Blob? { storedValue(Self.columns.picture, \.picture) }
    }
    enum Schema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Note.self] }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension AppBefore.Note: Sendable {}

/// The app after: an attribute renamed, one added, an index, a rank that is a number, and every
/// fourth long text in a blob.
enum AppAfter {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let headline = Column<Note, String>("headline", default: "", originalName: "title")
            let rank = Column<Note, Int>("rank", default: 0)
            let number = Column<Note, Int>("number", default: 0)
            let body = Column<Note, String>("body", default: "")
            let text = Column<Note, Blob?>("text")
            let picture = Column<Note, Blob?>("picture")
            let isPinned = Column<Note, Bool>("isPinned", default: true)
        }
        static let columns = Columns()
        static var indexes: [EntityIndex] { [EntityIndex(columns.rank.ascending)] }
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var headline: String { storedValue(Self.columns.headline, \.headline) }
        var rank: Int {
            get { storedValue(Self.columns.rank, \.rank) }
            set { setStoredValue(newValue, Self.columns.rank, \.rank) }
        }
        var number: Int { storedValue(Self.columns.number, \.number) }
        var body: String {
            get { storedValue(Self.columns.body, \.body) }
            set { setStoredValue(newValue, Self.columns.body, \.body) }
        }
        var text: Blob? {
            get { storedValue(Self.columns.text, \.text) }
            set { setStoredValue(newValue, Self.columns.text, \.text) }
        }
        var picture: Blob? { storedValue(Self.columns.picture, \.picture) }
        var isPinned: Bool { storedValue(Self.columns.isPinned, \.isPinned) }
    }
    enum Schema: VersionedSchema {
        static let version = 2
        static var entities: [any ManagedObject.Type] { [Note.self] }
    }
    enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: Schema.self) { migration in
                    try migration.update(Note.self) { old, new in
                        new.rank = Int(try old["rank"] as String) ?? -1
                        let number = try old["number"] as Int
                        guard Notes.isMoved(number) else { return }
                        let body = try old["body"] as String
                        new.text = try migration.makeBlob(
                            Data(body.utf8),
                            externalLimit: Notes.externalLimit(number)
                        )
                        new.body = ""
                    }
                }
            ]
        }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension AppAfter.Note: Sendable {}

/// What the notes of a store are: all of it follows from their numbers and a seed.
struct Notes {
    let seed: UInt64
    let count: Int

    func title(_ number: Int) -> String { "note \(number) of \(seed)" }
    func rank(_ number: Int) -> Int { number &* 7_919 % 1_000_003 }
    func body(_ number: Int) -> String {
        String(repeating: "body \(number) of \(seed), ", count: 10 + number % 60)
    }
    func picture(_ number: Int) -> Data? {
        if number % 10 != 3 { return nil }
        return Data((0..<(700 + number % 500)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
    }

    /// Whether the migration moves the long text into a blob.
    static func isMoved(_ number: Int) -> Bool { number % 4 == 1 }

    /// Some blobs are files, the others lie in the log.
    static func externalLimit(_ number: Int) -> Int { number % 40 == 13 ? 100 : 102_400 }

    /// Makes the store as the app before has it.
    func make(_ url: URL) throws {
        let container = try PersistentContainer.openNow(at: url, schema: AppBefore.Schema.self)
        let context = container.newContext()
        try context.batchInsert(AppBefore.Note.self, 0..<count) { row, number in
            row.title = title(number)
            row.rank = "\(rank(number))"
            row.number = number
            row.body = body(number)
            guard let bytes = picture(number) else { return }
            var writer = try context.makeBlob(externalLimit: Self.externalLimit(number))
            try writer.append(bytes)
            row.picture = try writer.finish()
        }
        try container.closeNow()
    }

    /// Whether the store is the new one. Throws where it is neither.
    func isMigrated(_ url: URL) throws -> Bool {
        do {
            let old = try PersistentContainer.openNow(at: url, schema: AppBefore.Schema.self)
            try compareOld(old)
            try old.closeNow()
            return false
        } catch let error as StoreError where error.code == .schemaTooNew {
            // Without the plan: nothing may be left to do.
            let new = try PersistentContainer.openNow(at: url, schema: AppAfter.Schema.self)
            try compareNew(new)
            try new.closeNow()
            return true
        }
    }

    private func compareOld(_ container: PersistentContainer) throws {
        let context = container.newContext()
        let notes = try context.fetchBatched(
            AppBefore.Note.all.sorted { [$0.number.ascending] },
            size: 1_000
        )
        guard notes.count == count else { throw Violation("\(notes.count) of \(count) old rows") }
        for (number, note) in notes.enumerated() {
            guard note.number == number, note.title == title(number),
                note.rank == "\(rank(number))", note.body == body(number),
                try note.picture?.readAll() == picture(number)
            else { throw Violation("old note \(number) is not as it was saved") }
        }
    }

    private func compareNew(_ container: PersistentContainer) throws {
        let context = container.newContext()
        let notes = try context.fetchBatched(
            AppAfter.Note.all.sorted { [$0.number.ascending] },
            size: 1_000
        )
        guard notes.count == count else { throw Violation("\(notes.count) of \(count) new rows") }
        for (number, note) in notes.enumerated() {
            let text = Self.isMoved(number) ? Data(body(number).utf8) : nil
            guard note.number == number, note.headline == title(number), note.isPinned,
                note.rank == rank(number), note.body == (text == nil ? body(number) : ""),
                try note.text?.readAll() == text,
                try note.picture?.readAll() == picture(number)
            else { throw Violation("new note \(number) is not what the migration makes") }
        }
        // The index that the migration built leads to all of them.
        let highest = try context.count(AppAfter.Note.where { $0.rank >= 0 })
        guard highest == count else { throw Violation("the index has \(highest) of \(count)") }
    }

    /// Blob files that the store needs.
    func files(isMigrated: Bool) -> Int {
        var files: Set<Data> = []
        for number in 0..<count where Self.externalLimit(number) == 100 {
            if let picture = picture(number) { files.insert(picture) }
            if isMigrated, Self.isMoved(number) { files.insert(Data(body(number).utf8)) }
        }
        return files.count
    }
}
