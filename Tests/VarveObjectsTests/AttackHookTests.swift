// Hooks and policies that do what they should not: edit, save, move or empty their own context.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackHookTests {
    /// While a save writes, nothing may be edited: neither by a new object, which no save would
    /// ever write.
    @Test func anObjectThatIsMadeInValidateIsRefused() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        node.name = "b"
        var made: Node?
        node.onValidate = { [unowned node] in
            guard let context = node.context else { return }
            made = Node(in: context)
            made?.name = "made while writing"
        }
        #expect(code { try context.save() } == .reentrantSave)
        node.onValidate = nil
        #expect(context.refusedEdits.count == 1)
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(made?.isInserted == false && made?.context == nil && made?.name == "")
        #expect(!context.hasChanges)
        #expect(try storedNames(container) == ["b"])
    }

    /// `didSave` moves its context on: the rows that the save reads back are not the newest.
    @Test(arguments: ["advance", "refreshAll", "reset", "rollback"])
    func didSaveMovesItsContext(_ what: String) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        for node in all { node.score = 1 }
        var saves = 0
        all[0].onDidSave = { [weak context] in
            guard let context else { return }
            saves += 1
            do {
                let other = container.newContext()
                for node in try other.fetch(Node.all) { node.name += " of others" }
                try other.save()
            } catch {
                Issue.record(error)
            }
            switch what {
            case "advance": context.advance()
            case "refreshAll": context.refreshAllObjects()
            case "reset": context.reset()
            default: context.rollback()
            }
        }
        try context.save()
        #expect(saves == 1 && !context.hasChanges)
        if what == "reset" {
            #expect(all.names == ["", ""])
        } else if what == "rollback" {
            #expect(all.names == ["a", "b"])
        } else {
            #expect(all.names == ["a of others", "b of others"])
        }
        for node in try context.fetch(Node.all) { node.score = 2 }
        all[0].onDidSave = nil
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(try storedNames(container) == ["a of others", "b of others"])
        try expectSound(context)
    }

    @Test func hooksEmptyTheirOwnContext() throws {
        for hook in ["willSave", "prepareForDeletion"] {
            for what in ["reset", "rollback", "advance", "refreshAll", "save", "fetch", "delete"] {
                let container = try graph()
                let context = container.newContext()
                let all = try nodes("a", "b", "c", in: context)
                all[0].children.append(all[1])
                all[1].children.append(all[2])
                try context.save()
                let action: () -> Void = { [weak context] in
                    guard let context else { return }
                    switch what {
                    case "reset": context.reset()
                    case "rollback": context.rollback()
                    case "advance": context.advance()
                    case "refreshAll": context.refreshAllObjects()
                    case "save": #expect(code { try context.save() } == .reentrantSave)
                    case "fetch": _ = try? context.fetch(Node.all)
                    default: for node in all { context.delete(node) }
                    }
                }
                if hook == "willSave" {
                    all[1].onWillSave = action
                } else {
                    all[1].onPrepareForDeletion = action
                }
                all[1].name = "edited"
                context.delete(all[0])
                try context.save()
                #expect(!context.hasChanges)
                let isKept = what == "reset" || what == "rollback"
                #expect(try storedNames(container).count == (isKept ? 3 : 0), "\(hook) \(what)")
                try expectSound(context)
                try expectSound(container.newContext())
            }
        }
    }

    /// Each object is asked about once, whatever the answers, and both sides agree in the end.
    @Test(arguments: 0..<16)
    func aPolicyThatAnswersDifferentlyEachTime(_ seed: Int) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", "d", "e", "f", in: context)
        for index in 0..<5 {
            all[index].next = all[index + 1]
            all[index].left.append(all[index + 1])
            all[index].book = all[5]
            all[index].parent = all[index + 1]
        }
        try context.save()
        for index in 0..<6 {
            all[index].next = all[(index + 3) % 6]
            all[index].left.insert(all[(index + 2) % 6], at: 0)
            all[index].book = all[(index + 1) % 6]
            all[index].name += " mine"
        }
        context.delete(all[seed % 6])
        let other = container.newContext()
        let theirs = try other.same(all)
        for index in 0..<6 {
            theirs[index].next = theirs[(index + 5) % 6]
            theirs[index].name += " theirs"
            theirs[index].right.append(theirs[(index + 4) % 6])
            theirs[index].parent = nil
        }
        other.delete(theirs[(seed + 1) % 6])
        if seed % 2 == 0 { other.delete(theirs[(seed + 3) % 6]) }
        try other.save()
        let asked = Shared<[ManagedObjectID]>([])
        if seed % 3 == 0 { context.advance() }
        try context.save(
            mergePolicy: .custom { conflict in
                asked.withLock { $0.append(conflict.object) }
                let answers: [ConflictResolution] = [
                    .objectWinsByProperty, .storeWinsByProperty, .overwrite, .rollback,
                ]
                return answers[asked.withLock { ($0.count * 7 + seed * 5) / 3 % 4 }]
            }
        )
        let ids = asked.withLock { $0 }
        #expect(Set(ids).count == ids.count)
        #expect(!context.hasChanges)
        try expectSound(context)
        try expectSound(container.newContext())
        #expect(
            try Set(context.fetch(Node.all).map(\.id))
                == Set(container.newContext().fetch(Node.all).map(\.id))
        )
    }

    /// A policy that throws or fails in the middle leaves everything as it was.
    @Test func aPolicyThatGivesUpInTheMiddle() throws {
        struct Enough: Error {}
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        for node in all { node.score = 1 }
        all[0].next = all[1]
        let other = container.newContext()
        for node in try other.same(all) { node.score = 2 }
        try other.save()
        let count = Shared(0)
        for round in 0..<2 {
            do {
                try context.save(
                    mergePolicy: .custom { _ in
                        let number = count.withLock { value in
                            value += 1
                            return value
                        }
                        if number % 2 == 1 { return .overwrite }
                        if round == 0 { throw Enough() }
                        return .fail
                    }
                )
                Issue.record("it was saved")
            } catch {}
            #expect(context.updatedObjects.count == 3 && all.map(\.score) == [1, 1, 1])
            #expect(all[1].previous === all[0])
        }
        try context.save(mergePolicy: .custom { _ in .objectWinsByProperty })
        let fresh = container.newContext()
        #expect(try fresh.fetch(Node.all).map(\.score) == [1, 1, 1])
        try expectSound(fresh)
    }
}
