// A model made by the macros, or written from one, goes through a store and comes back.
#if Macros || GeneratedEntities
import Foundation
import Testing
import Varve
import VarveTesting

enum ModelSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] {
        [Item.self, Picture.self, Tag.self, PublicNote.self]
    }
}

@Suite("A macro-made model") @MainActor struct RoundTripTests {
    @Test("Values and relationships are there after the store was closed and opened again")
    func roundTrip() async throws {
        let place = try TemporaryStore()
        let serial = UUID()
        let bytes = Data((0..<5_000).map { UInt8(truncatingIfNeeded: $0) })
        let id: Item.ID
        do {
            let container = try await PersistentContainer.open(
                at: place.url,
                schema: ModelSchema.self
            )
            let context = container.viewContext
            let item = Item(in: context)
            item.timestamp = Date(timeIntervalSince1970: 1_000)
            item.title = "first"
            item.priority = .high
            item.serial = serial
            item.code = 42
            item.opened = 8
            item.default = false
            item.isExpanded = true
            let picture = Picture(in: context)
            var writer = try context.makeBlob(externalLimit: 4_096)
            try writer.append(bytes)
            picture.data = try writer.finish()
            item.picture = picture
            for name in ["b", "a"] {
                let tag = Tag(in: context)
                tag.name = name
                item.tags.append(tag)
            }
            try context.save()
            id = item.id
            try await container.close()
        }
        let container = try await PersistentContainer.open(at: place.url, schema: ModelSchema.self)
        let item = try #require(try container.viewContext.existingObject(with: id))
        #expect(item.timestamp == Date(timeIntervalSince1970: 1_000))
        #expect(item.title == "first")
        #expect(item.priority == .high)
        #expect(item.serial == serial)
        #expect(item.code == 42)
        #expect(item.opened == 8)
        #expect(item.default == false)
        #expect(item.isExpanded == false)
        #expect(item.tags.map(\.name) == ["b", "a"])
        #expect(item.tags.first?.items.ids == [id])
        let picture = try #require(item.picture)
        #expect(picture.item?.id == id)
        #expect(try picture.data?.readAll() == bytes)
        try await container.close()
    }

    @Test("A new object has the defaults of its declaration") func defaults() throws {
        let container = try PersistentContainer.inMemory(schema: ModelSchema.self)
        let item = Item(in: container.viewContext)
        #expect(abs(item.timestamp.timeIntervalSinceNow) < 60)
        #expect(item.title.isEmpty)
        #expect(item.priority == .normal)
        #expect(item.serial == nil)
        #expect(item.default)
        #expect(item.opened == 7)
        #expect(item.picture == nil)
        #expect(item.tags.isEmpty)
    }

    @Test("A required attribute that was never set fails the save") func required() throws {
        let container = try PersistentContainer.inMemory(schema: ModelSchema.self)
        let context = container.viewContext
        let item = Item(in: context)
        #expect {
            try context.save()
        } throws: { error in
            (error as? StoreError)?.code == .missingValue
        }
        item.code = 1
        try context.save()
        #expect(!context.hasChanges)
    }

    @Test("#Unique refuses a second object with the same value") func unique() throws {
        let container = try PersistentContainer.inMemory(schema: ModelSchema.self)
        let context = container.viewContext
        let serial = UUID()
        for _ in 0..<2 {
            let item = Item(in: context)
            item.code = 1
            item.serial = serial
        }
        #expect {
            try context.save()
        } throws: { error in
            (error as? StoreError)?.code == .notUnique
        }
    }

    @Test("#Index serves a request that filters and sorts by it") func index() throws {
        #expect(Item.indexes.count == 3)
        let container = try PersistentContainer.inMemory(schema: ModelSchema.self)
        let context = container.viewContext
        for number in 0..<20 {
            let item = Item(in: context)
            item.code = 1
            item.priority = number % 2 == 0 ? .high : .low
            item.timestamp = Date(timeIntervalSince1970: Double(20 - number))
            item.title = "\(number)"
        }
        try context.save()
        let request = Item.where { $0.priority == .high }.sorted { [$0.timestamp.ascending] }
        let titles = try context.fetch(request.limit(3)).map(\.title)
        #expect(titles == ["18", "16", "14"])
    }

    @Test("A public entity keeps what only its module sees") func publicEntity() throws {
        #expect(PublicNote.originalEntityNames == ["Label"])
        let container = try PersistentContainer.inMemory(schema: ModelSchema.self)
        let context = container.viewContext
        let note = PublicNote(in: context)
        note.text = "x"
        note.revise()
        let reply = PublicNote(in: context)
        reply.parent = note
        try context.save()
        context.refreshAllObjects()
        #expect(note.revision == 2)
        #expect(note.replies.ids == [reply.id])
    }
}
#endif
