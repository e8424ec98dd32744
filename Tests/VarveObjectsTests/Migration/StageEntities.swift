// Two versions of an app for the tests of stages: notes whose rank was a text, with their tags.

import Foundation
import VarveObjects

/// Version 1.
enum Before {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let title = Column<Note, String>("title", default: "")
            let rank = Column<Note, String>("rank", default: "")
            let number = Column<Note, Int>("number", default: 0)
            let picture = Column<Note, Blob?>("picture")
            let tags = ToManyColumn<Note, Tag>("tags", inverse: "notes")
            let folder = ToOneColumn<Note, Folder>("folder", inverse: "notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var title: String {
            get { storedValue(Self.columns.title, \.title) }
            set { setStoredValue(newValue, Self.columns.title, \.title) }
        }
        var picture: Blob? {
            get { storedValue(Self.columns.picture, \.picture) }
            set { setStoredValue(newValue, Self.columns.picture, \.picture) }
        }
        var folder: Folder? {
            get { storedValue(Self.columns.folder, \.folder) }
            set { setStoredValue(newValue, Self.columns.folder, \.folder) }
        }
        var tags: ToMany<Tag> { storedValue(Self.columns.tags, \.tags) }
    }

    final class Tag: ManagedObject {
        static let entityName = "Tag"
        struct Columns: Sendable {
            let name = Column<Tag, String>("name", default: "")
            let notes = ToManyColumn<Tag, Note>("notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var name: String {
            get { storedValue(Self.columns.name, \.name) }
            set { setStoredValue(newValue, Self.columns.name, \.name) }
        }
    }

    final class Folder: ManagedObject {
        static let entityName = "Folder"
        struct Columns: Sendable {
            let name = Column<Folder, String>("name", default: "")
            let notes = ToManyColumn<Folder, Note>("notes", deleteRule: .deny)
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var name: String {
            get { storedValue(Self.columns.name, \.name) }
            set { setStoredValue(newValue, Self.columns.name, \.name) }
        }
    }

    enum Schema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Note.self, Tag.self, Folder.self] }
    }
}

@available(*, unavailable, message: "pass the id or a snapshot")
extension Before.Note: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Before.Tag: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Before.Folder: Sendable {}

/// Version 2: the rank is a number, the title is called headline, and there is an index.
enum After {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let headline = Column<Note, String>("headline", default: "", originalName: "title")
            let rank = Column<Note, Int>("rank", default: 0)
            let number = Column<Note, Int>("number", default: 0)
            let serial = Column<Note, UUID>("serial", default: UUID())
            let picture = Column<Note, Blob?>("picture")
            let tags = ToManyColumn<Note, Tag>("tags", inverse: "notes")
            let folder = ToOneColumn<Note, Folder>("folder", inverse: "notes")
        }
        static let columns = Columns()
        static var indexes: [EntityIndex] { [EntityIndex(columns.rank.ascending)] }
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var number: Int {
            get { storedValue(Self.columns.number, \.number) }
            set { setStoredValue(newValue, Self.columns.number, \.number) }
        }
        var picture: Blob? {
            get { storedValue(Self.columns.picture, \.picture) }
            set { setStoredValue(newValue, Self.columns.picture, \.picture) }
        }
        var folder: Folder? {
            get { storedValue(Self.columns.folder, \.folder) }
            set { setStoredValue(newValue, Self.columns.folder, \.folder) }
        }
        var tags: ToMany<Tag> { storedValue(Self.columns.tags, \.tags) }
    }

    final class Tag: ManagedObject {
        static let entityName = "Tag"
        struct Columns: Sendable {
            let name = Column<Tag, String>("name", default: "")
            let notes = ToManyColumn<Tag, Note>("notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }

    final class Folder: ManagedObject {
        static let entityName = "Folder"
        struct Columns: Sendable {
            let name = Column<Folder, String>("name", default: "")
            let notes = ToManyColumn<Folder, Note>("notes", deleteRule: .deny)
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        var notes: ToMany<Note> { storedValue(Self.columns.notes, \.notes) }
    }

    enum Schema: VersionedSchema {
        static let version = 2
        static var entities: [any ManagedObject.Type] { [Note.self, Tag.self, Folder.self] }
    }
}

@available(*, unavailable, message: "pass the id or a snapshot")
extension After.Note: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension After.Tag: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension After.Folder: Sendable {}

/// A store of version 1: `count` notes of 3 folders and 4 tags, every fifth with a picture, every
/// second of those in a file of its own.
func makeNotes(_ count: Int, at url: URL, options: ContainerOptions = ContainerOptions()) throws {
    let container = try PersistentContainer.openNow(
        at: url,
        schema: Before.Schema.self,
        options: options
    )
    let context = container.newContext()
    try context.batchInsert(Before.Folder.self, 0..<3) { row, number in
        row.name = "folder \(number)"
    }
    try context.batchInsert(Before.Tag.self, 0..<4) { row, number in row.name = "tag \(number)" }
    let folders = try context.fetchIDs(Before.Folder.all)
    let tags = try context.fetchIDs(Before.Tag.all)
    try context.batchInsert(Before.Note.self, 0..<count) { row, number in
        row.title = "note \(number)"
        row.rank = "\(count - number)"
        row.number = number
        row.folder = folders[number % 3]
        row.tags = [tags[number % 4], tags[(number + 1) % 4]]
        if number % 5 == 0 {
            let bytes = pictureBytes(number)
            var writer = try context.makeBlob(externalLimit: number % 2 == 0 ? 10 : 10_000)
            try writer.append(bytes)
            row.picture = try writer.finish()
        }
    }
    try container.closeNow()
}

func pictureBytes(_ number: Int) -> Data {
    Data((0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
}

/// Version 9 of another branch of the app: all that version 1 knows, and a color.
enum LaterApp {
    final class Note: ManagedObject {
        static let entityName = "Note"
        struct Columns: Sendable {
            let title = Column<Note, String>("title", default: "")
            let rank = Column<Note, String>("rank", default: "")
            let number = Column<Note, Int>("number", default: 0)
            let picture = Column<Note, Blob?>("picture")
            let tags = ToManyColumn<Note, Tag>("tags", inverse: "notes")
            let folder = ToOneColumn<Note, Folder>("folder", inverse: "notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }

    final class Tag: ManagedObject {
        static let entityName = "Tag"
        struct Columns: Sendable {
            let name = Column<Tag, String>("name", default: "")
            let notes = ToManyColumn<Tag, Note>("notes")
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }

    final class Folder: ManagedObject {
        static let entityName = "Folder"
        struct Columns: Sendable {
            let name = Column<Folder, String>("name", default: "")
            let color = Column<Folder, String?>("color")
            let notes = ToManyColumn<Folder, Note>("notes", deleteRule: .deny)
        }
        static let columns = Columns()
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
    }

    enum Schema: VersionedSchema {
        static let version = 9
        static var entities: [any ManagedObject.Type] { [Note.self, Tag.self, Folder.self] }
    }
}

@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterApp.Note: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterApp.Tag: Sendable {}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterApp.Folder: Sendable {}
