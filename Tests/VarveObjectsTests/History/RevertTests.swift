// Taking commits back, and objects back to earlier commits, as unsaved edits.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveRecords

@testable import VarveObjects

@Suite(.verified) struct RevertTests {
    @Test func `An object gets back the values, relationships and order of a commit`() throws {
        let container = try memory(historyOptions())
        let context = container.newContext()
        let (item, folder, other) = (Item(in: context), Folder(in: context), Folder(in: context))
        let tags = (0..<4).map { _ in Tag(in: context) }
        item.title = "then"
        item.folder = folder
        item.tags.replaceAll(with: [tags[2], tags[0], tags[1]])
        let then = try #require(try context.save().commit)
        item.title = "now"
        item.number = 9
        item.folder = other
        item.tags.replaceAll(with: [tags[1], tags[3], tags[2]])
        try context.save()
        #expect(try context.revert(item, to: .commit(then)).isEmpty)
        #expect(item.title == "then" && item.number == 0 && item.folder === folder)
        #expect(item.tags.map(\.id) == [tags[2], tags[0], tags[1]].map(\.id))
        #expect(context.hasChanges && folder.items.contains(item) && other.items.isEmpty)
        // It is an edit: others see it when it is saved.
        let reader = container.newContext()
        #expect(try reader.existingObject(with: item.id)?.title == "now")
        try context.save()
        reader.advance()
        let seen = try #require(try reader.existingObject(with: item.id))
        #expect(seen.title == "then" && seen.tags.map(\.id) == item.tags.map(\.id))
        // Once more is nothing.
        #expect(try context.revert(item.id, to: .commit(then)).isEmpty)
        #expect(!context.hasChanges)
        let newcomer = Item(in: context)
        #expect(code { try context.revert(newcomer, to: .commit(then)) } == .objectNotFound)
        #expect(code { try reader.revert(item, to: .commit(then)) } == .crossContext)
    }

    @Test func `A deleted object comes back under its ID, with what it led to`() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(historyOptions(.all))
        let context = container.newContext()
        let (item, picture, tag) = (Item(in: context), Picture(in: context), Tag(in: context))
        item.title = String(repeating: "long ", count: 1_000)
        item.picture = picture
        item.tags.append(tag)
        var writer = try context.makeBlob()
        try writer.append(Data(repeating: 5, count: 3_000))
        picture.data = try writer.finish()
        let then = try #require(try context.save().commit)
        let id = item.id
        let title = item.title
        context.delete(item)
        context.delete(tag)
        try context.save()
        let other = container.newContext()
        // The cascade took the picture, and somebody the tag: both are gone.
        let skipped = try other.revert(picture.id, to: .commit(then))
        #expect(skipped.map(\.property) == ["item"])
        #expect(skipped.map(\.reason) == [.targetDeleted])
        #expect(try other.revert(id, to: .commit(then)).isEmpty)
        let back = try other.object(with: id)
        #expect(back.title == title && back.picture?.id == picture.id && back.tags.isEmpty)
        try other.save()
        #expect(back.picture?.id == picture.id)
        let reader = container.newContext()
        let seen = try #require(try reader.existingObject(with: id))
        #expect(seen.title == title && seen.picture?.id == picture.id && seen.tags.isEmpty)
        #expect(try seen.picture?.data.map { try $0.read(0..<$0.length) }?.count == 3_000)
        try container.closeNow()
    }

    @Test func `A commit is taken back whole`() throws {
        let container = try memory(historyOptions())
        let context = container.newContext()
        let (kept, gone) = (Item(in: context), Item(in: context))
        let tags = (0..<3).map { _ in Tag(in: context) }
        kept.title = "kept"
        gone.title = "gone"
        kept.tags.replaceAll(with: tags)
        gone.tags.replaceAll(with: [tags[1]])
        try context.save()
        let before = try StoreCopy(of: context)
        kept.title = "changed"
        kept.tags.replaceAll(with: [tags[2], tags[0]])
        context.delete(gone)
        let new = Item(in: context)
        new.title = "new"
        new.tags.append(tags[0])
        let bad = try #require(try context.save().commit)
        // Others edit something else.
        let other = container.newContext()
        try other.existingObject(with: kept.id)?.number = 4
        try other.save()
        context.advance()
        context.undoLimit = 5
        #expect(try context.revert(commit: bad, undoActionName: "Revert").isEmpty)
        #expect(context.undoActionName == "Revert" && new.isDeleted)
        var expected = before
        expected.items[kept.id.objectID.object.rawValue]?.number = 4
        #expect(try StoreCopy(of: context) == expected)
        try context.save()
        #expect(try StoreCopy(of: container.newContext()) == expected)
        // And the other way.
        let revert = container.statistics.newestCommit
        #expect(try context.revert(commit: revert).isEmpty)
        #expect(kept.title == "changed" && kept.tags.map(\.id) == [tags[2].id, tags[0].id])
        try context.save()
        let reader = container.newContext()
        #expect(try reader.existingObject(with: new.id)?.title == "new")
    }

    @Test func `What was changed again is told, left or overwritten`() throws {
        func setUp() throws -> (PersistentContainer, ManagedObjectContext, [Item], CommitNumber) {
            let container = try memory(historyOptions())
            let context = container.newContext()
            let items = (0..<3).map { _ in Item(in: context) }
            try context.save()
            items[0].title = "bad"
            items[0].number = 1
            items[0].title = "wrong"
            items[1].number = 1
            items[2].number = 1
            let new = Item(in: context)
            new.title = "new"
            let commit = try #require(try context.save().commit)
            items[0].title = "better"
            new.title = "used"
            context.delete(items[2])
            try context.save()
            return (container, context, items + [new], commit)
        }
        let (_, context, items, commit) = try setUp()
        do {
            try context.revert(commit: commit)
            Issue.record("three changes meet later ones")
        } catch let error as StoreError {
            #expect(error.code == .revertConflict && error.place.commit == commit)
            let objects = error.details.map { $0.objects.first }
            #expect(objects == [items[0], items[2], items[3]].map(\.objectID))
            #expect(error.details.map(\.place.attribute) == ["title", nil, "title"])
        }
        #expect(!context.hasChanges)
        let skipped = try context.revert(commit: commit, policy: .skip)
        #expect(skipped.map(\.reason) == [.changedSince, .deletedSince, .changedSince])
        #expect(items[0].title == "better" && items[0].number == 0 && items[1].number == 0)
        #expect(!items[3].isDeleted)
        context.rollback()
        let left = try context.revert(commit: commit, policy: .overwrite)
        #expect(left.map(\.reason) == [.deletedSince])
        #expect(items[0].title == "" && items[3].isDeleted)
        try context.save()
    }

    @Test func `A branch of a context of the past stays there, too`() throws {
        let container = try memory(historyOptions())
        let (id, then) = try saveTitle("then", in: container)
        try saveTitle("now", of: id, in: container)
        let past = try container.newContext(at: .commit(then))
        let branch = try past.branch()
        let item = try #require(try branch.existingObject(with: id))
        item.number = 5
        branch.advance()
        #expect(branch.commit == then && item.title == "then" && item.number == 5)
        for step in 0..<50 { try saveTitle("\(step)", of: id, in: container) }
        #expect(container.feed.changes(after: then, through: then.next) == nil)
        try branch.mergeIntoParent()
        #expect(try past.existingObject(with: id)?.number == 5)
        #expect(code { try past.save() } == .readOnly)
        try container.closeNow(discardingEdits: true)
    }

    @Test func `What cannot be reverted is refused by name`() throws {
        let container = try memory(historyOptions(.commits(3)))
        let (id, first) = try saveTitle("0", in: container)
        let behind = container.newContext()
        _ = try behind.existingObject(with: id)
        let (_, second) = try saveTitle("1", of: id, in: container)
        #expect(code { try behind.revert(commit: second) } == .invalidRequest)
        let newest = container.statistics.newestCommit
        #expect(code { try behind.revert(commit: newest.next) } == .unknownCommit)
        #expect(code { try behind.revert(commit: CommitNumber(0)) } == .unknownCommit)
        for step in 2...5 { try saveTitle("\(step)", of: id, in: container) }
        _ = try container.store.engine.compact()
        let context = container.newContext()
        #expect(code { try context.revert(commit: first) } == .commitExpired)
        #expect(code { try context.revert(id, to: .commit(first)) } == .commitExpired)
        let oldest = try container.retainedCommits.lowerBound
        // Its changes are not known, the state before it neither.
        #expect(code { try context.revert(commit: oldest) } == .commitExpired)
        #expect(try context.revert(commit: oldest.next, policy: .skip).count == 1)
        try context.revert(id, to: .commit(oldest))
        #expect(try context.existingObject(with: id)?.title == "3")
        try container.closeNow(discardingEdits: true)
        #expect(code { try context.revert(commit: oldest.next) } == .closed)
    }
}
