// Saves, batches and closes from closures that run while the store is being written: they would
// wait for themselves.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveObjects

/// Of no schema here.
private final class Stranger: ManagedObject {
    static let entityName = "Stranger"
    struct Columns: Sendable {
        let name = Column<Stranger, String>("name", default: "unknown")
        let age = Column<Stranger, Int?>("age")
        let friend = ToOneColumn<Stranger, Stranger>("friend")
        let friends = ToManyColumn<Stranger, Stranger>("friends")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var age: Int? {
        get { storedValue(Self.columns.age, \.age) }
        set { setStoredValue(newValue, Self.columns.age, \.age) }
    }
    var friend: Stranger? {
        get { storedValue(Self.columns.friend, \.friend) }
        set { setStoredValue(newValue, Self.columns.friend, \.friend) }
    }
    var friends: ToMany<Stranger> { storedValue(Self.columns.friends, \.friends) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Stranger: Sendable {}

/// Edits itself while it is checked.
private final class Meddler: ManagedObject {
    static let entityName = "Meddler"
    struct Columns: Sendable { let name = Column<Meddler, String>("name", default: "") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    func validate(_ report: inout ValidationReport) { if name == "meddle" { name = "changed" } }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Meddler: Sendable {}

private enum MeddlerSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Meddler.self] }
}

@Suite(.verified) struct ReentrantSaveTests {
    @Test func validateEditsNothingInABatchEither() throws {
        let container = try PersistentContainer.inMemory(schema: MeddlerSchema.self)
        let context = container.newContext()
        try context.batchInsert(Meddler.self, count: 1) { row, _ in row.name = "quiet" }
        #expect(
            code {
                _ = try context.batchInsert(Meddler.self, count: 1) { row, _ in
                    row.name = "meddle"
                }
            } == .reentrantSave
        )
        #expect(
            code { _ = try context.batchUpdate(Meddler.all) { row in row.name = "meddle" } }
                == .reentrantSave
        )
        #expect(!context.hasChanges && context.refusedEdits.isEmpty)
        #expect(try context.fetch(Meddler.all).map(\.name) == ["quiet"])
        try context.save()
    }

    /// Each way to write, from a closure that has the writer lock.
    private func everyWayToWrite(
        _ container: PersistentContainer,
        _ context: ManagedObjectContext
    ) -> [StoreError.Code?] {
        let other = container.newContext()
        Item(in: other).title = "other"
        defer { other.rollback() }
        return [
            code { try other.save() },
            code { _ = try context.batchInsert(Item.self, count: 1) { _, _ in } },
            code { _ = try other.batchInsert(Item.self, count: 1) { _, _ in } },
            code { _ = try other.batchUpdate(Item.all) { _ in } },
            code { _ = try other.batchDelete(Item.all) },
            code { try container.closeNow(discardingEdits: true) },
        ]
    }

    @Test func fromTheClosuresOfABatch() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        var codes: [StoreError.Code?] = []
        try context.batchInsert(Item.self, count: 1) { row, _ in
            row.title = "new"
            codes += everyWayToWrite(container, context)
        }
        try context.batchUpdate([ids[0]]) { row in
            row.title = "changed"
            codes += everyWayToWrite(container, context)
            Item(in: context).title = "of the batch's own context"
            codes.append(code { try context.save() })
            context.rollback()
        }
        #expect(codes.count == 13 && codes.allSatisfy { $0 == .reentrantSave })
        // The batches went on, and nothing else happened.
        #expect(try context.count(Item.all) == 4)
        #expect(try context.count(Item.where { $0.title == "changed" }) == 1)
        // Behind them everything works again.
        Item(in: context).title = "last"
        try context.save()
        try container.closeNow()
    }

    @Test func anErrorThatIsNotCaughtEndsTheBatch() throws {
        let container = try memory()
        let context = container.newContext()
        let other = container.newContext()
        Item(in: other).title = "other"
        #expect(
            code {
                _ = try context.batchInsert(Item.self, count: 3) { row, _ in
                    row.title = "new"
                    try other.save()
                }
            } == .reentrantSave
        )
        #expect(try context.count(Item.all) == 0)
        try other.save()
        context.advance()
        #expect(try context.count(Item.all) == 1)
    }

    @Test func fromAMergePolicy() throws {
        let container = try memory()
        let ids = try makeItems(1, in: container)
        let context = container.newContext()
        try context.object(with: ids[0]).title = "mine"
        let theirs = container.newContext()
        try theirs.object(with: ids[0]).title = "theirs"
        try theirs.save()
        let codes = Shared<[StoreError.Code?]>([])
        try context.save(
            mergePolicy: .custom { _ in
                let other = container.newContext()
                Item(in: other).title = "other"
                let found = code { try other.save() }
                codes.withLock { $0.append(found) }
                other.rollback()
                // Reading is allowed.
                let count = try? other.count(Item.all)
                return count == 1 ? .objectWinsByProperty : .rollback
            }
        )
        #expect(codes.withLock { $0 } == [.reentrantSave])
        let fresh = container.newContext()
        #expect(try fresh.fetch(Item.all).map(\.title) == ["mine"])
    }

    @Test func anotherThreadWaitsItsTurn() async throws {
        let container = try memory()
        let context = container.newContext()
        let saved = Shared<Task<Void, any Error>?>(nil)
        try context.batchInsert(Item.self, count: 1) { row, _ in
            row.title = "new"
            let task = Task.detached {
                try await container.performBackgroundTask { context in
                    Item(in: context).title = "beside"
                    try context.save()
                }
            }
            saved.withLock { $0 = task }
        }
        try await saved.withLock { $0 }?.value
        #expect(try container.newContext().count(Item.all) == 2)
    }

    // MARK: Entities that the schema does not list

    @Test func anObjectOfAnUnlistedEntity() throws {
        let container = try memory()
        let context = container.newContext()
        Item(in: context).title = "good"
        let stranger = Stranger(in: context)
        stranger.name = "set"
        stranger.age = 3
        let second = Stranger(in: context)
        stranger.friend = second
        stranger.friends.append(second)
        // It belongs to nobody and has no values.
        #expect(stranger.context == nil && !stranger.hasChanges && !stranger.isInserted)
        #expect(stranger.name == "" && stranger.age == nil && stranger.friend == nil)
        #expect(stranger.friends.isEmpty && stranger.friends.ids == [])
        #expect(stranger.description.contains("Stranger"))
        _ = stranger.snapshot()
        context.refresh(stranger, mergeChanges: true)
        #expect(code { try context.load(stranger) } == .objectNotFound)
        let refused = context.refusedEdits
        #expect(refused.map(\.error.code) == [.unknownEntity, .unknownEntity])
        #expect(refused.first?.object == stranger.objectID && refused.first?.property == nil)

        #expect(code { try context.save() } == .unknownEntity)
        #expect(code { _ = try context.fetch(Stranger.all) } == .unknownEntity)
        #expect(
            code { _ = try context.batchInsert(Stranger.self, count: 1) { _, _ in } }
                == .unknownEntity
        )
        // The way out that the error names.
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(try context.fetch(Item.all).map(\.title) == ["good"])
        withExtendedLifetime((stranger, second)) {}
    }
}
