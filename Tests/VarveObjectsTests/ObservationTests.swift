// What observers hear of that is no value of a row: states of objects and contexts, lists that
// others change; and which contexts tell observers.

import Foundation
import Observation
import Synchronization
import Testing

@testable import VarveObjects

@Suite(.verified) struct ObservationTests {
    /// Whether a change of what `read` reads was told during `body`.
    private func isTold(_ read: () -> Void, during body: () throws -> Void) rethrows -> Bool {
        let told = Mutex(false)
        withObservationTracking(read) { told.withLock { $0 = true } }
        try body()
        return told.withLock { $0 }
    }

    @Test func objectsTellOfTheirState() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let item = Item(in: context)
        #expect(try isTold({ _ = item.hasChanges }) { try context.save() })
        #expect(!isTold({ _ = item.hasChanges }) {})
        #expect(isTold({ _ = item.hasChanges }) { item.title = "new" })
        // It has edits already: nothing begins.
        #expect(!isTold({ _ = item.hasChanges }) { item.number = 3 })
        #expect(isTold({ _ = item.hasChanges }) { context.rollback() })
        let folder = Folder(in: context)
        try context.save()
        #expect(isTold({ _ = item.hasChanges }) { item.folder = folder })
        #expect(isTold({ _ = item.hasChanges }) { item.folder = nil })
        #expect(isTold({ _ = item.hasChanges }) { item.title = "again" })
        #expect(isTold({ _ = item.hasChanges }) { item.title = "" })

        #expect(isTold({ _ = item.isDeleted }) { context.delete(item) })
        #expect(isTold({ _ = item.isDeleted }) { context.rollback() })
        let id = item.id
        let other = container.newContext()
        other.delete(try other.object(with: id))
        try other.save()
        #expect(isTold({ _ = item.isDeleted }) { context.advance() })
        #expect(item.isDeleted)
    }

    @Test func contextsTellWhetherThereIsSomethingToSave() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let changes = { _ = context.hasChanges }
        let folder = Folder(in: context)
        #expect(try isTold(changes) { try context.save() })
        #expect(isTold(changes) { folder.name = "new" })
        #expect(!isTold(changes) { folder.name = "newer" })
        #expect(isTold(changes) { folder.name = "" })
        #expect(isTold(changes) { _ = Item(in: context) })
        #expect(isTold(changes) { context.reset() })
        let item = Item(in: context)
        try context.save()
        #expect(isTold(changes) { context.delete(item) })
        #expect(try isTold(changes) { try context.save() })
        // An observer that edits is heard too, and its edit is told of.
        let heard = Mutex<[Bool]>([])
        func watch() {
            withObservationTracking {
                _ = context.hasChanges
            } onChange: {
                heard.withLock { $0.append(true) }
            }
        }
        watch()
        let made = Item(in: context)
        watch()
        context.delete(made)
        context.processPendingChanges()
        watch()
        try context.save()
        #expect(heard.withLock { $0.count } >= 1)
        #expect(!context.hasChanges)
    }

    @Test func listsTellWhatOthersSaved() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let folder = Folder(in: context)
        let item = Item(in: context)
        let tag = Tag(in: context)
        try context.save()
        let (folderID, itemID, tagID) = (folder.id, item.id, tag.id)
        func elsewhere(_ body: (Folder, Item, Tag) -> Void) throws {
            let other = container.newContext(observes: false)
            body(
                try other.object(with: folderID),
                try other.object(with: itemID),
                try other.object(with: tagID)
            )
            try other.save()
            context.advance()
        }
        let reads: [(String, () -> Void)] = [
            ("count", { _ = folder.items.count }), ("isEmpty", { _ = folder.items.isEmpty }),
            ("first", { _ = folder.items.first }), ("map", { _ = folder.items.map(\.title) }),
            ("loop", { for item in folder.items { _ = item } }),
            ("contains", { _ = folder.items.contains(item) }), ("ids", { _ = folder.items.ids }),
        ]
        for (name, read) in reads {
            #expect(
                try isTold(read) { try elsewhere { folder, item, _ in item.folder = folder } },
                "\(name), in"
            )
            #expect(folder.items.count == 1)
            // What others do elsewhere is not told.
            #expect(
                try !isTold(read) { try elsewhere { _, _, tag in tag.name = "x \(name)" } },
                "\(name)"
            )
            #expect(
                try isTold(read) { try elsewhere { _, item, _ in item.folder = nil } },
                "\(name), out"
            )
            #expect(folder.items.isEmpty)
        }
        // A list whose members are rows of links.
        for read in [{ _ = item.tags.count }, { _ = item.tags.map(\.name) }] {
            #expect(try isTold(read) { try elsewhere { _, item, tag in item.tags.append(tag) } })
            #expect(try isTold(read) { try elsewhere { _, item, tag in item.tags.remove(tag) } })
        }
        // Beside an edit of the list, too.
        let own = Item(in: context)
        own.folder = folder
        for (name, read) in reads where name != "contains" {
            #expect(
                try isTold(read) { try elsewhere { folder, item, _ in item.folder = folder } },
                "\(name), edited, in"
            )
            #expect(
                try isTold(read) { try elsewhere { _, item, _ in item.folder = nil } },
                "\(name), edited, out"
            )
        }
    }

    @Test func onlyListsThatWereReadAreLookedAt() throws {
        let container = try memory()
        let ids = try makeItems(400, in: container)
        let context = container.newContext(observes: true)
        let items = try ids.map { try context.object(with: $0) }
        for item in items { _ = item.title }
        func readsOfMove() throws -> Int {
            let other = container.newContext(observes: false)
            try other.object(with: ids[0]).tags.append(Tag(in: other))
            try other.save()
            let before = container.statistics
            context.advance()
            let after = container.statistics
            return after.entriesScanned + after.rowsScanned - before.entriesScanned
                - before.rowsScanned
        }
        let unread = try readsOfMove()
        for item in items.prefix(100) { _ = item.tags.count }
        #expect(try readsOfMove() <= unread + 100 * 8)
    }

    @MainActor @Test func contextsOfTheMainActorTellObservers() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        #expect(isTold({ _ = item.title }) { item.title = "new" })
        let silent = container.newContext(observes: false)
        let other = Item(in: silent)
        #expect(!isTold({ _ = other.title }) { other.title = "new" })
        #expect(other.storage.observation == nil)
    }

    @Test func contextsElsewhereTellObserversIfTheyAreAskedTo() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        #expect(!isTold({ _ = (item.title, item.hasChanges) }) { item.title = "new" })
        #expect(!isTold({ _ = context.hasChanges }) { context.rollback() })
        #expect(item.storage.observation == nil && context.watch == nil)
    }

    @Test func aPropertyThatIsNotStoredTells() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let note = ExpandableNote(in: context)
        #expect(isTold({ _ = note.isExpanded }) { note.isExpanded = true })
        #expect(!isTold({ _ = note.isExpanded }) { note.title = "new" })
        #expect(!isTold({ _ = note.title }) { note.isExpanded = false })
        #expect(context.hasChanges)
        let silent = container.newContext()
        let other = ExpandableNote(in: silent)
        #expect(!isTold({ _ = other.isExpanded }) { other.isExpanded = true })
        #expect(other.isExpanded && other.storage.observation == nil)
    }
}
