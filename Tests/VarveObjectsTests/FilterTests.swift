// Filters over ranges, related objects, folded texts and parts of dates, with edits beside them.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct FilterTests {
    private static let berlin = TimeZone(identifier: "Europe/Berlin") ?? .gmt

    private func all(
        _ context: ManagedObjectContext,
        _ filter: (Item.Columns) -> TypedPredicate<Item>
    ) throws -> [Int] {
        let request = Item.where(filter).sorted { [$0.number.ascending] }
        let found = try context.fetch(request).map(\.number)
        #expect(try context.count(request) == found.count)
        return found
    }

    @Test func `A range is one place in the index`() throws {
        let container = try memory()
        try makeItems(300, in: container)
        let context = container.newContext()
        #expect(try all(context) { $0.number.isIn(10...12) } == [10, 11, 12])
        #expect(try all(context) { $0.number.isIn(10..<12) } == [10, 11])
        #expect(try all(context) { $0.number.isIn(298...) } == [298, 299])
        #expect(try all(context) { $0.number.isIn(...1) } == [0, 1])
        #expect(try all(context) { $0.number.isIn(..<1) } == [0])
        #expect(try all(context) { $0.number.isIn(5..<5) } == [])
        #expect(try all(context) { !$0.number.isIn(1...) } == [0])
        let plan = try context.explain(Item.where { $0.number.isIn(10...12) })
        #expect(plan.hasPrefix("index: Item(number), 1 range, 3 entries"), "\(plan)")
        // Edits count before they are saved.
        try context.fetch(Item.where { $0.number == 11 })[0].number = 500
        #expect(try all(context) { $0.number.isIn(10...12) } == [10, 12])
        #expect(try all(context) { $0.number.isIn(300...) } == [500])
    }

    @Test func `Nil and NaN in ranges`() throws {
        let container = try memory()
        let context = container.newContext()
        for index in 0..<4 {
            let object = Everything(in: context)
            object.required = "\(index)"
            object.optionalInt = index == 0 ? nil : index
            object.double = index == 3 ? .nan : Double(index)
        }
        func names(_ filter: (Everything.Columns) -> TypedPredicate<Everything>) throws -> String {
            let request = Everything.where(filter).sorted { [$0.required.ascending] }
            return try context.fetch(request).map(\.required).joined()
        }
        for saves in [false, true] {
            if saves { try context.save() }
            #expect(try names { $0.optionalInt.isIn(...2) } == "12")
            #expect(try names { $0.optionalInt.isIn(0...) } == "123")
            #expect(try names { !$0.optionalInt.isIn(0..<3) } == "03")
            #expect(try names { $0.optionalInt.isIn(2...2) } == "2")
            #expect(try names { $0.double.isIn(0...1e300) } == "012")
            // As in indexes and orders, NaN stands above all numbers.
            #expect(try names { $0.double.isIn(1...) } == "123")
            #expect(try names { $0.decimal.isIn(..<0) } == "0123")
            #expect(try names { $0.uint64.isIn(5...) } == "0123")
            #expect(try names { $0.string.isIn("a"..<"b") } == "")
        }
    }

    @Test func `None of the related objects`() throws {
        let container = try memory()
        let context = container.newContext()
        let tags = ["t", "u"].map { name in
            let tag = Tag(in: context)
            tag.name = name
            return tag
        }
        for number in 0..<4 {
            let item = Item(in: context)
            item.number = number
            if number & 1 != 0 { item.tags.append(tags[0]) }
            if number & 2 != 0 { item.tags.append(tags[1]) }
        }
        for saves in [false, true] {
            if saves { try context.save() }
            #expect(try all(context) { $0.tags.none { $0.name == "t" } } == [0, 2])
            #expect(try all(context) { !$0.tags.none { $0.name == "t" } } == [1, 3])
            #expect(try all(context) { $0.tags.none { _ in .always } } == [0])
        }
        tags[0].name = "u"
        #expect(try all(context) { $0.tags.none { $0.name == "t" } } == [0, 1, 2, 3])
        #expect(try all(context) { $0.tags.none { $0.name == "u" } } == [0])
    }

    @Test func `Texts without regard to case and diacritics`() throws {
        let container = try memory()
        let titles = ["Élan", "ELAN", "e\u{301}lan", "Elan", "lan"]
        try makeItems(titles.count, in: container) { item, index in item.title = titles[index] }
        let context = container.newContext()
        #expect(try all(context) { $0.title.hasPrefix("Él") } == [0])
        #expect(
            try all(context) { $0.title.hasPrefix("El", ignoringDiacritics: true) } == [0, 3]
        )
        #expect(try all(context) { $0.title.equals("éLAN", ignoringCase: true) } == [0])
        #expect(
            try all(context) {
                $0.title.equals("elan", ignoringCase: true, ignoringDiacritics: true)
            } == [0, 1, 2, 3]
        )
        #expect(
            try all(context) {
                $0.title.contains("ÉL", ignoringCase: true, ignoringDiacritics: true)
            } == [0, 1, 2, 3]
        )
        #expect(try all(context) { $0.title.hasSuffix("Lan", ignoringCase: true) }.count == 5)
        try context.fetch(Item.where { $0.number == 4 })[0].title = "é"
        #expect(
            try all(context) { $0.title.equals("E", ignoringCase: true, ignoringDiacritics: true) }
                == [4]
        )
    }

    @Test func `Parts of dates by the clock of a zone`() throws {
        let container = try memory()
        // Half past eleven at night in UTC, the new year in Berlin.
        let eve = Date(timeIntervalSinceReferenceDate: -1_800)
        try makeItems(4, in: container) { item, index in
            item.timestamp = eve + Double(index - 1) * 366 * 86_400
        }
        let context = container.newContext()
        #expect(try all(context) { $0.timestamp.year(in: .gmt) == 2000 } == [1])
        #expect(try all(context) { $0.timestamp.year(in: Self.berlin) == 2000 } == [0])
        #expect(try all(context) { $0.timestamp.year(in: Self.berlin) == 2001 } == [1])
        let years = try all(context) { $0.timestamp.year(in: Self.berlin).isIn(2000...2002) }
        #expect(years == [0, 1, 2])
        #expect(try all(context) { $0.timestamp.month(in: .gmt) == 12 } == [0, 1])
        #expect(try all(context) { $0.timestamp.day(in: Self.berlin) == 1 } == [0, 1])
        #expect(try all(context) { $0.timestamp.hour(in: Self.berlin) == 0 } == [0, 1, 2, 3])
        #expect(try all(context) { $0.timestamp.minute(in: .gmt) == 30 } == [0, 1, 2, 3])
        // 2000-12-31 was a Sunday.
        #expect(try all(context) { $0.timestamp.weekday(in: .gmt) == 1 } == [1])
        let byHour = Item.all.sorted {
            [$0.timestamp.month(in: .gmt).descending, $0.number.ascending]
        }
        #expect(try context.fetch(byHour).map(\.number) == [0, 1, 2, 3])
        #expect(
            try context.select(Item.all.sorted { [$0.number.ascending] }) {
                $0.timestamp.year(in: .gmt)
            } == ([1999, 2000, 2002, 2003] as [Int?])
        )
        try context.fetch(Item.where { $0.number == 1 })[0].timestamp = .distantFuture
        #expect(try all(context) { $0.timestamp.year(in: .gmt) == 2000 } == [])
        #expect(try all(context) { $0.timestamp.year(in: .gmt) > 4000 } == [1])
        // Not dates that a calendar has: no part, and no trap.
        let wild = try context.fetch(Item.where { $0.number == 1 })[0]
        for seconds in [Double.nan, .infinity, -.infinity, 1e300, -1e19] {
            wild.timestamp = Date(timeIntervalSinceReferenceDate: seconds)
            #expect(try all(context) { $0.timestamp.year(in: Self.berlin) == nil } == [1])
            #expect(try all(context) { $0.timestamp.hour(in: Self.berlin) >= 0 } == [0, 2, 3])
        }
    }

    @Test func `Cursors belong to one zone and one range`() throws {
        let container = try memory()
        try makeItems(5, in: container)
        let context = container.newContext()
        let page = try context.fetchPage(
            Item.where { $0.timestamp.year(in: .gmt) == 2001 }.limit(2)
        )
        #expect(page.objects.count == 2)
        let next = Item.where { $0.timestamp.year(in: .gmt) == 2001 }.after(page.last)
        #expect(try context.fetch(next).count == 3)
        let others = [
            Item.where { $0.timestamp.year(in: Self.berlin) == 2001 },
            Item.where { $0.timestamp.month(in: .gmt) == 2001 },
            Item.where { $0.number.isIn(0...2001) },
        ]
        for other in others {
            #expect(code { _ = try context.fetch(other.after(page.last)) } == .invalidCursor)
        }
    }
}
