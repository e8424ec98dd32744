// Contexts of the past: what they show, and that they stay and save nothing.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveEngine
import VarveIO
import VarveRecords

@testable import VarveObjects

private final class OldNote: ManagedObject {
    static let entityName = "Note"
    struct Columns: Sendable { let text = Column<OldNote, String>("text", default: "") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var text: String {
        get { storedValue(Self.columns.text, \.text) }
        set { setStoredValue(newValue, Self.columns.text, \.text) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension OldNote: Sendable {}

private final class NewNote: ManagedObject {
    static let entityName = "Note"
    struct Columns: Sendable {
        let text = Column<NewNote, String>("text", default: "")
        let rating = Column<NewNote, Int>("rating", default: 3)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var text: String {
        get { storedValue(Self.columns.text, \.text) }
        set { setStoredValue(newValue, Self.columns.text, \.text) }
    }
    var rating: Int {
        get { storedValue(Self.columns.rating, \.rating) }
        set { setStoredValue(newValue, Self.columns.rating, \.rating) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension NewNote: Sendable {}

private enum OldSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [OldNote.self] }
}
private enum NewSchema: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [NewNote.self] }
}

@Suite(.verified) struct PastContextTests {
    @Test func `A context of the past shows values, lists, relationships and blobs of then`()
        throws
    {
        let folder = try TemporaryFolder()
        let container = try folder.open(historyOptions(.all))
        let context = container.newContext()
        let (item, other) = (Item(in: context), Item(in: context))
        let (tag, second) = (Tag(in: context), Tag(in: context))
        let picture = Picture(in: context)
        item.title = "then"
        item.number = 1
        other.number = 2
        item.tags.append(second)
        item.tags.append(tag)
        item.picture = picture
        var writer = try context.makeBlob()
        try writer.append(Data(repeating: 7, count: 3_000))
        picture.data = try writer.finish()
        let then = try #require(try context.save().commit)
        item.title = "now"
        item.number = 5
        item.tags.remove(second)
        picture.data = nil
        context.delete(other)
        try context.save()
        for step in 0..<3 { try saveTitle("later \(step)", in: container) }
        for point in [HistoryPoint.commit(then), .token(try container.historyToken(at: then))] {
            let past = try container.newContext(at: point)
            #expect(past.commit == then && past.isOfThePast && !past.automaticallyMergesChanges)
            let old = try #require(try past.existingObject(with: item.id))
            #expect(old.title == "then")
            #expect(old.tags.map(\.id) == [second.id, tag.id])
            #expect(Set(try #require(old.tags.first).items.map(\.id)) == [item.id])
            let blob = try #require(old.picture?.data)
            #expect(try blob.read(0..<blob.length) == Data(repeating: 7, count: 3_000))
            #expect(try past.existingObject(with: other.id)?.number == 2)
            let request = Item.where { $0.number >= 1 }.sorted { [$0.number.descending] }
            #expect(try past.fetch(request).map(\.number) == [2, 1])
            #expect(try past.fetchBatched(request, size: 1).map(\.number) == [2, 1])
            #expect(try past.count(request) == 2)
            #expect(try past.fetch(Item.where { $0.tags.any { $0.name == "" } }).count == 1)
        }
        #expect(item.title == "now")
        try container.closeNow()
    }

    @Test func `It stays at its commit, whatever happens`() throws {
        let container = try memory(historyOptions(.newest))
        let (id, then) = try saveTitle("then", in: container)
        try saveTitle("now", of: id, in: container)
        let past = try container.newContext(at: .commit(then))
        let item = try #require(try past.existingObject(with: id))
        let list = try past.live(Item.where { $0.number >= 0 })
        #expect(list.count == 1)
        past.advance()
        past.refreshAllObjects()
        #expect(past.commit == then && item.title == "then")
        // What others save enters no account for it.
        for step in 0..<100 { try saveTitle("\(step)", of: id, in: container) }
        #expect(container.feed.changes(after: then, through: then.next) == nil)
        _ = try container.store.engine.compact()
        past.reset()
        #expect(try past.existingObject(with: id)?.title == "then")
        #expect(past.commit == then)
        // It holds its commit; without it that is gone.
        #expect(code { _ = try container.newContext(at: .commit(then)) } == .commitExpired)
    }

    @Test func `It can be edited and never saved`() throws {
        let container = try memory(historyOptions())
        let (id, then) = try saveTitle("then", in: container)
        try saveTitle("now", of: id, in: container)
        let past = try container.newContext(at: .commit(then))
        #expect(code { try past.save() } == .readOnly)
        let item = try #require(try past.existingObject(with: id))
        item.title = "preview"
        Item(in: past).title = "new"
        #expect(try past.fetch(Item.where { $0.title == "preview" }).count == 1)
        #expect(code { try past.save() } == .readOnly)
        #expect(code { try past.save(mergePolicy: .overwrite) } == .readOnly)
        #expect(code { try past.batchDelete(FetchDescriptor<Item>()) } == .readOnly)
        past.rollback()
        #expect(item.title == "then" && !past.hasChanges)
    }

    @Test func `A reader that writes nothing sees the past, too`() throws {
        let folder = try TemporaryFolder()
        let writer = try folder.open(historyOptions(.all))
        let (id, then) = try saveTitle("then", in: writer)
        let token = try writer.historyToken
        try saveTitle("now", of: id, in: writer)
        var options = historyOptions(.all)
        options.isReadOnly = true
        let reader = try folder.open(options)
        #expect(try reader.history(after: token).commits().count == 1)
        let past = try reader.newContext(at: .commit(then))
        #expect(try past.existingObject(with: id)?.title == "then")
        #expect(try reader.versions(of: id).count == 2)
        // It hears of what the writer does, and of a file that takes the place of the other.
        try saveTitle("later", of: id, in: writer)
        #expect(try reader.history(after: token).commits().count == 2)
        _ = try writer.store.engine.compact()
        try saveTitle("last", of: id, in: writer)
        #expect(try reader.history(after: token).commits().count == 3)
        let again = try reader.newContext(at: .token(token))
        #expect(try again.existingObject(with: id)?.title == "then")
        #expect(try past.existingObject(with: id)?.title == "then")
        try reader.closeNow()
        try writer.closeNow()
    }

    @Test func `A moment shows the newest commit of that time`() throws {
        let clock = TestClock()
        var options = historyOptions()
        let adjust = options.adjustingEngine
        options.adjustingEngine = {
            adjust?(&$0)
            $0.environment = clock
        }
        let container = try memory(options)
        var times: [(Date, String)] = []
        let (id, _) = try saveTitle("0", in: container)
        for step in 1...20 {
            clock.advance(by: 10_000_000)
            try saveTitle("\(step)", of: id, in: container)
            times.append((clock.date, "\(step)"))
        }
        for (date, title) in times {
            for later in [0, 3.5, 9.9] {
                let past = try container.newContext(at: .time(date.addingTimeInterval(later)))
                #expect(try past.existingObject(with: id)?.title == title)
            }
        }
        let now = try container.newContext(at: .time(.distantFuture))
        #expect(now.commit == container.statistics.newestCommit)
        #expect(code { _ = try container.newContext(at: .time(.distantPast)) } == .commitExpired)
    }

    @Test func `What is not there is refused by name`() throws {
        let container = try memory(historyOptions(.commits(2)))
        let (id, then) = try saveTitle("0", in: container)
        for step in 1...4 { try saveTitle("\(step)", of: id, in: container) }
        let newest = container.statistics.newestCommit
        #expect(
            code { _ = try container.newContext(at: .commit(newest.next)) } == .unknownCommit
        )
        _ = try container.store.engine.compact()
        do {
            _ = try container.newContext(at: .commit(then))
            Issue.record("the commit is gone")
        } catch let error as StoreError {
            #expect(error.code == .commitExpired)
            #expect(error.message.contains("commits \(newest.rawValue - 1) to \(newest.rawValue)"))
            #expect(error.suggestion?.contains("retention") == true)
        }
        #expect(try container.retainedCommits == CommitNumber(newest.rawValue - 1)...newest)
        try container.closeNow()
        #expect(code { _ = try container.newContext(at: .commit(newest)) } == .closed)
    }

    @Test func `Before the newest change of the schema nothing can be shown`() throws {
        let folder = try TemporaryFolder()
        var options = historyOptions(.all)
        let old = try PersistentContainer.openNow(
            at: folder.store,
            schema: OldSchema.self,
            options: options
        )
        let before = old.newContext()
        let note = OldNote(in: before)
        note.text = "old"
        let first = try #require(try before.save().commit)
        let text = note.id.objectID.uri
        let token = try old.historyToken
        try old.closeNow()
        options.allowsMigration = true
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: NewSchema.self,
            options: options
        )
        #expect(code { _ = try container.newContext(at: .commit(first)) } == .schemaMismatch)
        let commits = try container.history(after: token).commits()
        #expect(commits.map(\.changesSchema) == [true])
        let migrated = try container.newContext(at: .commit(commits[0].number))
        let id = NewNote.ID(try #require(ManagedObjectID(uri: text)))
        #expect(try migrated.existingObject(with: id)?.rating == 3)
        // The changes of commits before are told; versions reach back to the new schema.
        #expect(try container.history(after: nil).commits().count > 2)
        let context = container.newContext()
        try context.existingObject(with: id)?.rating = 5
        try context.save()
        let versions = try container.versions(of: id)
        #expect(versions.map { $0.values?.rating } == [5, 3])
        #expect(versions.map(\.change) == [.updated, nil])
        try container.closeNow()
    }
}

/// A clock that a test sets.
final class TestClock: Environment {
    private let time = Mutex<Int64>(1_700_000_000_000_000)
    func randomBytes(_ count: Int) -> [UInt8] { SystemEnvironment().randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { SystemEnvironment().monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 { time.withLock { $0 } }
    func processID() -> Int32 { SystemEnvironment().processID() }
    func yield(_ point: YieldPoint) {}
    func advance(by microseconds: Int64) { time.withLock { $0 += microseconds } }
    var date: Date { Date(timeIntervalSince1970: Double(wallClockMicroseconds()) / 1_000_000) }
}
