// Filters and orders as text, through a container: every type of value, and errors.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct ContainerQueryTextTests {
    @Test func `Every type of value is printed and read`() throws {
        let container = try memory()
        let everything = Everything.columns
        let filters: [TypedPredicate<Everything>] = [
            everything.bool == false, everything.int == .min, everything.int8 == -128,
            everything.int16.isIn([1, -1]), everything.int32 < 5, everything.int64 == .max,
            everything.uint == .max, everything.uint8 == 255, everything.uint16 != 0,
            everything.uint32 == .max, everything.uint64.isIn(0...UInt64.max),
            everything.double == 0.1 + 0.2, everything.double == -0.0,
            everything.double == .infinity, everything.double == .leastNonzeroMagnitude,
            everything.float == 0.1, everything.float == -.infinity,
            everything.string == "\"\\ä\u{0}\n\u{202e}'`{",
            everything.date == Date(timeIntervalSinceReferenceDate: 12.75),
            everything.date == .distantPast, everything.date == .distantFuture,
            everything.date < Date(timeIntervalSinceReferenceDate: 1e300),
            everything.uuid == UUID(uuidString: "A0010203-0405-0607-0809-0A0B0C0D0E0F")!,
            everything.url == URL(string: "https://example.org/a?b=c")!,
            everything.data == Data([0, 1, 255]), everything.data == Data(),
            everything.decimal == Decimal(string: "-123.4500")!, everything.decimal == 0,
            everything.decimal == Decimal.greatestFiniteMagnitude, everything.color == .red,
            everything.priority == .normal, everything.optionalColor == nil,
            everything.optionalDate.year(in: .gmt) == 2024,
            everything.date.weekday(in: TimeZone(secondsFromGMT: 7_200) ?? .gmt).isIn(1...2),
            everything.optionalString.contains("x", ignoringDiacritics: true),
        ]
        for filter in filters {
            let text = try container.text(of: filter)
            #expect(try container.filter(text, of: Everything.self) == filter, "\(text)")
        }
        #expect(try container.text(of: everything.color == .red) == "color == \"red\"")
        #expect(try container.text(of: everything.priority == .high) == "priority == 2")
        #expect(
            try container.filter(
                "uuid == a0010203-0405-0607-0809-0a0b0c0d0e0f",
                of: Everything.self
            )
                == (everything.uuid == UUID(uuidString: "A0010203-0405-0607-0809-0A0B0C0D0E0F")!)
        )
    }

    @Test func `Relationships, blobs and objects`() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let columns = Item.columns
        let digest = BlobDigest(1, 2, 3, .max)
        let filters: [TypedPredicate<Item>] = [
            columns.picture.data.length > 5, columns.picture.data.digest == digest,
            columns.picture.data != nil, columns.folder.owner.name.hasSuffix("x"),
            columns.tags.none { $0.name == "t" }, columns.tags.count { $0.name == "t" } > 1,
            columns.tags.all { $0.items.any { $0.number == 1 } },
        ]
        for filter in filters {
            let text = try container.text(of: filter)
            #expect(try container.filter(text, of: Item.self) == filter, "\(text)")
        }
        let context = container.newContext()
        let one = try container.filter(
            "number in 1...1 && self == Item:\(number(ids[1]))",
            of: Item.self
        )
        #expect(try context.fetchIDs(FetchDescriptor(filter: one)) == [ids[1]])
        let order = try container.order("number.descending", of: Item.self)
        #expect(order == [columns.number.descending])
        #expect(try container.text(of: order) == "-number")
    }

    private func number(_ id: Item.ID) -> String {
        String("\(id)".split { !$0.isNumber }.last ?? "")
    }

    @Test func `Errors tell the place and what is possible`() throws {
        let container = try memory()
        do {
            _ = try container.filter("title == 'x' && nummer == 1", of: Item.self)
            Issue.record("read")
        } catch {
            #expect(error.code == .unsupportedPredicate && error.place.entity == "Item")
            let picture = "title == 'x' && nummer == 1\n                ^"
            #expect(error.message == "Item has no nummer; did you mean number?\n\(picture)")
            #expect(error.suggestion?.contains("number") == true)
        }
        #expect(code { _ = try container.order("nope", of: Item.self) } == .invalidRequest)
    }
}
