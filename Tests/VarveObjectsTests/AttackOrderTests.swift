// Everything in the wrong order: swaps, cycles, self references, deletes beside inserts, disks that
// fill up in the middle, readers that try to write.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite(.verified) struct AttackOrderTests {
    @Test func uniqueValuesChangePlacesInOneSave() throws {
        let container = try memory()
        let context = container.newContext()
        let items = (0..<3).map { _ in Item(in: context) }
        let serials = (0..<3).map { _ in UUID() }
        for (item, serial) in zip(items, serials) { item.serial = serial }
        let accounts = (0..<2).map { number in
            let account = Account(in: context)
            account.email = "\(number)"
            account.code = number
            return account
        }
        try context.save()
        for index in 0..<3 { items[index].serial = serials[(index + 1) % 3] }
        (accounts[0].email, accounts[1].email) = ("1", "0")
        (accounts[0].code, accounts[1].code) = (1, 0)
        #expect(try context.save().replaced.isEmpty)
        #expect(items.map(\.serial) == [serials[1], serials[2], serials[0]])
        // One goes, and its values go on to a new one and to an old one.
        context.delete(items[0])
        items[1].serial = serials[1]
        let new = Item(in: context)
        new.serial = serials[2]
        context.delete(accounts[0])
        accounts[1].email = "1"
        let account = Account(in: context)
        account.email = "0"
        #expect(try context.save().replaced.isEmpty)
        let fresh = container.newContext()
        #expect(try fresh.count(Item.all) == 3)
        #expect(try fresh.fetch(Account.all).map(\.email) == ["1", "0"])
        #expect(try fresh.existingObject(with: new.id)?.serial == serials[2])
    }

    /// The new object takes the place of one whose partner, parent or list is deleted in the same
    /// save.
    @Test(arguments: [false, true])
    func anUpsertBesideDeletes(_ isBehind: Bool) throws {
        for victim in 0..<4 {
            let container = try graph()
            let context = container.newContext()
            let all = try nodes("existing", "child", "parent", "partner", in: context)
            all[0].key = "k"
            all[1].parent = all[0]
            all[0].parent = all[2]
            all[0].next = all[3]
            all[2].playlist.append(contentsOf: [all[3], all[0], all[1]])
            all[3].guardian = all[1]
            try context.save()
            let new = Node(in: context)
            new.key = "k"
            new.name = "new"
            new.left.append(contentsOf: [all[3], all[2]])
            new.playlist.append(new)
            new.next = new
            all[2].playlist.insert(new, at: 0)
            context.delete(all[victim])
            if isBehind {
                let other = container.newContext()
                try #require(try other.named("partner")).score = 3
                try other.save()
            }
            do {
                try context.save(mergePolicy: .objectWinsByProperty)
                #expect(victim != 1)
            } catch let error as StoreError {
                #expect(error.code == .deleteDenied && [0, 1, 2].contains(victim))
                context.rollback()
            }
            try expectSound(context)
            try expectSound(container.newContext())
            #expect(!context.hasChanges)
        }
    }

    @Test func oneToOnesGoRoundInCircles() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", "d", in: context)
        for round in 0..<4 {
            for index in 0..<4 { all[index].next = all[(index + round) % 4] }
            try expectSound(context)
            for index in 0..<4 { #expect(all[index].next === all[(index + round) % 4]) }
            try context.save()
            try expectSound(container.newContext())
        }
        // From the other side, and two of them led to the same one in between.
        all[0].previous = all[0]
        all[1].previous = all[0]
        all[2].previous = all[1]
        all[2].next = all[2]
        try context.save()
        #expect(all[0].previous == nil && all[0].next === all[1] && all[1].next == nil)
        #expect(all[2].next === all[2] && all[2].previous === all[2])
        try expectSound(container.newContext())
    }

    @Test func whatLeadsToItselfInEveryWayIsDeleted() throws {
        for isNew in [false, true] {
            let container = try graph()
            let context = container.newContext()
            let all = try nodes("a", "b", in: context)
            let node = isNew ? Node(in: context) : all[0]
            node.parent = node
            node.next = node
            node.loose = node
            node.stale = node
            node.book = node
            node.guardian = node
            for list in [node.picks, node.playlist, node.left, node.children, node.chapters] {
                list.append(node)
            }
            node.left.insert(all[1], at: 0)
            node.right.insert(all[1], at: 0)
            try expectSound(context)
            if !isNew {
                try context.save()
                try expectSound(container.newContext())
            }
            #expect(node.left.count == 2 && node.right.count == 2)
            context.delete(node)
            try context.save()
            #expect(try storedNames(container) == (isNew ? ["a", "b"] : ["b"]))
            #expect(all[1].left.isEmpty && all[1].right.isEmpty)
            try expectSound(container.newContext())
        }
    }

    /// A cascade as deep as there are objects, in a circle.
    @Test func aCircleOfCascadesEnds() throws {
        let container = try graph()
        let context = container.newContext()
        let all = (0..<3_000).map { _ in Node(in: context) }
        for index in all.indices {
            all[index].parent = all[(index + 1) % all.count]
            all[index].guardian = all[(index + 7) % all.count]
        }
        try context.save()
        context.delete(all[1_234])
        try context.save()
        #expect(try storedNames(container) == [])
        #expect(!context.hasChanges)
        #expect(all.allSatisfy { $0.isDeleted })
    }

    /// Whatever call fails first: the edits stand, or the save says that they are saved.
    @Test func theDiskFillsUpInTheMiddleOfASave() throws {
        for code in [SimulatedDisk.noSpace, SimulatedDisk.inputOutput] {
            for call in 1..<24 {
                let disk = SimulatedDisk()
                var container = try PersistentContainer.openNow(on: disk, schema: GraphSchema.self)
                func run() throws -> [String] {
                    let context = container.newContext()
                    let all = try nodes("a", "b", "c", in: context)
                    all[0].children.append(all[1])
                    all[0].playlist.append(contentsOf: [all[2], all[1]])
                    try context.save()
                    context.delete(all[1])
                    all[2].name = "edited " + String(repeating: "x", count: 5_000)
                    all[2].next = all[0]
                    let new = Node(in: context)
                    new.name = "new"
                    new.left.append(contentsOf: [all[2], new, all[0]])
                    disk.setFault(SimulatedDisk.Fault(first: disk.calls + call, code: code))
                    do {
                        try context.save()
                        #expect(!context.hasChanges)
                    } catch let error as StoreError {
                        disk.setFault(nil)
                        if error.outcome == .saved { return all.names }
                        #expect(new.isInserted && all[1].isDeleted && all[2].isUpdated)
                        #expect(new.left.count == 3 && all[0].playlist.count == 1)
                        do {
                            try context.save()
                            #expect(!context.hasChanges)
                        } catch {
                            return []
                        }
                    }
                    disk.setFault(nil)
                    try expectSound(context)
                    return try context.fetch(Node.all).names
                }
                let shown = try run()
                try? container.closeNow()
                container = try PersistentContainer.openNow(on: disk, schema: GraphSchema.self)
                let fresh = container.newContext()
                try expectSound(fresh)
                if !shown.isEmpty { #expect(try fresh.fetch(Node.all).names == shown) }
                try container.closeNow()
            }
        }
    }
}
