// Requests: filters, sorts, windows, counts, and what they answer beside edits.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct RequestTests {
    @Test func valuesAtOnce() throws {
        let container = try memory()
        try makeItems(30, in: container)
        let context = container.newContext()
        let items = try reads(container) {
            try context.fetch(Item.all.returningFaults(false))
        }
        #expect(items.reads == 30 && items.passes == 1)
        #expect(items.value.allSatisfy { !$0.isFault })
        #expect(container.statistics.realisedObjects == 30)
    }

    @Test func unsavedEditsCount() throws {
        let container = try memory()
        let ids = try makeItems(10, in: container)
        let context = container.newContext()
        let new = Item(in: context)
        new.number = 3
        new.title = "new"
        try context.existingObject(with: ids[9])?.number = -1
        try context.existingObject(with: ids[0])?.title = "other"
        context.delete(try context.object(with: ids[5]))
        let request = Item.where { $0.title.hasPrefix("item") || $0.title == "new" }
            .sorted { [$0.number.ascending] }
        let titles = try context.fetch(request).map(\.title)
        #expect(
            titles == [
                "item 9", "item 1", "item 2", "item 3", "new", "item 4", "item 6", "item 7",
                "item 8",
            ]
        )
        #expect(try context.count(request) == 9)
        #expect(
            try context.fetch(request.offset(2).limit(4)).map(\.title)
                == ["item 2", "item 3", "new", "item 4"]
        )
        #expect(try context.count(request.offset(2).limit(4)) == 4)
        #expect(try context.fetchIDs(request.limit(1)) == [ids[9]])
        let stored = request.includingPendingChanges(false)
        #expect(try context.count(stored) == 10)
        #expect(try context.fetchIDs(stored) == ids)
        let sorted = try context.fetch(Item.all.sorted { [$0.number.descending] }).map(\.number)
        #expect(sorted == [8, 7, 6, 4, 3, 3, 2, 1, 0, -1])
    }

    @Test func editsOfOtherObjectsCount() throws {
        let container = try memory()
        let context = container.newContext()
        let folders = (0..<2).map { index in
            let folder = Folder(in: context)
            folder.name = "folder \(index)"
            return folder
        }
        for index in 0..<6 {
            let item = Item(in: context)
            item.number = index
            item.folder = folders[index % 2]
        }
        try context.save()
        func numbers() throws -> [Int] {
            try context.fetch(
                Item.where { $0.folder.name == "found" }.sorted { [$0.number.ascending] }
            ).map(\.number)
        }
        #expect(try numbers() == [])
        folders[0].name = "found"
        #expect(try numbers() == [0, 2, 4])
        folders[0].items[1].folder = folders[1]
        #expect(try numbers() == [0, 4])
        let many = Folder.where { $0.items.count > 3 }
        #expect(try context.fetch(many) == [folders[1]])
        let anyTwo = Folder.where { $0.items.any { $0.number == 2 } }
        #expect(try context.fetch(anyTwo) == [folders[1]])
        try context.save()
        #expect(try numbers() == [0, 4])
        #expect(try context.fetch(many) == [folders[1]])
        #expect(try context.fetch(anyTwo) == [folders[1]])
        let byFolder = Item.all.sorted { [$0.folder.name.descending, $0.number.ascending] }
        #expect(try context.fetch(byFolder).map(\.number) == [0, 4, 1, 2, 3, 5])
    }

    @Test func limitsAndOffsetsAreExact() throws {
        let container = try memory()
        try makeItems(4, in: container)
        let context = container.newContext()
        let all = Item.all.sorted { [$0.title.ascending] }
        func titles(_ request: FetchDescriptor<Item>) throws -> [String] {
            let titles = try context.fetch(request).map(\.title)
            #expect(try context.count(request) == titles.count)
            #expect(try context.fetchIDs(request).count == titles.count)
            return titles
        }
        #expect(try titles(all.offset(1)) == ["item 1", "item 2", "item 3"])
        #expect(try titles(all.offset(4)) == [])
        #expect(try titles(all.offset(9).limit(1)) == [])
        #expect(try titles(all.limit(0)) == [])
        #expect(try titles(all.offset(1).limit(2)) == ["item 1", "item 2"])
        #expect(code { _ = try context.fetch(all.limit(-1)) } == .invalidRequest)
        #expect(code { _ = try context.fetch(all.offset(-1)) } == .invalidRequest)
        #expect(code { _ = try context.count(all.offset(-1)) } == .invalidRequest)
    }

    @Test func theOrderIsTotal() throws {
        let container = try memory()
        let ids = try makeItems(6, in: container) { item, index in item.number = index % 2 }
        let context = container.newContext()
        #expect(try context.fetchIDs(Item.all) == ids)
        let up = try context.fetchIDs(Item.all.sorted { [$0.number.ascending] })
        #expect(up == [ids[0], ids[2], ids[4], ids[1], ids[3], ids[5]])
        let down = try context.fetchIDs(Item.all.sorted { [$0.number.descending] })
        #expect(down == up.reversed())
        #expect(try context.fetch(Item.all.sorted { [$0.number.descending] }).map(\.id) == down)
    }

    @Test func nilFirstNaNLastBytesOfUTF8() throws {
        let container = try memory()
        let context = container.newContext()
        for (double, text, number) in [
            (Double.nan, "b", 2), (-.infinity, "B", nil), (1, "ä", 1), (0, "a", nil),
        ] as [(Double, String, Int?)] {
            let object = Everything(in: context)
            object.required = text
            object.double = double
            object.optionalInt = number
        }
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            let byDouble = try context.fetch(Everything.all.sorted { [$0.double.ascending] })
            #expect(byDouble.map(\.required) == ["B", "a", "ä", "b"])
            let byText = try context.fetch(Everything.all.sorted { [$0.required.ascending] })
            #expect(byText.map(\.required) == ["B", "a", "b", "ä"])
            let byNumber = try context.fetch(
                Everything.all.sorted { [$0.optionalInt.ascending, $0.required.descending] }
            )
            #expect(byNumber.map(\.required) == ["a", "B", "ä", "b"])
            #expect(try context.count(Everything.where { $0.double == .nan }) == 1)
        }
    }

    @Test func pagesByKey() throws {
        let container = try memory()
        try makeItems(95, in: container) { item, index in item.number = index / 10 }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.ascending, $0.title.descending] }.limit(20)
        let whole = try context.fetchIDs(request.limit(nil))
        var collected: [Item.ID] = []
        var page = try context.fetchPage(request)
        while !page.objects.isEmpty {
            collected += page.objects.map(\.id)
            let data = try JSONEncoder().encode(page.last)
            let cursor = try JSONDecoder().decode(FetchCursor.self, from: data)
            page = try context.fetchPage(request.after(cursor))
        }
        #expect(collected == whole)
        // And back again.
        page = try context.fetchPage(request.after(nil).offset(80))
        let before = try context.fetchPage(request.before(page.first))
        #expect(before.objects.map(\.id) == Array(whole[60..<80]))
        #expect(
            code { _ = try context.fetchPage(Item.all.limit(2).after(page.last)) }
                == .invalidCursor
        )
        #expect(
            code { _ = try context.fetch(request.where { $0.number > 1 }.after(page.last)) }
                == .invalidCursor
        )
    }

    @Test func pagesWhileOthersWrite() throws {
        let container = try memory()
        let ids = try makeItems(100, in: container)
        let context = container.newContext()
        let other = container.newContext()
        let request = Item.all.sorted { [$0.number.ascending] }.limit(7)
        var seen: [Item.ID] = []
        var page = try context.fetchPage(request)
        var step = 0
        while !page.objects.isEmpty {
            seen += page.objects.map(\.id)
            // Insert in front, delete what was shown (the cursor's own object too), change nothing
            // else.
            Item(in: other).number = 0
            other.delete(try other.object(with: page.objects.last!.id))
            try other.save()
            step += 1
            context.advance()
            page = try context.fetchPage(request.after(page.last))
        }
        #expect(seen == ids)
    }

    @Test func cursorsOfUnsavedObjects() throws {
        let container = try memory()
        try makeItems(10, in: container)
        let context = container.newContext()
        for index in 0..<5 {
            let item = Item(in: context)
            item.number = index * 2
            item.title = "new"
        }
        let request = Item.all.sorted { [$0.number.ascending] }.limit(4)
        let whole = try context.fetchIDs(request.limit(nil))
        #expect(whole.count == 15)
        var collected: [Item.ID] = []
        var page = try context.fetchPage(request)
        while !page.objects.isEmpty {
            collected += page.objects.map(\.id)
            page = try context.fetchPage(request.after(page.last))
        }
        #expect(collected == whole)
        page = try context.fetchPage(request.before(nil).offset(11))
        #expect(try context.fetchIDs(request.before(page.first)) == Array(whole[7..<11]))
    }

    @Test func anIndexAnswersAndExplains() throws {
        let container = try memory()
        try makeItems(1_000, in: container) { item, index in
            item.priority = [.low, .normal, .high][index % 3]
        }
        let context = container.newContext()
        let request = Item.where { $0.priority == .high }.sorted { [$0.timestamp.descending] }
        let text = try context.explain(request)
        #expect(text.contains("priority"), "\(text)")
        let before = container.statistics
        #expect(try context.count(request) == 333)
        #expect(try context.fetchIDs(request.limit(10)).count == 10)
        let after = container.statistics
        #expect(after.rowsScanned == before.rowsScanned && after.storeReads == before.storeReads)
    }

    @Test func aPageReadsHardlyMoreEntriesThanItHas() throws {
        let container = try memory()
        try makeItems(1_000, in: container)
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.ascending] }.limit(50)
        var page = try context.fetchPage(request.offset(400))
        let before = container.statistics
        page = try context.fetchPage(request.after(page.last))
        let after = container.statistics
        #expect(page.objects.first?.number == 450)
        #expect(after.entriesScanned - before.entriesScanned <= 51)
        #expect(after.rowsScanned == before.rowsScanned)
    }
}
