// The text of an ID, for people: written, read, and small for small use.

import Testing
import VarveBase
import VarveObjects

@Suite(.verified) struct IdentityTextTests {
    @Test func anIDIsFoundByItsText() throws {
        let container = try memory()
        let id = try makeItems(3, in: container)[2]
        #expect(id.description == "Item/3")
        #expect(container.id("Item/3", of: Item.self) == id)
        #expect(container.objectID("Item/3") == id.objectID)
        #expect(container.objectID("Item:3") == id.objectID)
        #expect(container.objectID(id.objectID.description) == id.objectID)
        #expect(container.objectID(id.objectID.uri) == id.objectID)
        let far = try #require(container.objectID("Item/8-16744"))
        #expect(far.description.hasSuffix("/8-16744"))
        #expect(container.objectID("Item/\(8 << 32 + 16_744)") == far)
        #expect(container.id("Item/8-16744", of: Item.self)?.description == "Item/8-16744")
        for text in [
            "", "/", "Item", "Item/", "Item/0", "Item/-1", "Item/x", "Nothing/1", "Item/1/",
            "Item/1-",
            "Item/-1-1", "Item/1-99999999999", "Item/99999999999-1", "Item/+1", "99/1",
            "Item/18446744073709551616",
        ] {
            #expect(container.objectID(text) == nil, "\(text)")
        }
        #expect(container.id("Folder/3", of: Item.self) == nil)
    }

    @Test func aProcessThatComesLaterHasSmallNumbersToo() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        try makeItems(5, in: first)
        // As another process: it hands out numbers from a range of its own.
        let second = try folder.open()
        let id = try makeItems(1, in: second)[0]
        #expect(id.description.hasPrefix("Item/") && id.description.utf8.count < 12, "\(id)")
        #expect(first.id(id.description, of: Item.self) == id)
        try second.closeNow()
        try first.closeNow()
    }
}
