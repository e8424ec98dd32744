// Pages of a to-many relationship: the same as that part of the list, for its own cost.

import Observation
import Synchronization
import Testing
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct PageOfListTests {
    private static let lists: [@Sendable (Node) -> ToMany<Node>] = [
        { $0.playlist }, { $0.left }, { $0.right }, { $0.chapters }, { $0.picks }, { $0.children },
    ]

    private func owner(
        _ list: (Node) -> ToMany<Node>,
        _ count: Int,
        _ container: PersistentContainer
    ) throws -> Node.ID {
        let context = container.newContext()
        // Others before and behind it in the index.
        let (before, owner, behind) = (Node(in: context), Node(in: context), Node(in: context))
        for other in [before, behind] { list(other).append(Node(in: context)) }
        for number in 0..<count {
            let member = Node(in: context)
            member.name = "member \(number)"
            if number % 3 == 0, list(owner).count > 1, owner.playlist.count > 1 {
                list(owner).insert(member, at: 1)
            } else {
                list(owner).append(member)
            }
        }
        try context.save()
        return owner.id
    }

    private func expectPages(
        _ container: PersistentContainer,
        _ id: Node.ID,
        _ list: (Node) -> ToMany<Node>,
        _ edit: (Node) -> Void = { _ in }
    ) throws {
        let whole = container.newContext()
        let owner = try #require(try whole.existingObject(with: id))
        edit(owner)
        let ids = list(owner).ids
        for positions in [
            0..<0, 0..<1, 0..<7, 3..<5, 5..<ids.count, 0..<ids.count,
            ids.count..<ids.count + 3, -5..<2, -5..<(-2), Int.min..<Int.max,
            ids.count - 1..<Int.max, Int.max - 1..<Int.max,
        ] {
            let context = container.newContext()
            let owner = try #require(try context.existingObject(with: id))
            edit(owner)
            let page = try list(owner).page(positions)
            let expected = try ids[positions.clamped(to: ids.indices)].map {
                try whole.object(with: $0).name
            }
            #expect(page.map(\.name) == expected, "\(positions)")
        }
    }

    @Test(arguments: Self.lists.indices)
    func `a page is that part of the list`(_ which: Int) throws {
        let list = Self.lists[which]
        let container = try graph()
        let id = try owner(list, 40, container)
        try expectPages(container, id, list)
        // Over unsaved edits, and with members that are deleted.
        try expectPages(container, id, list) { list($0).remove(list($0)[3]) }
        try expectPages(container, id, list) { owner in
            owner.context?.delete(list(owner)[0])
            owner.context?.processPendingChanges()
        }
        let context = container.newContext()
        let owner = try #require(try context.existingObject(with: id))
        let new = Node(in: context)
        list(owner).append(new)
        #expect(try list(owner).page(40..<50) == [new])
        let empty = Node(in: context)
        #expect(try list(empty).page(0..<5) == [])
        context.reset()
        #expect(try list(owner).page(0..<5) == [])
    }

    @Test(arguments: Self.lists.indices)
    func `a page costs its entries and rows, not the list's`(_ which: Int) throws {
        let list = Self.lists[which]
        for count in [500, 1_000] {
            let container = try graph()
            let id = try owner(list, count, container)
            container.trimMemory(.rows)
            let context = container.newContext()
            let owner = try #require(try context.existingObject(with: id))
            let before = container.statistics
            let page = try list(owner).page(300..<350)
            let after = container.statistics
            #expect(page.count == 50 && page.allSatisfy { !$0.isFault })
            #expect(after.entriesScanned - before.entriesScanned == 50)
            #expect(after.storeReads - before.storeReads == 50)
            #expect(after.storePasses - before.storePasses == 1)
            #expect(context.registeredObjects.count == 51)
        }
    }

    @Test @MainActor func `who observes a page hears of another order, and of nothing else`() throws
    {
        let container = try graph()
        let id = try owner({ $0.playlist }, 60, container)
        let shown = try #require(try container.viewContext.existingObject(with: id))
        func told(_ edit: (Node) throws -> Void) throws -> Bool {
            let isTold = Mutex(false)
            withObservationTracking {
                _ = try? shown.playlist.page(10..<20)
            } onChange: {
                isTold.withLock { $0 = true }
            }
            let other = container.newContext()
            let owner = try #require(try other.existingObject(with: id))
            try edit(owner)
            try other.save()
            container.viewContext.advance()
            return isTold.withLock { $0 }
        }
        #expect(try told { $0.playlist.insert($0.playlist[12], at: 15) })
        #expect(try !told { $0.playlist.insert($0.playlist[40], at: 45) })
        #expect(try told { $0.playlist.remove($0.playlist[50]) })
        #expect(try !told { $0.name = "another name" })
        // The first page of all, over an unsaved edit.
        let list = try owner({ $0.playlist }, 60, container)
        container.viewContext.advance()
        let edited = try #require(try container.viewContext.existingObject(with: list))
        edited.playlist.remove(try edited.playlist.page(0..<1)[0])
        let isTold = Mutex(false)
        withObservationTracking {
            _ = try? edited.playlist.page(10..<20)
        } onChange: {
            isTold.withLock { $0 = true }
        }
        let other = container.newContext()
        let theirs = try #require(try other.existingObject(with: list))
        theirs.playlist.insert(theirs.playlist[12], at: 15)
        try other.save()
        container.viewContext.advance()
        #expect(isTold.withLock { $0 })
        container.viewContext.rollback()
        // As many pages as anybody scrolls through.
        for start in 0..<50 { _ = try shown.playlist.page(start..<start + 2) }
        #expect(try told { $0.playlist.insert($0.playlist[55], at: 58) })
    }
}
