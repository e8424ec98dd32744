// What an error of a fetch, a batch or a read advises is done, and helps.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AdviceForRequestsTests {
    @Test func aCursorOfAnotherRequest() throws {
        let container = try memory()
        try makeItems(6, in: container)
        let context = container.newContext()
        let request = Item.where { $0.number > 0 }.sorted { [$0.number.descending] }.limit(2)
        let page = try context.fetchPage(request)
        advised(.invalidCursor, "the filter and sort of the page that it came from") {
            _ = try context.fetchPage(Item.all.after(page.last))
        }
        #expect(try context.fetch(request.after(page.last)).map(\.number) == [3, 2])
    }

    @Test func anAttributeOfAnotherEntity() throws {
        let container = try memory()
        let context = container.newContext()
        let folder = Folder(in: context)
        folder.name = "folder"
        Item(in: context).folder = folder
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            advised(.unsupportedPredicate, "Ask the entity that the attribute belongs to") {
                _ = try context.maximum(Item.all) { $0.folder.name }
            }
            #expect(try context.maximum(Folder.all) { $0.name } == "folder")
        }
    }

    @Test func anEntityThatTheSchemaDoesNotList() throws {
        let context = try memory().newContext()
        advised(.unknownEntity, "List it in the schema's entities") {
            _ = try context.fetch(NewLight.all)
        }
        let listed = try PersistentContainer.inMemory(schema: NewBuild.self).newContext()
        #expect(try listed.fetch(NewLight.all).isEmpty)
    }

    @Test func aValueOfANewerApp() throws {
        let folder = try TemporaryFolder()
        let newer = try PersistentContainer.openNow(at: folder.store, schema: NewBuild.self)
        let id: ManagedObjectID
        do {
            let context = newer.newContext()
            let light = NewLight(in: context)
            light.state = .violet
            try context.save()
            id = light.objectID
        }
        try newer.closeNow()
        let older = try PersistentContainer.openNow(at: folder.store, schema: OldBuild.self)
        do {
            let context = older.newContext()
            let light = try #require(try context.existingObject(with: id) as? OldLight)
            #expect(light.state == .red)
            #expect(light.readFailure?.suggestion?.contains("Update the app") == true)
            light.name = "edited"
            try context.save()
        }
        try older.closeNow()
        let updated = try PersistentContainer.openNow(at: folder.store, schema: NewBuild.self)
        do {
            let context = updated.newContext()
            let light = try #require(try context.existingObject(with: id) as? NewLight)
            #expect(light.state == .violet && light.name == "edited")
        }
        try updated.closeNow()
    }

    // MARK: Batches

    @Test func membersThatTheInverseSays() throws {
        let container = try graph()
        let context = container.newContext()
        let parent = try nodes("parent", in: context)[0].id
        let child = try nodes("child", in: context)[0].id
        advised(.invalidRequest, "Set the to-one on the other side, in a batch of its entity") {
            try context.batchUpdate([parent]) { $0.children = [child] }
        }
        try context.batchUpdate([child]) { $0.parent = parent }
        let fresh = container.newContext()
        #expect(try fresh.named("parent")?.children.names == ["child"])
        try expectSound(fresh)
    }

    @Test func valuesThatABatchCannotStore() throws {
        let container = try memory()
        let context = container.newContext()
        func insert(_ decimal: Decimal) throws {
            try context.batchInsert(Everything.self, count: 1) { row, _ in
                row.required = "given"
                row.decimal = decimal
            }
        }
        advised(.invalid, "Set decimal to a value that can be stored, and do the batch again") {
            try insert(.nan)
        }
        try insert(1)
        #expect(try context.count(Everything.all) == 1)
    }

    @Test func rowsThatDoNotPass() throws {
        let container = try memory()
        let context = container.newContext()
        func insert(_ title: String) throws {
            try context.batchInsert(Item.self, count: 1) { row, _ in row.title = title }
        }
        advised(.invalid, "Give it values that pass, and do the batch again") {
            try insert("bad")
        }
        try insert("good")
        #expect(try context.count(Item.all) == 1)
    }

    @Test(arguments: [false, true]) func rowsThatARuleKeeps(areDeleted: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("guardian", "guarded", in: context)
        all[1].guardian = all[0]
        try context.save()
        let error = advised(.deleteDenied, "Delete or lead elsewhere what the details name") {
            try context.batchDelete([all[0].id])
        }
        let kept = try #require(error?.details.first?.objects.last)
        #expect(kept == all[1].objectID)
        if areDeleted {
            try context.batchDelete([all[1].id])
        } else {
            try context.batchUpdate([all[1].id]) { $0.guardian = nil }
        }
        try context.batchDelete([all[0].id])
        #expect(try storedNames(container) == (areDeleted ? [] : ["guarded"]))
    }
}
