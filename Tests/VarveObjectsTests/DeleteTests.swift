// Saving: deleting, validating, and both sides of relationships.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct DeleteTests {
    @Test func nullifyAndCascade() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let picture = Picture(in: context)
        let tag = Tag(in: context)
        item.picture = picture
        item.tags.append(tag)
        let folder = Folder(in: context)
        item.folder = folder
        try context.save()
        // Deleting the picture only empties the reference to it.
        context.delete(picture)
        context.processPendingChanges()
        #expect(item.picture == nil && picture.isDeleted)
        try context.save()
        #expect(item.picture == nil)
        let second = Picture(in: context)
        item.picture = second
        try context.save()
        // Deleting the item takes the picture with it; tag and folder forget it.
        context.delete(item)
        try context.save()
        #expect(second.isDeleted && item.isDeleted && !tag.isDeleted && !folder.isDeleted)
        #expect(tag.items.isEmpty && folder.items.isEmpty)
        #expect(try context.count(Item.all) == 0 && context.count(Picture.all) == 0)
        #expect(try context.count(Tag.all) == 1)
        #expect(item.calls.contains("delete"))
    }

    @Test func toManyNullifyThroughTheInverse() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let folder = Folder(in: context)
        for id in ids { folder.items.append(try context.object(with: id)) }
        try context.save()
        context.delete(folder)
        try context.save()
        let other = container.newContext()
        #expect(try other.fetch(Item.all).allSatisfy { $0.folder == nil })
        #expect(try other.count(Item.where { $0.folder == nil }) == 3)
    }

    @Test func aToOneWithoutInverseIsEmptiedToo() throws {
        let container = try memory()
        let context = container.newContext()
        let person = Person(in: context)
        let friend = Person(in: context)
        person.friend = friend
        person.likes.append(Tag(in: context))
        try context.save()
        context.reset()
        let again = try #require(try context.existingObject(with: person.id))
        context.delete(try context.object(with: friend.id))
        try context.save()
        #expect(again.friend == nil && again.likes.count == 1)
        context.delete(again.likes[0])
        try context.save()
        #expect(again.likes.isEmpty)
    }

    @Test func denyNamesBothObjects() throws {
        let container = try memory()
        let context = container.newContext()
        let person = Person(in: context)
        let folder = Folder(in: context)
        folder.owner = person
        #expect(person.folders.ids == [folder.id])
        try context.save()
        context.delete(person)
        do {
            try context.save()
            Issue.record("not denied")
        } catch let error as StoreError {
            #expect(error.code == .deleteDenied)
            #expect(error.details.first?.objects == [person.objectID, folder.objectID])
        }
        context.rollback()
        #expect(!person.isDeleted && folder.owner === person)
        context.delete(person)
        context.delete(folder)
        try context.save()
        #expect(try context.count(Person.all) == 0)
    }

    @Test func allFailuresComeTogether() throws {
        let container = try memory()
        let context = container.newContext()
        let first = Item(in: context)
        first.title = "bad"
        first.number = -1
        let second = Everything(in: context)
        do {
            try context.save()
            Issue.record("saved")
        } catch let error as StoreError {
            #expect(error.code == .invalid && error.details.count == 3)
            #expect(error.details.map(\.place.attribute) == ["title", "number", "required"])
            #expect(error.details[2].code == .missingValue)
            #expect(error.details[2].place.object == second.objectID)
        }
        context.delete(second)
        first.title = "good"
        first.number = 0
        try context.save()
        #expect(try context.count(Everything.all) == 0)
    }

    @Test func rollbackReadsNothing() throws {
        let container = try memory()
        let ids = try makeItems(2, in: container)
        let context = container.newContext()
        let items = try ids.map { try #require(try context.existingObject(with: $0)) }
        items[0].title = "changed"
        context.delete(items[1])
        let new = Item(in: context)
        let picture = Picture(in: context)
        items[0].picture = picture
        new.tags.append(Tag(in: context))
        let undone = reads(container) { context.rollback() }
        #expect(undone.reads == 0 && !context.hasChanges)
        #expect(items[0].title == "item 0" && items[0].picture == nil && !items[1].isDeleted)
        #expect(new.context == nil && !new.isInserted && new.title == "")
        #expect(try context.existingObject(with: new.id) == nil)
        #expect(try context.save().commit == nil)
    }

    @Test func resetMakesObjectsInvalid() throws {
        let container = try memory()
        let ids = try makeItems(1, in: container)
        let context = container.newContext()
        let item = try #require(try context.existingObject(with: ids[0]))
        context.reset()
        #expect(item.context == nil && item.title == "" && context.commit == nil)
        item.title = "nowhere"
        #expect(!context.hasChanges)
        let again = try #require(try context.existingObject(with: ids[0]))
        #expect(again !== item && again.title == "item 0")
    }

    @Test func hooksOfASave() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        try context.save()
        #expect(item.calls == ["insert", "willSave", "didSave"])
        item.title = "x"
        try context.save()
        #expect(item.calls == ["insert", "willSave", "didSave", "willSave", "didSave"])
    }

    @Test func crossContextIsRefusedAtSave() throws {
        let container = try memory()
        let first = container.newContext()
        let second = container.newContext()
        let item = Item(in: first)
        item.picture = Picture(in: second)
        #expect(item.picture == nil)
        #expect(code { try first.save() } == .crossContext)
        first.rollback()
        second.rollback()
        try first.save()
    }
}

@Suite(.verified) struct RelationshipTests {
    @Test func oneToOneKeepsBothSides() throws {
        let container = try memory()
        let context = container.newContext()
        let items = (0..<2).map { _ in Item(in: context) }
        let pictures = (0..<2).map { _ in Picture(in: context) }
        items[0].picture = pictures[0]
        #expect(pictures[0].item === items[0])
        pictures[0].item = items[1]
        #expect(items[0].picture == nil && items[1].picture === pictures[0])
        items[1].picture = pictures[1]
        #expect(pictures[0].item == nil && pictures[1].item === items[1])
        try context.save()
        context.reset()
        let item = try #require(try context.existingObject(with: items[1].id))
        #expect(item.picture?.id == pictures[1].id && item.picture?.item === item)
        #expect(try context.count(Item.where { $0.picture == nil }) == 1)
        item.picture = nil
        try context.save()
        #expect(try context.existingObject(with: pictures[1].id)?.item == nil)
    }

    @Test func toManyWithToOneInverse() throws {
        let container = try memory()
        let ids = try makeItems(4, in: container)
        let context = container.newContext()
        let folders = (0..<2).map { _ in Folder(in: context) }
        let items = try ids.map { try context.object(with: $0) }
        for item in items { folders[0].items.append(item) }
        #expect(folders[0].items.ids == ids && items[2].folder === folders[0])
        items[2].folder = folders[1]
        #expect(folders[0].items.count == 3 && folders[1].items.ids == [ids[2]])
        try context.save()
        #expect(folders[0].items.ids == [ids[0], ids[1], ids[3]])
        let other = container.newContext()
        let folder = try other.object(with: folders[0].id)
        let asked = reads(container) {
            (folder.items.count, folder.items.contains(try! other.object(with: ids[3])))
        }
        #expect(asked.value == (3, true) && asked.reads == 0)
        folder.items.remove(try other.object(with: ids[0]))
        folder.items.append(try other.object(with: ids[2]))
        #expect(folder.items.ids == [ids[1], ids[2], ids[3]])
        try other.save()
        context.advance()
        #expect(items[0].folder == nil && items[2].folder === folders[0])
        #expect(folders[1].items.isEmpty)
    }

    @Test func appendingLoadsNoOtherMember() throws {
        let container = try memory()
        let context = container.newContext()
        let folder = Folder(in: context)
        let person = Person(in: context)
        for _ in 0..<50 { folder.items.append(Item(in: context)) }
        for _ in 0..<50 { person.likes.append(Tag(in: context)) }
        let tag = Tag(in: context)
        let item = Item(in: context)
        try context.save()
        context.reset()
        container.trimMemory()
        let fresh = container.newContext()
        let read = try reads(container) {
            try fresh.object(with: folder.id).items.append(try fresh.object(with: item.id))
            try fresh.object(with: person.id).likes.append(try fresh.object(with: tag.id))
        }
        #expect(read.reads == 1)
        try fresh.save()
        #expect(try fresh.object(with: folder.id).items.count == 51)
        #expect(try fresh.object(with: person.id).likes.count == 51)
    }

    @Test func orderedToMany() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let tags = (0..<4).map { _ in Tag(in: context) }
        for tag in tags.reversed() { item.tags.append(tag) }
        #expect(item.tags.ids == tags.reversed().map(\.id))
        try context.save()
        #expect(item.tags.ids == tags.reversed().map(\.id))
        item.tags.insert(tags[0], at: 0)
        #expect(item.tags.ids == [0, 3, 2, 1].map { tags[$0].id })
        item.tags.remove(tags[2])
        try context.save()
        let other = container.newContext()
        let same = try other.object(with: item.id)
        #expect(same.tags.ids == [0, 3, 1].map { tags[$0].id })
        same.tags.replaceAll(with: try [1, 2, 0].map { try other.object(with: tags[$0].id) })
        try other.save()
        #expect(same.tags.ids == [1, 2, 0].map { tags[$0].id })
        #expect(try other.object(with: tags[3].id).items.isEmpty)
        #expect(try other.object(with: tags[2].id).items.ids == [item.id])
        try other.object(with: tags[3].id).items.append(same)
        try other.save()
        #expect(same.tags.ids == [1, 2, 0, 3].map { tags[$0].id })
        context.advance()
        #expect(item.tags.ids == [1, 2, 0, 3].map { tags[$0].id })
    }
}
