// Going through a to-many relationship: which objects come, what is read, and what lives meanwhile.

import Foundation
import Testing
import VarveBase

@testable import VarveObjects

@Suite("Going through a to-many relationship", .verified) struct ToManyWalkTests {
    /// One folder with items, in a container that keeps so many bytes of rows.
    private func world(
        _ count: Int,
        rowBytes: Int = 4 << 20
    ) throws -> (container: PersistentContainer, folder: Folder.ID) {
        let container = try memory(ContainerOptions(unreferencedRowBytes: rowBytes))
        let context = container.newContext()
        let folder = Folder(in: context)
        for index in 0..<count {
            let item = Item(in: context)
            item.number = index
            item.folder = folder
        }
        try context.save()
        container.trimMemory()
        return (container, folder.id)
    }

    /// The folder, with its list prefetched or not.
    private func folder(
        _ id: Folder.ID,
        isPrefetched: Bool,
        _ context: ManagedObjectContext
    ) throws -> Folder {
        if isPrefetched { return try prefetched(context) }
        return try #require(try context.existingObject(with: id))
    }

    private func prefetched(_ context: ManagedObjectContext) throws -> Folder {
        let found = try context.fetch(Folder.all.prefetch { $0.items })
        return try #require(found.first)
    }

    @Test("Members of a prefetched list come with their values")
    func prefetchedMembers() throws {
        let (container, _) = try world(200)
        let context = container.newContext()
        let folder = try prefetched(context)
        let walk = reads(container) {
            var numbers: [Int] = []
            for item in folder.items {
                #expect(!item.isFault)
                numbers.append(item.number)
            }
            return numbers
        }
        #expect(walk.value == Array(0..<200) && walk.reads == 0)
    }

    @Test("Rows that did not stay in memory are read some dozens at a time", arguments: [1, 2])
    func evicted(times: Int) throws {
        let count = 400 * times
        let (container, _) = try world(count, rowBytes: 0)
        let context = container.newContext()
        let folder = try prefetched(context)
        let walk = reads(container) { folder.items.reduce(0) { $0 + $1.number } }
        #expect(walk.value == count * (count - 1) / 2 && walk.reads == count)
        // 16, 32, and then 64 at a time.
        #expect(walk.passes == 2 + (count - 48 + 63) / 64)
    }

    @Test("Members of a list that was not prefetched are faults, each read by itself")
    func faults() throws {
        let (container, id) = try world(100)
        let context = container.newContext()
        let folder = try #require(try context.existingObject(with: id))
        let walk = reads(container) { folder.items.filter(\.isFault).count }
        #expect(walk.value == 100 && walk.reads == 0)
        // Who reads one reads that one, though those behind it live: a list is not a request.
        let items = Array(folder.items)
        #expect(reads(container) { items[0].number }.reads == 1)
    }

    @Test("At most 64 members live because of a walk", arguments: [false, true])
    func living(isPrefetched: Bool) throws {
        let (container, id) = try world(1_000)
        let context = container.newContext()
        let folder = try folder(id, isPrefetched: isPrefetched, context)
        var most = 0
        for _ in folder.items { most = max(most, container.statistics.registeredObjects) }
        // The folder, those that are made, and the one of before in the hand of the loop.
        #expect(most > 32 && most <= 1 + 64 + 1)
        #expect(container.statistics.registeredObjects == 1)
        #expect(container.statistics.rowCache.pinnedRows == (folder.isFault ? 0 : 1))
    }

    @Test("Who stops early has few members made")
    func early() throws {
        let (container, _) = try world(1_000)
        let context = container.newContext()
        let folder = try prefetched(context)
        var walk = folder.items.makeIterator()
        let first = walk.next()
        #expect(first?.number == 0)
        #expect(container.statistics.registeredObjects == 1 + 16)
    }

    @Test("A member that lives is itself, with its edits", arguments: [false, true])
    func identity(isPrefetched: Bool) throws {
        let (container, id) = try world(50)
        let context = container.newContext()
        let folder = try folder(id, isPrefetched: isPrefetched, context)
        let edited = folder.items[20]
        edited.number = -1
        let new = Item(in: context)
        new.number = 50
        folder.items.append(new)
        let all = Array(folder.items)
        #expect(all.count == 51 && all[20] === edited && all[50] === new)
        #expect(all.map(\.number) == Array(0..<20) + [-1] + Array(21...50))
    }

    @Test("A walk goes through the list as it was, whatever is done meanwhile")
    func changesMeanwhile() throws {
        let (container, _) = try world(100)
        let context = container.newContext()
        let folder = try prefetched(context)
        let ids = folder.items.ids
        var seen: [Item.ID] = []
        for (index, item) in folder.items.enumerated() {
            seen.append(item.id)
            // Others deleted 90 before its turn.
            if index == 90 { continue }
            #expect(item.number == index)
            #expect(item.isDeleted == (index == 10))
            switch index {
            case 3: context.delete(folder.items[10])
            case 5: folder.items.remove(folder.items[30])
            case 20: try context.save()
            case 40:
                let other = container.newContext()
                try other.fetch(Item.where { $0.number == 90 }).forEach { other.delete($0) }
                try other.save()
                context.advance()
            case 50: context.rollback()
            default: break
            }
        }
        #expect(seen == ids)
        #expect(folder.items.count == 97)
        #expect(folder.items.map(\.number) == (0..<100).filter { ![10, 30, 90].contains($0) })
    }

    @Test("A walk goes on without values when its context is reset")
    func reset() throws {
        let (container, _) = try world(100)
        let context = container.newContext()
        let folder = try prefetched(context)
        var numbers: [Int] = []
        for (index, item) in folder.items.enumerated() {
            if index == 40 { context.reset() }
            numbers.append(item.number)
        }
        #expect(numbers == Array(0..<40) + Array(repeating: 0, count: 60))
    }

    @Test("A prefetched list follows the commits of others")
    func followsCommits() throws {
        let (container, id) = try world(100)
        let context = container.newContext()
        let folder = try prefetched(context)
        #expect(folder.items.count == 100)
        let other = container.newContext()
        let theirs = try #require(try other.existingObject(with: id))
        let item = Item(in: other)
        item.number = 100
        item.folder = theirs
        try #require(theirs.items.first).number = 707
        try other.save()
        context.advance()
        let walk = reads(container) { folder.items.map(\.number) }
        // The new member's row was not here.
        #expect(walk.value == [707] + Array(1...100))
        #expect(walk.reads <= 2 && walk.passes <= 2)
    }

    @Test("A list whose rows cannot be read has members, and says why")
    func unreadable() throws {
        let (container, _) = try world(40, rowBytes: 0)
        let context = container.newContext()
        let folder = try prefetched(context)
        let items = folder.items
        #expect(items.ids.count == 40)
        try container.closeNow()
        var numbers: [Int] = []
        for item in items { numbers.append(item.number) }
        #expect(numbers == Array(repeating: 0, count: 40))
        #expect(context.readFailures.count == 40)
        #expect(container.statistics.rowCache.pinnedRows == 0)
    }

    @Test("An unsaved member is no reason to look into the store")
    func unsavedMember() throws {
        let (container, _) = try world(40)
        let context = container.newContext()
        let folder = try prefetched(context)
        let new = Item(in: context)
        new.number = 40
        folder.items.append(new)
        let other = Item(in: context)
        other.number = 41
        folder.items.append(other)
        for _ in 0..<2 {
            let walk = reads(container) { folder.items.map(\.number) }
            #expect(walk.value == Array(0...41) && walk.reads == 0 && walk.passes == 0)
        }
    }

    @Test("A held fault is filled by a walk, once, and its pin goes with it")
    func heldFault() throws {
        let (container, id) = try world(40)
        let context = container.newContext()
        let plain = try #require(try context.existingObject(with: id))
        var held = Array(plain.items)
        #expect(held.allSatisfy { $0.isFault })
        let folder = try prefetched(context)
        #expect(folder === plain)
        for (index, item) in folder.items.enumerated() {
            #expect(item === held[index] && !item.isFault)
        }
        #expect(folder.items.map(\.number) == Array(0..<40))
        #expect(container.statistics.rowCache.pinnedRows == 41)
        held = []
        #expect(container.statistics.rowCache.pinnedRows == 1)
    }

    @Test("Emptying a prefetched list reads no more than emptying another one")
    func emptied() throws {
        let (container, _) = try world(100, rowBytes: 0)
        let context = container.newContext()
        let folder = try prefetched(context)
        let emptied = reads(container) { folder.items.removeAll() }
        #expect(folder.items.isEmpty)
        let faults = try world(100, rowBytes: 0)
        let other = faults.container.newContext()
        let plain = try #require(try other.existingObject(with: faults.folder))
        let usual = reads(faults.container) { plain.items.removeAll() }
        #expect(emptied.reads == usual.reads)
    }

    /// Only a damaged or hostile file has these.
    @Test("IDs that come twice, or that lead to another entity's object, are made by themselves")
    func hostile() throws {
        let (container, id) = try world(3)
        let context = container.newContext()
        let folder = try #require(try context.existingObject(with: id))
        let ids = folder.items.ids.map { $0.objectID.object }
        #expect(folder.items.membersTogether(ids[...]) != nil)
        #expect(folder.items.membersTogether((ids + [ids[0]])[...]) == nil)
        #expect(folder.items.membersTogether((ids + [folder.storage.object])[...]) == nil)
        let stranger = folder.items.member(folder.storage.object)
        #expect(stranger.storage.state.contains(.invalid))
        #expect(try context.existingObject(with: id) === folder)
        // A to-one that leads to an object of another entity leads nowhere.
        let item = try #require(folder.items.first)
        let slot = Item.columns.folder._definition.slot
        let wrong: Folder? = context.typedTarget(of: item, slot: slot, item.storage.object)
        #expect(wrong == nil && context.registered(item.storage.object) === item)
        let right: Folder? = context.typedTarget(of: item, slot: slot, folder.storage.object)
        #expect(right === folder)
    }
}

extension HookTests {
    /// A fault behind it had left the context, got its row all the same, and never gave the pin
    /// back.
    @Test func awakeFromFetchMayResetAndReadOn() throws {
        try scene { scene in
            let owner = try scene.saved("owner")[0]
            for child in try scene.saved("a", "b", "c") { child.parent = owner }
            try scene.context.save()
            scene.context.reset()
            let fresh = scene.container.newContext()
            #expect(try fresh.count(Hooked.all) == 4)
            var known = try #require(try fresh.fetch(Hooked.where { $0.name == "c" }).first)
            let found = try fresh.fetch(
                Hooked.where { $0.name == "owner" }.prefetch { $0.children }
            )
            scene.script.awakeFromFetch = { object in
                guard object.context === fresh, object.name == "a" else { return }
                scene.script.awakeFromFetch = nil
                fresh.reset()
                #expect((try? fresh.count(Hooked.all)) == 4)
            }
            let names = found[0].children.map(\.name)
            #expect(names.count == 3 && known.context == nil)
            known = owner
            #expect(scene.container.statistics.rowCache.pinnedRows == 0)
        }
    }
}
