// What a new user tries first: short filters, long filters, batches with links, URLs, and errors
// that say a thing once.

import Foundation
import Testing
import VarveBase
import VarveObjects

@Suite(.verified) struct SmallPromiseTests {
    @Test func anAttributeThatIsTrueOrFalseIsAFilter() throws {
        let container = try memory()
        let context = container.newContext()
        for index in 0..<4 {
            let object = Everything(in: context)
            object.required = "r\(index)"
            object.bool = index < 3
            object.int = index
        }
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            #expect(try context.count(Everything.where { $0.bool }) == 3)
            #expect(try context.count(Everything.where { !$0.bool }) == 1)
            #expect(try context.count(Everything.where { $0.bool && $0.int > 0 }) == 2)
            #expect(try context.count(Everything.where { $0.int == 3 || $0.bool }) == 4)
            #expect(try context.count(Everything.where { $0.bool && $0.bool }) == 3)
            #expect(try context.count(Everything.where { !($0.bool || $0.int == 3) }) == 0)
            #expect(try context.count(Everything.all.where { $0.bool }.where { $0.int < 1 }) == 1)
        }
    }

    @Test(arguments: [false, true]) func aFilterOfAHundredThousandTerms(isOneColumn: Bool) throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let numbers = Array(10..<100_010)
        func term(_ number: Int) -> TypedPredicate<Item> {
            isOneColumn || number % 2 == 0
                ? Item.columns.number == number : Item.columns.title == "none"
        }
        var left = Item.columns.number == 1
        for number in numbers { left = left || term(number) }
        #expect(try context.fetchIDs(FetchDescriptor(filter: left)) == [ids[1]])
        var right = Item.columns.number == 2
        for number in numbers.reversed() { right = term(number) || right }
        #expect(try context.fetchIDs(FetchDescriptor(filter: right)) == [ids[2]])
        var all = Item.columns.number != 1
        for number in numbers { all = all && !term(number) }
        #expect(try context.count(FetchDescriptor(filter: all)) == 2)
        // Halves of halves.
        func tree(_ range: Range<Int>) -> TypedPredicate<Item> {
            if range.count == 1 { return term(range.lowerBound) }
            let middle = range.lowerBound + range.count / 2
            return tree(range.lowerBound..<middle) || tree(middle..<range.upperBound)
        }
        #expect(
            try context.count(FetchDescriptor(filter: tree(0..<100_000))) == (isOneColumn ? 3 : 2)
        )
        // How terms are grouped means nothing to a cursor.
        let request = FetchDescriptor(filter: left).sorted { [$0.number.ascending] }.limit(1)
        #expect(try context.fetch(request).count == 1)
    }

    @Test func aRelativeURLComesBack() throws {
        let folder = try TemporaryFolder()
        let base = URL(string: "https://example.org/a/")!
        let urls = [
            URL(string: "b/c?d#e", relativeTo: base)!, URL(string: "../up", relativeTo: base)!,
            URL(string: "b/c")!, URL(string: "https://example.org/ä b")!,
            URL(fileURLWithPath: "some file"), URL(fileURLWithPath: "/etc/"),
            URL(string: "?q", relativeTo: base)!, URL(string: "mailto:a@example.org")!,
        ]
        do {
            let container = try folder.open()
            let context = container.newContext()
            for (index, url) in urls.enumerated() {
                let object = Everything(in: context)
                object.required = "\(index)"
                object.int = index
                object.url = url
                #expect(object.url == url)
            }
            try context.save()
            try container.closeNow()
        }
        let container = try folder.open()
        let context = container.newContext()
        let read = try context.fetch(Everything.all.sorted { [$0.int.ascending] }).map(\.url)
        #expect(read == urls)
        #expect(read.map(\.absoluteString) == urls.map(\.absoluteString))
        for url in urls { #expect(try context.count(Everything.where { $0.url == url }) == 1) }
        try container.closeNow()
    }

    @Test func aPositionInAnUnorderedRelationshipIsRefused() throws {
        let container = try memory()
        let context = container.newContext()
        let (tag, item) = (Tag(in: context), Item(in: context))
        tag.items.insert(item, at: 0)
        #expect(tag.items.isEmpty)
        let error = #expect(throws: StoreError.self) { try context.save() }
        #expect(error?.code == .invalidRequest && error?.place.attribute == "items")
        // The way out that the error names.
        tag.items.append(item)
        try context.save()
        #expect(item.tags.map(\.id) == [tag.id])
    }

    @Test func aBatchSetsManyToMany() throws {
        let container = try memory()
        let context = container.newContext()
        let tags = (0..<4).map { index in
            let tag = Tag(in: context)
            tag.name = "t\(index)"
            return tag
        }
        try context.save()
        let ids = tags.map(\.id)
        let result = try context.batchInsert(Item.self, count: 3) { row, index in
            row.number = index
            row.tags = [ids[3], ids[index], ids[3]]
        }
        #expect(result.inserted == 3)
        func names() throws -> [[String]] {
            let fresh = container.newContext()
            return try fresh.fetch(Item.all.sorted { [$0.number.ascending] })
                .map { $0.tags.map(\.name) }
        }
        #expect(try names() == [["t3", "t0"], ["t3", "t1"], ["t3", "t2"]])
        #expect(tags[3].items.count == 3)
        // Reading back, reordering, taking out; what stays as it is is skipped.
        let changed = try context.batchUpdate(Item.all) { row in
            row.tags = row.number == 0 ? row.tags : row.tags.reversed().filter { $0 != ids[2] }
        }
        #expect(changed.updated == 2 && changed.skipped == 1)
        #expect(try names() == [["t3", "t0"], ["t1", "t3"], ["t3"]])
        // The side without order.
        let far = try context.batchUpdate(Tag.where { $0.name == "t0" }) { row in row.items = [] }
        #expect(far.updated == 1)
        #expect(try names() == [["t3"], ["t1", "t3"], ["t3"]])
        // What leads nowhere, and what another side keeps, is an error; nothing is written.
        let nowhere = #expect(throws: StoreError.self) {
            try context.batchInsert(Item.self, count: 1) { row, _ in
                row.tags = [container.id("Tag/99999", of: Tag.self)!]
            }
        }
        #expect(nowhere?.code == .objectNotFound)
        let kept = #expect(throws: StoreError.self) {
            try context.batchInsert(Folder.self, count: 1) { row, _ in row.items = [] }
        }
        #expect(kept?.code == .invalidRequest && kept?.place.attribute == "items")
        #expect(try context.count(Item.all) == 3 && context.count(Folder.all) == 0)
    }

    @Test func aDuplicateIsSaidOnceWithTheObjectsAndTheWayOut() throws {
        let container = try memory()
        let context = container.newContext()
        let serial = UUID()
        let items = (0..<2).map { _ in Item(in: context) }
        for item in items { item.serial = serial }
        let error = try #require(#expect(throws: StoreError.self) { try context.save() })
        #expect(error.code == .notUnique && error.details.count == 1)
        #expect(error.details[0].objects == items.map(\.objectID))
        let text = error.description
        #expect(text.components(separatedBy: "the same serial").count == 2, "\(text)")
        for item in items { #expect(text.contains(item.id.description), "\(text)") }
        #expect(error.suggestion?.contains("onConflict") == true)
        // One of them is changed: the rest is saved.
        items[0].serial = nil
        try context.save()
    }
}
