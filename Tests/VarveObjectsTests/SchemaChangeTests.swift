// A store and an app whose schemas differ, as an app meets it: nothing goes silently, defaults that
// differ are made for each row, names are found again.

import Foundation
import Testing
import VarveBase
import VarveObjects

private final class Memo: ManagedObject {
    static let entityName = "Memo"
    struct Columns: Sendable {
        let title = Column<Memo, String>("title", default: "")
        let rank = Column<Memo, Int?>("rank")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var rank: Int? {
        get { storedValue(Self.columns.rank, \.rank) }
        set { setStoredValue(newValue, Self.columns.rank, \.rank) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Memo: Sendable {}

private final class LaterMemo: ManagedObject {
    static let entityName = "Memo"
    static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.serial)] }
    struct Columns: Sendable {
        let title = Column<LaterMemo, String>("title", default: "")
        let rank = Column<LaterMemo, Int?>("rank")
        let serial = Column<LaterMemo, UUID>("serial", default: UUID())
        let made = Column<LaterMemo, Date>("made", default: Date())
        let kind = Column<LaterMemo, Int>("kind", default: 7)
        let flag = Column<LaterMemo, Bool>("flag", default: Bool.random())
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var rank: Int? {
        get { storedValue(Self.columns.rank, \.rank) }
        set { setStoredValue(newValue, Self.columns.rank, \.rank) }
    }
    var serial: UUID {
        get { storedValue(Self.columns.serial, \.serial) }
        set { setStoredValue(newValue, Self.columns.serial, \.serial) }
    }
    var made: Date {
        get { storedValue(Self.columns.made, \.made) }
        set { setStoredValue(newValue, Self.columns.made, \.made) }
    }
    var kind: Int {
        get { storedValue(Self.columns.kind, \.kind) }
        set { setStoredValue(newValue, Self.columns.kind, \.kind) }
    }
    var flag: Bool {
        get { storedValue(Self.columns.flag, \.flag) }
        set { setStoredValue(newValue, Self.columns.flag, \.flag) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LaterMemo: Sendable {}

private final class Page: ManagedObject {
    static let entityName = "Page"
    static var originalEntityNames: [String] { ["Sheet", "Memo"] }
    struct Columns: Sendable {
        let headline = Column<Page, String>(
            "headline",
            default: "",
            originalName: "heading",
            "title"
        )
        let rank = Column<Page, Int?>("rank")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var headline: String {
        get { storedValue(Self.columns.headline, \.headline) }
        set { setStoredValue(newValue, Self.columns.headline, \.headline) }
    }
    var rank: Int? {
        get { storedValue(Self.columns.rank, \.rank) }
        set { setStoredValue(newValue, Self.columns.rank, \.rank) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Page: Sendable {}

private final class Other: ManagedObject {
    static let entityName = "Other"
    struct Columns: Sendable {
        let name = Column<Other, String>("name", default: "")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Other: Sendable {}

private enum First: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Memo.self, Other.self] }
}
private enum Forgetful: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Other.self] }
}
private enum Later: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [LaterMemo.self, Other.self] }
}
private enum MuchLater: VersionedSchema {
    static let version = 3
    static var entities: [any ManagedObject.Type] { [Page.self, Other.self] }
}

@Suite(.verified) struct SchemaChangeTests {
    private func filled(_ count: Int = 100) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let container = try PersistentContainer.openNow(at: folder.store, schema: First.self)
        let context = container.newContext()
        for number in 0..<count {
            let memo = Memo(in: context)
            memo.title = "memo \(number)"
            memo.rank = number
        }
        try context.save()
        try container.closeNow()
        return folder
    }

    private func refusal(
        _ folder: TemporaryFolder,
        _ schema: any VersionedSchema.Type,
        _ options: ContainerOptions = ContainerOptions()
    ) -> StoreError? {
        do {
            try PersistentContainer.openNow(at: folder.store, schema: schema, options: options)
                .closeNow()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    @Test func anEntityThatTheSchemaForgotKeepsItsRows() throws {
        let folder = try filled()
        let before = try Data(contentsOf: folder.store)
        let error = refusal(folder, Forgetful.self)
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains("Memo has 100 objects in the store") == true)
        #expect(error?.details.contains { $0.message.contains("Memo: drop entity") } == true)
        #expect(error?.suggestion?.contains("ContainerOptions.removing") == true)
        #expect(try Data(contentsOf: folder.store).starts(with: before.prefix(4_096)))
        do {
            let container = try PersistentContainer.openNow(at: folder.store, schema: First.self)
            #expect(try container.newContext().count(Memo.all) == 100)
            try container.closeNow()
        }
        // The way out that the error names.
        #expect(refusal(folder, Forgetful.self, ContainerOptions(removing: ["Memo"])) == nil)
        let container = try PersistentContainer.openNow(at: folder.store, schema: First.self)
        #expect(try container.newContext().count(Memo.all) == 0)
        try container.closeNow()
    }

    @Test func aDefaultThatDiffersIsMadeForEachOldRow() throws {
        let folder = try filled()
        let container = try PersistentContainer.openNow(at: folder.store, schema: Later.self)
        let context = container.newContext()
        let memos = try context.fetch(LaterMemo.all)
        #expect(Set(memos.map(\.serial)).count == 100)
        #expect(Set(memos.map(\.flag)).count == 2)
        #expect(memos.allSatisfy { $0.kind == 7 && abs($0.made.timeIntervalSinceNow) < 600 })
        let serials = memos.map(\.serial)
        try container.closeNow()
        let again = try PersistentContainer.openNow(at: folder.store, schema: Later.self)
        let later = again.newContext()
        #expect(try later.fetch(LaterMemo.all).map(\.serial) == serials)
        try again.closeNow()
    }

    @Test func namesAreFoundAgainOverASkippedVersion() throws {
        let folder = try filled(3)
        let container = try PersistentContainer.openNow(at: folder.store, schema: MuchLater.self)
        let context = container.newContext()
        let pages = try context.fetch(Page.all)
        #expect(pages.map(\.headline) == ["memo 0", "memo 1", "memo 2"])
        try container.closeNow()
    }
}
