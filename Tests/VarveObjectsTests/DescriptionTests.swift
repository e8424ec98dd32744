// What objects tell of themselves: `print`, `dump`, the debugger. They load nothing for it.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct DescriptionTests {
    /// Everything that shows an object.
    private func show(_ object: some ManagedObject) -> [String] {
        var dumped = ""
        dump(object, to: &dumped)
        return [
            "\(object)", String(describing: object), String(reflecting: object), "\([object])",
            object.description, object.debugDescription, object.detailedDescription,
            object.redactedDescription, dumped,
            "\(Swift.Mirror(reflecting: object).children.count)",
        ]
    }

    private func item(
        _ context: ManagedObjectContext,
        returningFaults: Bool = true
    ) throws -> Item {
        try #require(
            try context.fetch(Item.all.limit(1).returningFaults(returningFaults)).first
        )
    }

    private func sample(_ options: ContainerOptions = ContainerOptions()) throws
        -> PersistentContainer
    {
        let container = try memory(options)
        let context = container.newContext()
        let item = Item(in: context)
        item.title = "Milk"
        item.number = 7
        item.timestamp = Date(timeIntervalSinceReferenceDate: 0)
        let folder = Folder(in: context)
        folder.name = "Kitchen"
        item.folder = folder
        for name in ["a", "b"] {
            let tag = Tag(in: context)
            tag.name = name
            item.tags.append(tag)
        }
        try context.save()
        container.trimMemory()
        return container
    }

    @Test func noDescriptionOfAFaultReadsOrRegistersAnything() throws {
        let container = try sample()
        let context = container.newContext(observes: true)
        let item = try item(context)
        let before = container.statistics
        let texts = show(item)
        let after = container.statistics
        #expect(item.isFault)
        #expect(after.storeReads == before.storeReads && after.storePasses == before.storePasses)
        #expect(after.pagesVisited == before.pagesVisited)
        #expect(after.rowCache.hits == before.rowCache.hits)
        #expect(after.registeredObjects == 1 && before.registeredObjects == 1)
        #expect(item.storage.observation == nil, "a description is not observed")
        #expect(item.description == "\(item.id) (fault)")
        #expect(!texts.joined().contains("Milk"))
        #expect(item.detailedDescription.contains("\n  title: not loaded\n"))
    }

    @Test func theValuesInMemoryAreShownAndLeadToNoOtherObject() throws {
        let container = try sample()
        let context = container.newContext(observes: true)
        let item = try item(context, returningFaults: false)
        let before = container.statistics
        let texts = show(item)
        let after = container.statistics
        #expect(after.storeReads == before.storeReads && after.storePasses == before.storePasses)
        #expect(after.pagesVisited == before.pagesVisited)
        #expect(after.registeredObjects == 1)
        #expect(
            item.description == """
                \(item.id) (unchanged): timestamp: 2001-01-01T00:00:00Z, title: "Milk", \
                priority: 1, serial: nil, number: 7, picture: nil, folder: Folder/2
                """
        )
        #expect(texts[0] == item.description && texts[2] == item.description)
        #expect(texts[8].contains("title: \"Milk\"") && texts[8].contains("number: 7"))

        // A relationship that was read is shown by IDs.
        #expect(item.tags.ids.count == 2)
        #expect(item.description.contains("tags: [Tag/3, Tag/4], folder: Folder/2"))
        #expect(container.statistics.registeredObjects == 1)
    }

    @Test func statesAndUnsavedEditsAreTold() throws {
        let container = try sample()
        let context = container.newContext()
        let item = try item(context, returningFaults: false)
        item.title = "Bread"
        #expect(item.description.hasPrefix("\(item.id) (changed): "))
        #expect(item.description.contains("title: \"Bread\""))
        #expect(item.detailedDescription.contains("  title: \"Bread\" (saved: \"Milk\")\n"))
        #expect(item.detailedDescription.contains("  number: 7\n"))

        _ = item.tags.ids
        let tag = Tag(in: context)
        #expect(tag.description == "\(tag.id) (inserted): name: \"\", items: []")
        item.tags.append(tag)
        #expect(item.description.contains("tags: [Tag/3, Tag/4, \(tag.id)]"))
        #expect(tag.description.contains("items: [\(item.id)]"))

        context.delete(tag)
        #expect(tag.description.contains("deleted"))
        #expect(context.deletedObjects.isEmpty == false || tag.isDeleted)
        context.rollback()
        #expect(tag.description.contains("in no context"), "\(tag)")

        context.delete(item)
        #expect(item.description.hasPrefix("\(item.id) (deleted)"))
        try context.save()
        #expect(item.description.hasPrefix("\(item.id) (gone)"), "\(item)")
    }

    @Test func anObjectThatOutlivesItsContextIsDescribed() throws {
        let container = try sample()
        var context: ManagedObjectContext? = container.newContext()
        let item = try item(#require(context), returningFaults: false)
        let tags = item.tags
        _ = tags.ids
        item.priority = .high
        context = nil
        #expect(item.description.hasPrefix("\(item.id) (changed, its context is gone): "))
        #expect(item.description.contains("title: \"Milk\""))
        #expect("\(tags)".hasPrefix("tags of "))
        #expect(show(item).count == 10)
    }

    @Test func longTextsAreCutAndLargeOnesAreNotRead() throws {
        let container = try sample()
        let context = container.newContext()
        let item = try item(context, returningFaults: false)
        item.title = String(repeating: "x", count: 500)
        #expect(item.description.contains("… (502 bytes)") && item.description.utf8.count < 300)
        item.title = String(repeating: "y", count: 200_000)
        try context.save()
        let fresh = container.newContext()
        let other = try self.item(fresh, returningFaults: false)
        let before = container.statistics
        #expect(!other.description.contains("title"))
        #expect(other.detailedDescription.contains("  title: not loaded\n"))
        #expect(container.statistics.pagesVisited == before.pagesVisited)
        #expect(container.statistics.storeReads == before.storeReads)
    }

    @Test func listsAreDescribedByIDsAndReadNothing() throws {
        let container = try sample()
        let context = container.newContext()
        let item = try item(context)
        let tags = item.tags
        #expect("\(tags)" == "tags of \(item.id): not loaded")
        var dumped = ""
        dump(tags, to: &dumped)
        #expect(item.isFault && dumped.contains("not loaded"))
        _ = tags.ids
        #expect("\(tags)" == "tags of \(item.id): [Tag/3, Tag/4]")
        #expect(String(reflecting: tags) == "\(tags)")
    }

    @Test func redactedDescriptionsHaveNoValues() throws {
        var options = ContainerOptions()
        options.redactsDescriptions = true
        for container in [try sample(options), try sample()] {
            let context = container.newContext()
            let item = try item(context, returningFaults: false)
            item.title = "Bread"
            item.number = 123_456
            let texts =
                container.options.redactsDescriptions ? show(item) : [item.redactedDescription]
            for text in texts {
                #expect(!text.contains("Bread") && !text.contains("Milk"), "\(text)")
                #expect(!text.contains("123456") && !text.contains("2001"), "\(text)")
            }
            #expect(item.redactedDescription.contains("title: <redacted>"))
            #expect(item.redactedDescription.contains("(changed)"))
            #expect(item.redactedDescription.contains("folder: Folder/2"))
        }
    }
}
