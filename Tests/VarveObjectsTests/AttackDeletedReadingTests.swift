// What is deleted and still read: it leads to nothing that is gone or never was, and reading it
// costs no save. And what is new and read in the middle of its save.

import Foundation
import Observation
import Testing
import VarveObjects

@Suite(.verified) struct AttackDeletedReadingTests {
    /// Everything that an object leads to, with a value of each.
    @discardableResult private func read(_ node: Node) -> Set<String> {
        let ones = [
            node.parent, node.next, node.previous, node.loose, node.stale, node.book, node.guardian,
        ]
        let lists = [
            node.children, node.picks, node.playlist, node.left, node.right, node.chapters,
            node.guarded,
        ]
        #expect(lists.allSatisfy { $0.count == $0.ids.count })
        return Set(ones.compactMap { $0?.name } + lists.flatMap(\.names))
    }

    /// A new object that is deleted again was never there: nothing leads to it, deleted or not.
    @Test(arguments: ["cascade", "first", "last", "together"])
    func theDeletedLeadsToNothingThatNeverWas(_ order: String) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        let b = all[1]
        func makeAndDelete() {
            let new = Node(in: context)
            new.name = "new"
            if order == "cascade" {
                b.parent = new
            } else {
                (b.next, b.loose, b.stale, b.book) = (new, new, new, new)
                for list in [b.picks, b.playlist, b.left, b.right, b.chapters] { list.append(new) }
            }
            switch order {
            case "cascade": context.delete(new)
            case "first":
                context.delete(new)
                context.processPendingChanges()
                context.delete(b)
            case "last":
                context.delete(b)
                context.processPendingChanges()
                context.delete(new)
            default:
                context.delete(b)
                context.delete(new)
            }
            context.processPendingChanges()
        }
        makeAndDelete()
        #expect(b.isDeleted)
        #expect(read(b) == [] && read(all[0]) == [], "\(order)")
        #expect(context.readFailures.isEmpty, "\(order)")
        all[0].name = "edited"
        try context.save()
        #expect(read(b) == [] && context.readFailures.isEmpty, "\(order)")
        #expect(try storedNames(container) == ["edited"], "\(order)")
    }

    /// Deleted with others, by this context or another one, and nobody holds them.
    @Test(arguments: ["here", "by others", "both"])
    func theDeletedLeadsToNothingThatIsGone(_ way: String) throws {
        for isRead in [false, true] {
            let container = try graph()
            let context = container.newContext()
            func make() throws -> (kept: Node, stays: Node) {
                let all = try nodes("kept", "gone", "stays", "gone too", in: context)
                for other in all.dropFirst() {
                    for list in [
                        all[0].picks, all[0].playlist, all[0].left, all[0].children,
                        all[0].chapters,
                    ] {
                        list.append(other)
                    }
                    if other !== all[2] {
                        (all[0].next, all[0].loose, all[0].book) = (other, other, other)
                        all[0].parent = other
                    }
                }
                all[2].parent = nil
                try context.save()
                if isRead { read(all[0]) }
                if way != "by others" {
                    for node in all where node !== all[2] { context.delete(node) }
                }
                if way != "here" {
                    let other = container.newContext()
                    for node in try other.same(all) where node.name != "stays" {
                        other.delete(node)
                    }
                    try other.save()
                }
                return (all[0], all[2])
            }
            let (kept, stays) = try make()
            if way == "here" { try context.save() } else { context.advance() }
            #expect(kept.isDeleted && !stays.isDeleted, "\(way) \(isRead)")
            #expect(read(kept).isSubset(of: ["stays"]), "\(way) \(isRead)")
            #expect(context.readFailures.isEmpty, "\(way) \(isRead)")
            stays.name = "edited"
            try context.save()
            #expect(read(kept).isSubset(of: ["edited"]), "\(way) \(isRead)")
            #expect(try storedNames(container) == ["edited"], "\(way) \(isRead)")
        }
    }

    /// The save is on disk and the context moves there; others deleted what is observed.
    @MainActor @Test func aNewObjectIsReadWhileItsSaveSettles() throws {
        let container = try memory(ContainerOptions(viewContextMergesAutomatically: false))
        let ids = try makeItems(2, in: container)
        let view = container.viewContext
        let items = try ids.map { try view.object(with: $0) }
        let new = Item(in: view)
        new.title = "new"
        items[0].title = "mine"
        let seen = Shared<[String]>([])
        let look: @MainActor () -> Void = {
            let titles = [new.title, items[0].title, "\(new.isInserted) \(new.isFault)"]
            seen.withLock { $0 = titles }
        }
        withObservationTracking {
            _ = items[1].title
        } onChange: {
            MainActor.assumeIsolated { look() }
        }
        let other = container.newContext()
        other.delete(try #require(try other.existingObject(with: ids[1])))
        try other.save()
        try view.save()
        #expect(seen.withLock { $0 } == ["new", "mine", "false false"])
        #expect(view.readFailures.isEmpty && new.title == "new" && items[1].isDeleted)
        new.title = "newer"
        try view.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Item.all).map(\.title) == ["mine", "newer"])
        try container.closeNow()
    }
}
