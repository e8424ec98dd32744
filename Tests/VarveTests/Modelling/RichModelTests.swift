// What an attribute can be besides a plain value: composites, codecs, Codable values, arrays, rules
// and derived attributes, from the declaration to the file and back.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Rich attributes") struct RichModelTests {
    private func fill(_ guest: Guest) {
        guest.name = "Ada"
        guest.credit = Cents(amount: 250)
        guest.stay = .seconds(7200)
        guest.wait = .milliseconds(1500)
        guest.theme = Theme(name: "dark", sizes: ["b": 2.5, "a": 0.1])
        guest.nicknames = ["Countess", "\"A\"", ""]
        guest.scores = ["chess": 3]
        guest.moods = [.wild, .calm]
        guest.address = Address(street: "Main St 1", city: "London", zip: 7, mood: .wild)
        guest.holiday = Address(city: "Rome")
    }

    private func check(_ guest: Guest) {
        #expect(guest.credit == Cents(amount: 250))
        #expect(guest.stay == .seconds(7200) && guest.wait == .milliseconds(1500))
        #expect(guest.theme == Theme(name: "dark", sizes: ["b": 2.5, "a": 0.1]))
        #expect(guest.nicknames == ["Countess", "\"A\"", ""])
        #expect(guest.scores == ["chess": 3] && guest.moods == [.wild, .calm])
        let home = Address(street: "Main St 1", city: "London", zip: 7, mood: .wild)
        #expect(guest.address == home && guest.address.label == "Main St 1, London")
        #expect(guest.holiday == Address(city: "Rome"))
        #expect(guest.sortName == "ada" && guest.initials == "aL" && guest.longStay)
        let snapshot = guest.snapshot()
        #expect(snapshot.address == home && snapshot.holiday == Address(city: "Rome"))
        #expect(snapshot.sortName == "ada" && snapshot.nicknames.count == 3)
        #expect(snapshot.stay.value == .seconds(7200))
    }

    /// Values that no case and no codec has were stored, and nobody could read them.
    @Test("JSON Lines refuse what is no value of a property, or of a composite's field")
    func hostileLines() async throws {
        let store = try TemporaryStore()
        let container = try await PersistentContainer.open(at: store.url, schema: RichSchema.self)
        let context = container.newContext()
        for line in [
            #"{"name": "a", "address.mood": "bogus"}"#, #"{"name": "a", "holiday.mood": "bogus"}"#,
            #"{"name": "a", "credit": -1}"#, #"{"name": "a", "theme": "bogus"}"#,
            #"{"name": "a", "moods": "[\"bogus\"]"}"#,
        ] {
            let lines = AsyncStream<Data> { lines in
                lines.yield(Data(line.utf8))
                lines.finish()
            }
            do {
                try await context.batchInsert(Guest.self, jsonLines: lines)
                Issue.record("\(line) was stored")
            } catch let error as StoreError {
                #expect(error.code == .invalid, "\(line): \(error)")
            }
        }
        let sound = AsyncStream<Data> { lines in
            lines.yield(Data(#"{"name": "a", "address.mood": "wild", "source": "b"}"#.utf8))
            lines.finish()
        }
        try await context.batchInsert(Guest.self, jsonLines: sound)
        let guest = try #require(try context.fetch(Guest.all).first)
        #expect(guest.address.mood == .wild && guest.source == "b" && guest.readFailure == nil)
        try await container.close()
    }

    @Test("Every kind of value is the same before a save, after it, and in another opening")
    func roundTrip() async throws {
        let store = try TemporaryStore()
        let id: Guest.ID
        do {
            let container = try await PersistentContainer.open(
                at: store.url,
                schema: RichSchema.self
            )
            let context = container.newContext()
            let guest = Guest(in: context)
            #expect(guest.sortName == "new" && guest.address == Address() && guest.holiday == nil)
            fill(guest)
            check(guest)
            try context.save()
            check(guest)
            let fresh = container.newContext()
            check(try #require(try fresh.fetch(Guest.all).first))
            id = guest.id
            try await container.close()
        }
        let container = try await PersistentContainer.open(at: store.url, schema: RichSchema.self)
        let context = container.newContext()
        let guest = try #require(try context.existingObject(with: id))
        check(guest)
        // Nothing of it is an edit.
        guest.address = guest.address
        guest.nicknames = guest.nicknames
        guest.theme = guest.theme
        #expect(!context.hasChanges)
        guest.holiday = nil
        guest.scores = nil
        try context.save()
        let fresh = container.newContext()
        let other = try #require(try fresh.existingObject(with: id))
        #expect(other.holiday == nil && other.scores == nil && other.address.city == "London")
    }

    @Test("Requests ask about fields, codecs and derived values, with unsaved edits and without")
    func requests() async throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        for number in 0..<20 {
            let guest = Guest(in: context)
            guest.name = "Guest \(19 - number)"
            guest.address.city = ["Rome", "Oslo"][number % 2]
            guest.address.zip = number
            guest.stay = .seconds(number * 600)
            guest.credit = Cents(amount: number)
            if number % 4 == 0 { guest.holiday = Address(city: "Nice") }
        }
        for saves in [false, true] {
            if saves { try context.save() }
            #expect(try context.count(Guest.where { $0.address.city == "Oslo" }) == 10)
            #expect(try context.count(Guest.where { $0.holiday == nil }) == 15)
            #expect(try context.count(Guest.where { $0.holiday != nil }) == 5)
            #expect(try context.count(Guest.where { $0.holiday.city == "Nice" }) == 5)
            #expect(try context.count(Guest.where { $0.holiday == Address(city: "Nice") }) == 5)
            #expect(
                try context.count(Guest.where { $0.address == Address(city: "Oslo", zip: 3) }) == 1
            )
            #expect(
                try context.count(Guest.where { $0.address != Address(city: "Oslo", zip: 3) }) == 19
            )
            #expect(try context.count(Guest.where { $0.longStay }) == 13)
            #expect(try context.count(Guest.where { $0.stay > Coded(.seconds(3600)) }) == 13)
            #expect(try context.count(Guest.where { $0.credit < Cents(amount: 4) }) == 4)
            #expect(try context.count(Guest.where { $0.nicknames == [] }) == 20)
            let byName = try context.fetch(Guest.all.sorted { [$0.sortName.ascending] })
            #expect(byName.first?.name == "Guest 0" && byName.last?.name == "Guest 9")
            let zips = try context.fetch(
                Guest.where { $0.address.city == "Rome" }.sorted { [$0.address.zip.descending] }
            )
            #expect(zips.map(\.address.zip) == [18, 16, 14, 12, 10, 8, 6, 4, 2, 0])
        }
        let plan = try context.explain(Guest.where { $0.address.city == "Rome" }).description
        #expect(plan.contains("address.city"))
        let text = try container.filter(
            "address.city == \"Rome\" && address.zip > 9",
            of: Guest.self
        )
        #expect(try context.count(Guest.where { _ in text }) == 5)
        let printed = try container.text(of: Guest.columns.address.city == "Rome")
        #expect(printed == "address.city == \"Rome\"")
    }

    @Test("Two contexts that edit two fields of a composite do not meet in it")
    func fieldsAreMergedOneByOne() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let (first, second) = (container.newContext(), container.newContext())
        let guest = Guest(in: first)
        guest.name = "Bea"
        guest.address = Address(street: "A", city: "Oslo", zip: 1)
        try first.save()
        let same = try #require(try second.existingObject(with: guest.id))
        same.address.city = "Bergen"
        guest.address.street = "B"
        guest.name = "Cleo"
        try first.save()
        try second.save(mergePolicy: .objectWinsByProperty)
        #expect(same.address == Address(street: "B", city: "Bergen", zip: 1))
        // Made of one side's name and the other side's city.
        #expect(same.initials == "cB")
        let third = container.newContext()
        #expect(try third.count(Guest.where { $0.initials == "cB" }) == 1)
        #expect(try third.count(Guest.where { $0.sortName == "cleo" }) == 1)
    }

    @Test("A merge under edits makes derived values again")
    func derivedOverMerges() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let (first, second) = (container.newContext(), container.newContext())
        let guest = Guest(in: first)
        guest.name = "Bea"
        guest.address.city = "Oslo"
        try first.save()
        let same = try #require(try second.existingObject(with: guest.id))
        same.address.city = "Rome"
        #expect(try second.count(Guest.where { $0.initials == "bR" }) == 1)
        guest.name = "Zoe"
        try first.save()
        second.advance()
        #expect(same.initials == "zR")
        #expect(try second.count(Guest.where { $0.initials == "zR" }) == 1)
        #expect(try second.count(Guest.where { $0.initials == "bR" }) == 0)
        try second.save()
        #expect(try container.newContext().count(Guest.where { $0.initials == "zR" }) == 1)
    }

    @Test("Undo, redo and rollback take derived values and composites along")
    func undo() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        context.undoLimit = 10
        let guest = Guest(in: context)
        guest.name = "Bea"
        guest.address.city = "Oslo"
        try context.save()
        context.withUndoGroup("move") {
            guest.address.city = "Rome"
            guest.name = "Ben"
        }
        for saves in [false, true] {
            if saves { try context.save() }
            #expect(try context.undo().isEmpty)
            #expect(guest.initials == "bO" && guest.sortName == "bea")
            #expect(try context.count(Guest.where { $0.initials == "bO" }) == 1)
            #expect(try context.redo().isEmpty)
            #expect(guest.initials == "bR" && guest.address.city == "Rome")
            #expect(try context.count(Guest.where { $0.sortName == "ben" }) == 1)
        }
        guest.name = "X"
        context.rollback()
        #expect(try context.count(Guest.where { $0.sortName == "ben" }) == 1)
    }

    @Test("Batches set composites and codecs, and derive")
    func batches() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        try context.batchInsert(Guest.self, 0..<10) { row, number in
            row.name = "Guest \(number)"
            row.handle = "g\(number)"
            row.address = Address(city: number < 5 ? "Oslo" : "Rome", zip: number)
            row.stay = Coded(.seconds(7200))
            if number == 3 { row.holiday = Address(city: "Nice") }
            #expect(row.address.zip == number)
        }
        #expect(try context.count(Guest.where { $0.initials == "gO" && $0.longStay }) == 5)
        #expect(try context.count(Guest.where { $0.holiday.city == "Nice" }) == 1)
        try context.batchUpdate(Guest.where { $0.address.zip < 2 }) { row in
            row.address.city = "Turin"
            row.holiday = nil
        }
        #expect(try context.count(Guest.where { $0.initials == "gT" }) == 2)
        #expect(try context.count(Guest.where { $0.address.city == "Oslo" }) == 3)
    }

    @Test("Rules refuse values at a save, all together, in batches too")
    func rules() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        let guest = Guest(in: context)
        guest.name = ""
        guest.handle = "No!"
        guest.age = 121
        guest.shoes = 101
        guest.picture = try context.makeBlob(
            Data(count: 11),
            for: Guest.columns.picture
        )
        let error = try #require(throws: StoreError.self) { try context.save() }
        #expect(error.code == .invalid)
        let messages = error.details.map(\.message)
        #expect(
            messages == [
                "name must have 1 to 20 characters",
                "handle does not have the form that its pattern asks for",
                "age must be from 0 to 120",
                "shoes must be even",
                "shoes must be less than 100",
                "picture must have at most 10 bytes",
            ]
        )
        guest.name = "Bea"
        guest.handle = "bea1"
        guest.age = 120
        guest.shoes = 98
        guest.picture = try context.makeBlob(
            Data(count: 10),
            for: Guest.columns.picture
        )
        try context.save()
        guest.handle = nil  // null breaks no rule
        try context.save()
        #expect(throws: StoreError.self) {
            try context.batchUpdate(Guest.all) { $0.age = -1 }
        }
        #expect(throws: StoreError.self) {
            try context.batchInsert(Guest.self, [1]) { row, _ in row.name = "" }
        }
        let fresh = container.newContext()
        #expect(try fresh.fetch(Guest.all).map(\.age) == [120])
    }

    @Test("An object can refuse its deletion")
    func deletion() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        let owner = Guest(in: context)
        owner.name = "owner"
        let guest = Guest(in: context)
        guest.name = "guest"
        try context.save()
        context.delete(owner)
        context.delete(guest)
        let error = try #require(throws: StoreError.self) { try context.save() }
        #expect(error.details.map(\.message) == ["name names the owner, who stays"])
        context.rollback()
        context.delete(guest)
        try context.save()
        #expect(try context.count(Guest.all) == 1)
    }

    @Test("What cannot be written or read back is told, and costs that property only")
    func unstorable() throws {
        let container = try PersistentContainer.inMemory(schema: RichSchema.self)
        let context = container.newContext()
        let guest = Guest(in: context)
        guest.theme = Theme(name: "x", sizes: ["a": .nan])
        #expect(context.refusedEdits.map(\.property) == ["theme"])
        #expect(guest.theme == Theme())
        context.acknowledgeRefusedEdits()
        guest.credit = Cents(amount: -1)
        try context.save()
        let fresh = container.newContext()
        let other = try #require(try fresh.fetch(Guest.all).first)
        #expect(other.credit == .zeroValue)
        #expect(other.readFailure?.code == .unreadableValue)
        #expect(other.name == "new")
    }
}
#endif
