// What an error of opening, or of a store whose file went, advises is done, and helps.

import Foundation
import Testing
import VarveObjects

private final class Card: ManagedObject {
    static let entityName = "Card"
    struct Columns: Sendable { let title = Column<Card, String>("title", default: "") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Card: Sendable {}

/// The title has another name, without a word about it, and there is a rank without a default.
private final class BareCard: ManagedObject {
    static let entityName = "Card"
    struct Columns: Sendable {
        let headline = Column<BareCard, String>("headline", default: "")
        let rank = Column<BareCard, Int>("rank")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension BareCard: Sendable {}

/// As the advice says.
private final class NamedCard: ManagedObject {
    static let entityName = "Card"
    struct Columns: Sendable {
        let headline = Column<NamedCard, String>("headline", default: "", originalName: "title")
        let rank = Column<NamedCard, Int>("rank", default: 3)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var headline: String { storedValue(Self.columns.headline, \.headline) }
    var rank: Int { storedValue(Self.columns.rank, \.rank) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension NamedCard: Sendable {}

/// The title is not wanted any more.
private final class RankCard: ManagedObject {
    static let entityName = "Card"
    struct Columns: Sendable { let rank = Column<RankCard, Int>("rank", default: 3) }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var rank: Int { storedValue(Self.columns.rank, \.rank) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension RankCard: Sendable {}

private enum Cards: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Card.self] }
}
private enum BareCards: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [BareCard.self] }
}
private enum NamedCards: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [NamedCard.self] }
}
private enum RankCards: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [RankCard.self] }
}
private enum Contradiction: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Card.self, NamedCard.self] }
}

@Suite(.verified) struct AdviceForOpeningTests {
    private func open(
        _ folder: TemporaryFolder,
        _ schema: any VersionedSchema.Type = Cards.self,
        _ options: ContainerOptions = ContainerOptions(),
        _ body: (ManagedObjectContext) throws -> Void = { _ in }
    ) throws {
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: schema,
            options: options
        )
        do { try body(container.newContext()) }
        try container.closeNow()
    }

    private func filled() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try open(folder) { (context) throws in
            Card(in: context).title = "card"
            try context.save()
        }
        return folder
    }

    @Test func aSchemaThatDiffers() throws {
        let folder = try filled()
        for _ in 0..<2 {
            advised(.schemaMismatch, "originalName and new properties a default") {
                try open(folder, BareCards.self)
            }
        }
        // "the store is as it was"
        try open(folder) { (context) throws in
            #expect(try context.fetch(Card.all).map(\.title) == ["card"])
        }
        try open(folder, NamedCards.self) { (context) throws in
            let card = try #require(try context.fetch(NamedCard.all).first)
            #expect(card.headline == "card" && card.rank == 3)
        }
    }

    @Test func aPropertyThatIsToGo() throws {
        let folder = try filled()
        advised(.schemaMismatch, "ContainerOptions.removing") { try open(folder, RankCards.self) }
        try open(folder, RankCards.self, ContainerOptions(removing: ["Card.title"])) {
            (context) throws in
            #expect(try context.fetch(RankCard.all).map(\.rank) == [3])
        }
    }

    @Test func aSchemaOfANewerApp() throws {
        let folder = try filled()
        try open(folder, NamedCards.self)
        advised(.schemaTooNew, "Update the app; the store is as it was") { try open(folder) }
        try open(folder, NamedCards.self) { (context) throws in
            #expect(try context.count(NamedCard.all) == 1)
        }
    }

    @Test func aSchemaThatContradictsItself() throws {
        advised(.invalidSchema, "Correct the entities' declarations") {
            _ = try PersistentContainer.inMemory(schema: Contradiction.self)
        }
        _ = try PersistentContainer.inMemory(schema: Cards.self)
    }

    @Test func pathsThatLeadToNoStore() throws {
        let folder = try TemporaryFolder()
        func open(_ url: URL, _ options: ContainerOptions = ContainerOptions()) throws {
            try PersistentContainer.openNow(at: url, schema: Cards.self, options: options)
                .closeNow()
        }
        let address = try #require(URL(string: "https://example.org/notes.varve"))
        advised(.invalidRequest, "Give the path of a file, such as URL(filePath:") {
            try open(address)
        }
        try open(folder.url.appending(path: "notes.varve"))
        let inner = folder.url.appending(path: "inner")
        advised(.missingFolder, "Make the folder first") {
            try open(inner.appending(path: "notes.varve"))
        }
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
        try open(inner.appending(path: "notes.varve"))
        advised(.ioFailed, "createIfMissing to make a new store") {
            try open(folder.store, ContainerOptions(createIfMissing: false))
        }
        try open(folder.store)
        try open(folder.store, ContainerOptions(createIfMissing: false))
    }

    @Test func aFileOfAnotherKind() throws {
        let folder = try TemporaryFolder()
        let text = Data(repeating: 0x41, count: 50_000)
        try text.write(to: folder.store)
        advised(.notAStore, "Check the path: the file there is left as it is") {
            try open(folder)
        }
        #expect(try Data(contentsOf: folder.store) == text)
        try PersistentContainer.openNow(
            at: folder.url.appending(path: "other.varve"),
            schema: Cards.self
        ).closeNow()
    }

    @Test(.enabled(if: getuid() != 0, "root may write everywhere"))
    func aFolderThatMayNotBeWritten() throws {
        let folder = try filled()
        let path = folder.url.path
        let file = folder.store.path
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: path)
        advised(.permissionDenied, "open with isReadOnly to read only") { try open(folder) }
        try open(folder, Cards.self, ContainerOptions(isReadOnly: true)) { (context) throws in
            #expect(try context.count(Card.all) == 1)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        try open(folder)
    }

    @Test func aStoreWhoseFileWentWhileItWasOpen() throws {
        let (folder, rescue) = (try filled(), try TemporaryFolder())
        let container = try PersistentContainer.openNow(at: folder.store, schema: Cards.self)
        do {
            let context = container.newContext()
            #expect(try context.count(Card.all) == 1)
            try FileManager.default.removeItem(at: folder.store)
            Card(in: context).title = "new"
            advised(.storeGone, "copy the objects that are wanted to a container of another") {
                try context.save()
            }
            // "Edits stand, and reads go on".
            let titles = try context.fetch(Card.all).map(\.title)
            #expect(titles == ["card", "new"])
            try open(rescue) { (copies) throws in
                for title in titles { Card(in: copies).title = title }
                try copies.save()
            }
            context.rollback()
        }
        try? container.closeNow()
        try open(rescue) { (context) throws in #expect(try context.count(Card.all) == 2) }
        // And the place of the old one takes a store again.
        try open(folder) { (context) throws in
            Card(in: context).title = "again"
            try context.save()
        }
    }
}
