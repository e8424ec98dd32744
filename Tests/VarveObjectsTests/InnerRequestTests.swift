// Filters over the objects of another request: edits on both sides, plans, live lists, batches.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct InnerRequestTests {
    /// Items 0 to 9; those with an even number in folder "x", of the others 1, 3, 5 in "y".
    private struct World {
        let container: PersistentContainer
        let context: ManagedObjectContext
        let folders: [Folder]

        init() throws {
            container = try memory()
            context = container.newContext()
            let made = context
            folders = ["x", "y", "z"].map { name in
                let folder = Folder(in: made)
                folder.name = name
                return folder
            }
            for number in 0..<10 {
                let item = Item(in: context)
                item.number = number
                if number.isMultiple(of: 2) {
                    item.folder = folders[0]
                } else if number < 7 {
                    item.folder = folders[1]
                }
            }
            try context.save()
        }

        func numbers(_ filter: (Item.Columns) -> TypedPredicate<Item>) throws -> [Int] {
            let request = Item.where(filter).sorted { [$0.number.ascending] }
            let found = try context.fetch(request).map(\.number)
            #expect(try context.count(request) == found.count)
            #expect(try context.fetchBatched(request).map(\.number) == found)
            #expect(try context.select(request) { $0.number } == found)
            return found
        }
    }

    @Test func `A relationship leads to one of what a request gives`() throws {
        let world = try World()
        let named = Folder.where { $0.name == "y" }
        #expect(try world.numbers { $0.folder.isIn(named) } == [1, 3, 5])
        #expect(try world.numbers { !$0.folder.isIn(named) } == [0, 2, 4, 6, 7, 8, 9])
        let last = Folder.all.sorted { [$0.name.descending] }.offset(1).limit(1)
        #expect(try world.numbers { $0.folder.isIn(last) && $0.number > 1 } == [3, 5])
        #expect(try world.numbers { $0.folder.isIn(Folder.where { _ in .never }) } == [])
        let full = Folder.where { $0.items.count > 3 }
        #expect(try world.numbers { $0.folder.isIn(full) } == [0, 2, 4, 6, 8])
        // Requests inside requests, and the object itself.
        let inner = Item.where { $0.folder.isIn(named) }.sorted { [$0.number.descending] }.limit(2)
        #expect(try world.numbers { _ in .isIn(inner) } == [3, 5])
        #expect(try world.numbers { _ in !.isIn(inner) && .isIn(Item.all) }.count == 8)
        #expect(try world.numbers { $0.folder.isIn([world.folders[1].id]) } == [1, 3, 5])
        let ids = try world.context.fetchIDs(inner)
        #expect(try world.numbers { _ in .isIn(ids) } == [3, 5])
        let owned = Folder.where { $0.items.any { _ in .isIn(inner) } }
        #expect(try world.context.fetch(owned).map(\.name) == ["y"])
    }

    @Test func `Unsaved edits count on both sides`() throws {
        let world = try World()
        let (context, folders) = (world.context, world.folders)
        let named = Folder.where { $0.name == "y" }
        // Inside: another folder has the name now.
        folders[1].name = "q"
        folders[0].name = "y"
        #expect(try world.numbers { $0.folder.isIn(named) } == [0, 2, 4, 6, 8])
        #expect(
            try world.numbers { $0.folder.isIn(named.includingPendingChanges(false)) }
                == [1, 3, 5]
        )
        // Outside: an item comes in, one goes, one is new.
        let items = try context.fetch(Item.all.sorted { [$0.number.ascending] })
        items[7].folder = folders[0]
        items[2].folder = nil
        let new = Item(in: context)
        new.number = 20
        let newFolder = Folder(in: context)
        newFolder.name = "y"
        new.folder = newFolder
        context.delete(items[4])
        #expect(try world.numbers { $0.folder.isIn(named) } == [0, 6, 7, 8, 20])
        let stored = Item.where { $0.folder.isIn(named) }.includingPendingChanges(false)
        #expect(try context.count(stored) == 3)
        let edited = try context.fetchIDs(Item.where { $0.folder.isIn(named) })
        try context.save()
        #expect(try context.fetchIDs(Item.where { $0.folder.isIn(named) }) == edited)
        folders[0].name = "x"
        #expect(try world.numbers { $0.folder.isIn(named) } == [20])
        context.rollback()
        #expect(try world.numbers { $0.folder.isIn(named) } == [0, 6, 7, 8, 20])
    }

    @Test func `The inner request has its own plan, and is answered once`() throws {
        let container = try memory()
        try makeItems(400, in: container)
        let context = container.newContext()
        let newest = Item.where { $0.number.isIn(10..<30) }
        let request = Item.where { _ in .isIn(newest) }.sorted { [$0.title.ascending] }
        let plan = try context.explain(request)
        #expect(plan.hasPrefix("objects: 20 of Item by ID"), "\(plan)")
        #expect(
            plan.contains(
                "request inside the filter:\n  index: Item(number), 1 range, 20 entries"
            ),
            "\(plan)"
        )
        // Each of the items inside is read once, although every row asks.
        let found = try reads(container) {
            try context.count(Item.where { $0.title != "" && !.isIn(newest) })
        }
        #expect(found.value == 380)
    }

    @Test func `Cursors, batches and errors`() throws {
        let world = try World()
        let context = world.context
        let sorted = Item.all.sorted { [$0.number.ascending] }
        let page = try context.fetchPage(sorted.limit(4))
        #expect(try world.numbers { _ in .isIn(sorted.after(page.last)) } == [4, 5, 6, 7, 8, 9])
        let foreign = Item.where { $0.number > 0 }.after(page.last)
        #expect(
            code { _ = try context.fetch(Item.where { _ in .isIn(foreign) }) } == .invalidCursor
        )
        let negative = Item.all.limit(-1)
        #expect(
            code { _ = try context.fetch(Item.where { _ in .isIn(negative) }) } == .invalidRequest
        )
        // A cursor of a request belongs to what is inside it, too.
        let named = Item.where { $0.folder.isIn(Folder.where { $0.name == "x" }) }
        let other = Item.where { $0.folder.isIn(Folder.where { $0.name == "y" }) }
        let first = try context.fetchPage(named.limit(2))
        #expect(try context.fetch(named.after(first.last)).map(\.number) == [4, 6, 8])
        #expect(code { _ = try context.fetch(other.after(first.last)) } == .invalidCursor)
        var deep = Item.where { $0.number > 5 }
        for _ in 0..<40 {
            let inner = deep
            deep = Item.where { _ in .isIn(inner) }
        }
        #expect(code { _ = try context.fetch(deep) } == .unsupportedPredicate)
        try context.batchUpdate(other) { row in row.title = "in y" }
        #expect(try world.numbers { $0.title == "in y" } == [1, 3, 5])
        try context.batchDelete(named)
        #expect(try world.numbers { _ in .always } == [1, 3, 5, 7, 9])
        #expect(try context.maximum(other) { $0.number } == 5)
    }

    @Test func `Live lists follow what is inside`() throws {
        let world = try World()
        let (container, context) = (world.container, world.context)
        let request = Item.where { $0.folder.isIn(Folder.where { $0.name == "y" }) }
            .sorted { [$0.number.ascending] }
        let list = try context.live(request)
        let count = try context.liveCount(request)
        #expect(list.results.map(\.number) == [1, 3, 5] && count.value == 3)
        var changes = 0
        let observation = list.onChange { _ in changes += 1 }
        defer { observation.cancel() }
        func expect(_ numbers: [Int], changes wanted: Int) {
            context.processPendingChanges()
            #expect(list.results.map(\.number) == numbers && count.value == numbers.count)
            #expect(changes == wanted)
        }
        // An edit inside, and its end.
        world.folders[0].name = "y"
        expect([0, 1, 2, 3, 4, 5, 6, 8], changes: 1)
        context.rollback()
        expect([1, 3, 5], changes: 2)
        // A commit of somebody else's.
        let other = container.newContext()
        try other.fetch(Folder.where { $0.name == "y" })[0].name = "w"
        try other.save()
        context.advance()
        expect([], changes: 3)
        // One that changes nothing inside, and one of the list's own objects.
        try other.fetch(Folder.where { $0.name == "w" })[0].name = "v"
        try other.save()
        context.advance()
        expect([], changes: 3)
        try other.fetch(Folder.where { $0.name == "v" })[0].name = "y"
        try other.save()
        context.advance()
        expect([1, 3, 5], changes: 4)
        try other.fetch(Item.where { $0.number == 3 })[0].folder = nil
        try other.save()
        context.advance()
        expect([1, 5], changes: 5)
    }

    @Test func `Requests inside filters have a text`() throws {
        let world = try World()
        let filter = try world.container.filter(
            "folder in Folder.where { name == 'x' }"
                + " && !(self in Item.all.sorted { -number }.limit(2))",
            of: Item.self
        )
        #expect(
            try world.context.fetch(FetchDescriptor(filter: filter)).map(\.number) == [0, 2, 4, 6]
        )
        let again = try world.container.text(of: filter)
        #expect(try world.container.filter(again, of: Item.self) == filter, "\(again)")
        for text in [
            "folder in Item.all", "folder in Folder.some", "number in Folder.all",
            "folder in Folder.all.limit(-1)", "folder in Folder.where { nope == 1 }",
        ] {
            #expect(
                code { _ = try world.container.filter(text, of: Item.self) }
                    == .unsupportedPredicate
            )
        }
    }
}
