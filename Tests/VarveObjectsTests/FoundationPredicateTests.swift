// Foundation's predicates: each shape is answered as Foundation evaluates it, or refused by name.

import Foundation
import Testing
import VarveObjects

extension Item {
    static var keyPaths: [PartialKeyPath<Item>: String] {
        [
            \Item.id: "id", \Item.objectID: "objectID", \Item.timestamp: "timestamp",
            \Item.title: "title", \Item.priority: "priority",
            \Item.serial: "serial", \Item.number: "number", \Item.picture: "picture",
            \Item.tags: "tags", \Item.folder: "folder",
        ]
    }
    /// No stored property.
    var shouting: String { title.uppercased() }
}

extension Tag {
    static var keyPaths: [PartialKeyPath<Tag>: String] {
        [\Tag.name: "name", \Tag.items: "items"]
    }
}

extension Folder {
    static var keyPaths: [PartialKeyPath<Folder>: String] {
        [
            \Folder.id: "id", \Folder.objectID: "objectID", \Folder.name: "name",
            \Folder.items: "items", \Folder.owner: "owner",
        ]
    }
}

extension Person {
    static var keyPaths: [PartialKeyPath<Person>: String] { [\Person.name: "name"] }
}

extension Everything {
    static var keyPaths: [PartialKeyPath<Everything>: String] {
        [
            \Everything.bool: "bool", \Everything.double: "double", \Everything.float: "float",
            \Everything.uint64: "uint64", \Everything.int8: "int8", \Everything.date: "date",
            \Everything.color: "color", \Everything.optionalInt: "optionalInt",
            \Everything.optionalString: "optionalString", \Everything.required: "required",
            \Everything.optionalBool: "optionalBool", \Everything.optionalDate: "optionalDate",
            \Everything.optionalColor: "optionalColor", \Everything.string: "string",
        ]
    }
}

// Foundation's predicates take enums that are Codable.
extension Priority: Codable {}
extension Color: Codable {}

@Suite(.verified) struct FoundationPredicateTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext

    init() throws {
        container = try memory()
        context = container.newContext()
        let tags = ["t", "u", "v"].map { name in
            let tag = Tag(in: context)
            tag.name = name
            return tag
        }
        let person = Person(in: context)
        person.name = "owner"
        let folders = ["x", "y"].map { name in
            let folder = Folder(in: context)
            folder.name = name
            return folder
        }
        folders[0].owner = person
        for number in 0..<12 {
            let item = Item(in: context)
            item.number = number
            item.title = ["", "abc", "ab", "b"][number % 4]
            item.priority = [.low, .normal, .high][number % 3]
            item.serial = number.isMultiple(of: 2) ? nil : UUID()
            item.timestamp = Date(timeIntervalSinceReferenceDate: Double(number))
            item.folder = number < 4 ? folders[0] : number < 8 ? folders[1] : nil
            for (index, tag) in tags.enumerated() where number >> index & 1 == 1 {
                item.tags.append(tag)
            }
            let all = Everything(in: context)
            all.required = "\(number)"
            all.double = [.nan, -.infinity, 0, 1.5, .infinity, -0.0][number % 6]
            all.float = number.isMultiple(of: 5) ? .nan : Float(number)
            all.date = Date(
                timeIntervalSinceReferenceDate: number.isMultiple(of: 4) ? .nan : Double(number)
            )
            all.optionalInt = number.isMultiple(of: 3) ? nil : number
            all.optionalString = [nil, "", "xyz"][number % 3]
            all.optionalBool = [nil, true, false][number % 3]
            all.bool = number < 5
            all.color = number < 7 ? .red : .green
            all.optionalColor = [nil, .red, .green][number % 3]
            all.uint64 = number < 2 ? .max : UInt64(number)
        }
        try context.save()
    }

    /// Fetched as Foundation evaluates it in memory, saved and not.
    private func same<Entity: ManagedObject>(
        _ predicate: Foundation.Predicate<Entity>,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let request = try FetchDescriptor(predicate: predicate)
        let wanted = try context.fetch(FetchDescriptor<Entity>()).filter {
            try predicate.evaluate($0)
        }
        let found = try context.fetch(request)
        #expect(
            found.map(\.objectID) == wanted.map(\.objectID),
            "\(predicate)",
            sourceLocation: location
        )
    }

    private func refused<Entity: ManagedObject>(
        _ predicate: Foundation.Predicate<Entity>,
        _ name: String,
        _ location: SourceLocation = #_sourceLocation
    ) {
        do throws(StoreError) {
            _ = try FetchDescriptor(predicate: predicate)
            Issue.record("\(predicate) was taken", sourceLocation: location)
        } catch {
            #expect(error.code == .unsupportedPredicate, sourceLocation: location)
            #expect(error.message.contains(name), "\(error)", sourceLocation: location)
        }
    }

    @Test func `Comparisons and joins`() throws {
        let limit = 5
        try same(#Predicate<Item> { $0.number == 3 })
        try same(#Predicate<Item> { 3 != $0.number })
        try same(#Predicate<Item> { $0.number < limit && $0.title == "abc" })
        try same(#Predicate<Item> { limit <= $0.number || !($0.title > "ab") })
        try same(#Predicate<Item> { $0.number >= limit + 2 })
        try same(#Predicate<Item> { $0.title.isEmpty })
        try same(#Predicate<Item> { $0.number > 3 ? $0.title == "b" : $0.title == "ab" })
        try same(#Predicate<Item> { _ in true })
        try same(#Predicate<Everything> { $0.bool })
        try same(#Predicate<Everything> { !$0.bool || $0.uint64 == 8 })
        try same(#Predicate<Everything> { $0.bool == false })
        try same(#Predicate<Everything> { $0.string == $0.required })
        try same(#Predicate<Everything> { $0.uint64 > 4 })
        let date = Date(timeIntervalSinceReferenceDate: 5)
        try same(#Predicate<Item> { $0.timestamp > date })
    }

    @Test func `Numbers that are none`() throws {
        let missing = Double.nan
        try same(#Predicate<Everything> { $0.double > 1 })
        try same(#Predicate<Everything> { $0.double >= 0 })
        try same(#Predicate<Everything> { !($0.double > 1) })
        try same(#Predicate<Everything> { $0.double < 1 })
        try same(#Predicate<Everything> { $0.double == missing })
        try same(#Predicate<Everything> { $0.double != missing })
        try same(#Predicate<Everything> { $0.double > missing })
        try same(#Predicate<Everything> { $0.double == 0 })
        try same(#Predicate<Everything> { $0.double == $0.double })
        try same(#Predicate<Everything> { $0.double != $0.double })
        try same(#Predicate<Everything> { $0.float >= $0.float })
        let date = Date(timeIntervalSinceReferenceDate: 3)
        try same(#Predicate<Everything> { $0.date > date })
        try same(#Predicate<Everything> { !($0.date > date) })
        let list = [0, missing, 1.5]
        try same(#Predicate<Everything> { list.contains($0.double) })
        let range = 0...Double.infinity
        try same(#Predicate<Everything> { range.contains($0.double) })
        let from = 0.0...
        try same(#Predicate<Everything> { from.contains($0.double) })
    }

    @Test func `Nil and optionals`() throws {
        let none: Int? = nil
        let some: Int? = 4
        try same(#Predicate<Everything> { $0.optionalInt == nil })
        try same(#Predicate<Everything> { $0.optionalInt != nil })
        try same(#Predicate<Everything> { $0.optionalInt == none })
        try same(#Predicate<Everything> { $0.optionalInt == some })
        try same(#Predicate<Everything> { $0.optionalInt != some })
        try same(#Predicate<Everything> { ($0.optionalInt ?? 100) > 5 })
        try same(#Predicate<Everything> { ($0.optionalInt ?? 0) == 0 })
        try same(#Predicate<Everything> { $0.optionalBool ?? true })
        try same(#Predicate<Everything> { $0.optionalBool == true })
        try same(#Predicate<Everything> { $0.optionalBool != true })
        try same(#Predicate<Everything> { $0.optionalString?.contains("y") == true })
        try same(#Predicate<Everything> { $0.optionalString?.contains("y") != true })
        try same(#Predicate<Everything> { $0.optionalString?.isEmpty ?? true })
        try same(#Predicate<Everything> { $0.optionalString?.isEmpty == nil })
        try same(#Predicate<Everything> { ($0.optionalString ?? "xa").starts(with: "x") })
        try same(#Predicate<Everything> { $0.optionalInt.flatMap { $0 > 4 } ?? false })
        try same(#Predicate<Everything> { $0.optionalInt.flatMap { $0 > 4 } == false })
    }

    @Test func `Enums, IDs and relationships`() throws {
        let high = Priority.high
        let green = Color.green
        try same(#Predicate<Item> { $0.priority == high })
        try same(#Predicate<Item> { $0.priority != high })
        try same(#Predicate<Everything> { $0.color == green })
        try same(#Predicate<Everything> { $0.optionalColor == green })
        try same(#Predicate<Everything> { $0.optionalColor != green })
        let list = [Priority.low, .high]
        try same(#Predicate<Item> { list.contains($0.priority) })
        let ids = try context.fetchIDs(Item.where { $0.number.isIn(2...4) })
        let id = ids[0]
        try same(#Predicate<Item> { $0.id == id })
        try same(#Predicate<Item> { ids.contains($0.id) })
        let folder = try context.fetchIDs(Folder.where { $0.name == "y" })[0]
        let untyped = folder.objectID
        try same(#Predicate<Item> { $0.folder?.id == folder })
        try same(#Predicate<Item> { $0.folder?.objectID != untyped })
        try same(#Predicate<Item> { $0.folder == nil })
        try same(#Predicate<Item> { $0.folder != nil })
        try same(#Predicate<Item> { $0.folder?.name == "x" })
        try same(#Predicate<Item> { $0.folder?.name != "x" })
        try same(#Predicate<Item> { ($0.folder?.name ?? "z") > "x" })
        try same(#Predicate<Item> { $0.folder?.owner?.name == "owner" })
        try same(#Predicate<Item> { $0.folder?.owner == nil })
        let serial = try context.fetch(Item.where { $0.number == 3 })[0].serial
        try same(#Predicate<Item> { $0.serial == serial })
    }

    @Test func `Related objects`() throws {
        try same(#Predicate<Item> { $0.tags.contains { $0.name == "t" } })
        try same(#Predicate<Item> { !$0.tags.contains { $0.name == "t" } })
        try same(#Predicate<Item> { $0.tags.allSatisfy { $0.name > "t" } })
        try same(#Predicate<Item> { $0.tags.isEmpty })
        try same(#Predicate<Item> { $0.tags.count == 2 })
        try same(#Predicate<Item> { $0.tags.count > 1 && $0.number < 8 })
        try same(#Predicate<Item> { $0.tags.filter { $0.name > "t" }.count == 1 })
        try same(#Predicate<Item> { $0.tags.filter { $0.name > "t" }.contains { $0.name == "v" } })
        try same(#Predicate<Tag> { $0.items.contains { $0.folder?.name == "y" } })
        try same(#Predicate<Item> { ($0.folder?.items.count ?? 0) > 3 })
        try same(#Predicate<Item> { $0.folder?.items.count == nil })
        try same(#Predicate<Item> { $0.folder?.items.contains { $0.number == 5 } == true })
    }

    @Test func `Texts, lists and ranges`() throws {
        let numbers = [1, 5, 50]
        let set: Set<String> = ["ab", "b"]
        let bounds = 2..<5
        try same(#Predicate<Item> { $0.title.contains("b") })
        try same(#Predicate<Item> { $0.title.contains("") })
        try same(#Predicate<Item> { $0.title.starts(with: "ab") })
        try same(#Predicate<Item> { numbers.contains($0.number) })
        try same(#Predicate<Item> { set.contains($0.title) })
        try same(#Predicate<Item> { bounds.contains($0.number) })
        try same(#Predicate<Item> { (2...4).contains($0.number) })
        try same(#Predicate<Item> { (2..<4).contains($0.number) })
        let request = try FetchDescriptor(
            predicate: #Predicate<Item> { (2...4).contains($0.number) }
        )
        #expect(try context.explain(request).hasPrefix("index: Item(number), 1 range, 3 entries"))
    }

    @Test func `What a store cannot answer is refused by name`() {
        refused(#Predicate<Item> { $0.number + 1 == 3 }, "Arithmetic")
        refused(#Predicate<Item> { -$0.number == 3 }, "UnaryMinus")
        refused(#Predicate<Item> { $0.number % 2 == 0 }, "IntRemainder")
        refused(#Predicate<Item> { $0.number / 2 == 0 }, "IntDivision")
        refused(#Predicate<Everything> { $0.double / 2 == 0 }, "FloatDivision")
        refused(#Predicate<Item> { $0.title.count == 3 }, "KeyPath")
        refused(#Predicate<Item> { $0.priority.rawValue < 2 }, "KeyPath")
        refused(#Predicate<Item> { $0.shouting == "A" }, "KeyPath")
        refused(#Predicate<Item> { $0.folder!.name == "x" }, "ForcedUnwrap")
        refused(#Predicate<Account> { $0.name == "x" }, "KeyPath")
        refused(
            #Predicate<Item> { item in item.tags.contains { $0.name == item.title } },
            "Variable"
        )
    }

    @Test func `Orders`() throws {
        let orders: [[SortDescriptor<Item>]] = [
            [SortDescriptor(\Item.number, order: .reverse)],
            [SortDescriptor(\Item.title, comparator: .lexical), SortDescriptor(\Item.number)],
            [SortDescriptor(\Item.timestamp, order: .reverse)],
        ]
        for order in orders {
            let request = try FetchDescriptor<Item>(predicate: nil, sortBy: order)
            let wanted = try context.fetch(Item.all).sorted(using: order)
            #expect(try context.fetch(request).map(\.number) == wanted.map(\.number))
        }
        let refused: [SortDescriptor<Item>] = [SortDescriptor(\Item.shouting)]
        for order in refused {
            #expect(
                code { _ = try FetchDescriptor<Item>(predicate: nil, sortBy: [order]) }
                    == .unsupportedPredicate
            )
        }
    }
}
