// Objects that others deleted and somebody still holds: what they show, what an edit of them does.

import Foundation
import Testing
import VarveObjects

@Suite("Objects that others deleted", .verified) struct HeldGoneObjectTests {
    private struct Stop: Error {}
    private func bytes(_ count: Int) -> Data { Data(repeating: 7, count: count) }

    /// A picture with a blob that the context holds, saved; others have deleted it since.
    private func gonePicture(
        _ count: Int,
        in context: ManagedObjectContext,
        of container: PersistentContainer
    ) throws -> Picture {
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(count), for: Picture.columns.data)
        try context.save()
        try saveElsewhere(container) { try $0.delete($0.object(with: picture.id)) }
        return picture
    }

    @Test("An edit that a save gave up can be made again, with the blobs", arguments: [40, 5_000])
    func givenUp(_ count: Int) throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(count), for: Picture.columns.data)
        try context.save()
        picture.caption = "first"
        try saveElsewhere(container) { try $0.delete($0.object(with: picture.id)) }
        try context.save(mergePolicy: .storeWinsByProperty)
        try container.compactNow()
        picture.caption = "again"
        try context.save(mergePolicy: .overwrite)
        let stored = try container.newContext().object(with: picture.id)
        #expect(try stored.data?.readAll() == bytes(count))
    }

    @Test(
        "An undo of the edit that brought a picture back brings its old blob",
        arguments: [40, 5_000],
        [false, true]
    )
    func undo(_ count: Int, _ drops: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        var picture: Picture? = try gonePicture(count, in: context, of: container)
        let id = try #require(picture?.id)
        context.undoLimit = 5
        context.advance()
        picture?.data = try context.makeBlob(Data([1]), for: Picture.columns.data)
        try context.save(mergePolicy: .overwrite)
        if drops { picture = nil }
        try saveElsewhere(container) { Tag(in: $0).name = "x" }
        context.advance()
        try container.compactNow()
        #expect(try context.undo().isEmpty)
        let shown = try context.object(with: id)
        #expect(code { _ = try shown.data?.readAll() } == nil, "read")
        #expect(code { try context.save() } == nil, "save")
        let stored = try container.newContext().object(with: id)
        #expect(stored.data?.length == count)
        withExtendedLifetime(picture) {}
        context.rollback()
    }

    @Test(
        "The blob of a picture that others deleted is given to one that lives",
        arguments: [40, 5_000]
    )
    func handle(_ count: Int) throws {
        let container = try memory()
        let context = container.newContext()
        let living = Picture(in: context)
        var gone: Picture? = try gonePicture(count, in: context, of: container)
        context.advance()
        living.data = gone?.data
        #expect(try living.data?.readAll() == bytes(count), "read")
        gone = nil
        try saveElsewhere(container) { Tag(in: $0).name = "x" }
        context.advance()
        try container.compactNow()
        #expect(code { try context.save() } == nil, "save")
        let stored = try container.newContext().object(with: living.id)
        #expect(try stored.data?.readAll() == bytes(count), "stored")
    }

    @Test(
        "A picture that others deleted still shows its blob, also to a merge policy",
        arguments: [40, 5_000]
    )
    func reads(_ count: Int) throws {
        let container = try memory()
        let context = container.newContext()
        let picture = try gonePicture(count, in: context, of: container)
        context.advance()
        picture.caption = "edited"
        #expect(try picture.data?.readAll() == bytes(count), "by the app")
        let read = Shared<[Data?]>([])
        try context.save(
            mergePolicy: .custom { conflict in
                let base = conflict.base.snapshot(of: Picture.self)?.data
                let mine = conflict.mine?.snapshot(of: Picture.self)?.data
                for blob in [base, mine] {
                    let found = try blob?.readAll()
                    read.withLock { $0.append(found) }
                }
                return .overwrite
            }
        )
        #expect(read.withLock { $0 } == [bytes(count), bytes(count)], "by a policy")
    }

    @Test(
        "A transaction that throws leaves no edit of what others deleted",
        arguments: [false, true]
    )
    func transaction(_ moves: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        item.title = "before"
        try context.save()
        try saveElsewhere(container) { try $0.delete($0.object(with: item.id)) }
        if !moves { context.advance() }
        #expect(throws: Stop.self) {
            try context.transaction {
                item.title = "in the transaction"
                if moves { context.advance() }
                throw Stop()
            }
        }
        #expect(item.title == "before")
        #expect(!context.hasChanges)
        try context.save(mergePolicy: .overwrite)
        #expect(try container.newContext().fetch(Item.all).map(\.title) == [])
    }

    @Test("Nor does it leave a relationship of it", arguments: [false, true], [false, true])
    func relationships(_ moves: Bool, _ writes: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let (old, new) = (Folder(in: context), Folder(in: context))
        let tag = Tag(in: context)
        item.folder = old
        try context.save()
        try saveElsewhere(container) { try $0.delete($0.object(with: item.id)) }
        if !moves { context.advance() }
        #expect(throws: Stop.self) {
            try context.transaction {
                item.folder = new
                item.tags.append(tag)
                item.number = 7
                if moves { context.advance() }
                if writes { tag.name = "more" }
                throw Stop()
            }
        }
        #expect(item.number == 0)
        #expect(Array(new.items).isEmpty && Array(tag.items).isEmpty)
        #expect(Array(old.items).isEmpty)
        try context.save(mergePolicy: .overwrite)
        let stored = container.newContext()
        #expect(try stored.fetch(Item.all).isEmpty)
        #expect(try stored.fetch(Tag.all).map(\.name) == [""])
    }

    /// Of an object that is gone no value tells of such an edit.
    @Test(
        "Nor is a relationship left that is all that was edited",
        arguments: RelationshipEdit.allCases,
        [false, true]
    )
    fileprivate func relationshipAlone(_ edit: RelationshipEdit, _ moves: Bool) throws {
        for policy in [MergePolicy.error, .overwrite, .objectWinsByProperty] {
            let container = try memory()
            let context = container.newContext()
            let item = Item(in: context)
            let (old, new) = (Folder(in: context), Folder(in: context))
            let (worn, other) = (Tag(in: context), Tag(in: context))
            item.folder = old
            item.tags.append(worn)
            try context.save()
            try saveElsewhere(container) { try $0.delete($0.object(with: item.id)) }
            if !moves { context.advance() }
            #expect(throws: Stop.self) {
                try context.transaction {
                    switch edit {
                    case .move: item.folder = new
                    case .clear: item.folder = nil
                    case .add: item.tags.append(other)
                    case .remove: item.tags.remove(worn)
                    }
                    if moves { context.advance() }
                    throw Stop()
                }
            }
            #expect(!context.hasChanges)
            #expect(code { try context.save(mergePolicy: policy) } == nil)
            #expect(try container.newContext().fetch(Item.all).isEmpty)
            context.rollback()
        }
    }

    @Test("A branch shows the large texts of what its parent knows to be gone")
    func branch() throws {
        let container = try memory()
        let context = container.newContext()
        let thing = Everything(in: context)
        let text = String(repeating: "long", count: 20_000)
        (thing.string, thing.required) = (text, "r")
        try context.save()
        try saveElsewhere(container) { try $0.delete($0.object(with: thing.id)) }
        context.advance()
        thing.int = 5
        #expect(thing.string.utf8.count == text.utf8.count)
        let branch = try context.branch()
        let shown = try branch.object(with: thing.id)
        #expect(shown.int == 5)
        #expect(shown.string.utf8.count == text.utf8.count)
        #expect(branch.readFailures.isEmpty)
        context.rollback()
    }

    @Test("The file of a picture that nobody holds goes with a refresh")
    func file() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        var picture: Picture? = Picture(in: context)
        picture?.data = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
        try context.save()
        let id = try #require(picture?.id)
        #expect(blobFiles(folder) == 1)
        try saveElsewhere(container) { try $0.delete($0.object(with: id)) }
        context.advance()
        weak let kept = picture
        picture = nil
        #expect(kept == nil)
        context.refreshAllObjects()
        try container.compactNow()
        #expect(blobFiles(folder) == 0)
        context.reset()
        try container.closeNow()
    }

    @Test("What was kept of a picture goes when an edit brings it back", arguments: [40, 5_000])
    func back(_ count: Int) throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = try gonePicture(count, in: context, of: container)
        context.advance()
        let again = Data(repeating: 2, count: count)
        picture.data = try context.makeBlob(again, for: Picture.columns.data)
        try context.save(mergePolicy: .overwrite)
        try saveElsewhere(container) { Tag(in: $0).name = "x" }
        context.refreshAllObjects()
        try container.compactNow()
        #expect(try picture.data?.readAll() == again)
        #expect(blobFiles(folder) == (count > 1_000 ? 1 : 0))
        context.reset()
        try container.closeNow()
    }

    private func blobFiles(_ folder: TemporaryFolder) -> Int {
        let files = folder.url.appending(path: "test.varve-blobs")
        return FileManager.default.enumerator(at: files, includingPropertiesForKeys: nil)?
            .allObjects.compactMap { $0 as? URL }.filter { !$0.hasDirectoryPath }.count ?? 0
    }
}

/// What a transaction does to an object that others deleted.
private enum RelationshipEdit: CaseIterable {
    case move, clear, add, remove
}
