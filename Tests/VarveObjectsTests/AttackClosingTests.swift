// Closes that give edits up, from code of the app in the middle of them: hooks, observers.

import Foundation
import Observation
import Testing
import VarveObjects

@Suite(.verified) struct AttackClosingTests {
    private func open(_ folder: TemporaryFolder) throws -> PersistentContainer {
        try PersistentContainer.openNow(at: folder.store, schema: GraphSchema.self)
    }

    /// Five nodes, and one edit of each kind: what a save would write, and a close gives up.
    private func edited(_ context: ManagedObjectContext) throws -> [Node] {
        let all = try nodes("parent", "child", "grandchild", "partner", "list", in: context)
        all[1].parent = all[0]
        all[2].parent = all[1]
        all[3].next = all[1]
        all[4].playlist.append(contentsOf: [all[0], all[3]])
        try context.save()
        all[3].name = "edited"
        all[3].guardian = all[4]
        all[4].playlist.insert(all[2], at: 0)
        let new = Node(in: context)
        new.name = "new"
        new.left.append(contentsOf: [all[3], new])
        context.delete(all[0])
        return all + [new]
    }

    /// Nothing of the edits is stored, and everything of before is.
    private func expectUntouched(_ container: PersistentContainer, _ what: String) throws {
        let fresh = container.newContext()
        let stored = try fresh.fetch(Node.all)
        #expect(stored.names == ["parent", "child", "grandchild", "partner", "list"], "\(what)")
        #expect(stored.map { $0.parent?.name } == [nil, "parent", "child", nil, nil], "\(what)")
        #expect(stored[3].next === stored[1] && stored[3].guardian == nil, "\(what)")
        #expect(stored[4].playlist.names == ["parent", "partner"], "\(what)")
        #expect(stored.allSatisfy { $0.left.isEmpty }, "\(what)")
        try expectSound(fresh)
    }

    /// Behind the hook there are cascades to be read, partners to be freed, and more hooks.
    @Test(arguments: ["delete the parent", "delete the child", "willSave", "validate"])
    func aHookClosesTheContainer(_ what: String) throws {
        for readsBefore in [false, true] {
            let folder = try TemporaryFolder()
            let container = try open(folder)
            let context = container.newContext()
            let all = try edited(context)
            if readsBefore { for node in all { _ = (node.children.names, node.previous) } }
            var closes = 0
            let close: () -> Void = {
                closes += 1
                #expect(code { try container.closeNow(discardingEdits: true) } == nil)
                #expect(code { try container.closeNow() } == nil)
            }
            switch what {
            case "delete the parent": all[0].onPrepareForDeletion = close
            case "delete the child": all[1].onPrepareForDeletion = close
            case "willSave": all[3].onWillSave = close
            default: all[5].onValidate = close
            }
            #expect(code { try context.save() } == .closed, "\(what)")
            #expect(closes == 1, "\(what)")
            #expect(code { try context.save(mergePolicy: .overwrite) } == .closed, "\(what)")
            #expect(code { _ = try context.count(Node.all) } == .closed, "\(what)")
            // Whatever an app still does with them ends nothing.
            all[3].name = "late"
            all[3].parent = all[4]
            all[4].playlist.removeAll()
            for node in all { _ = (node.name, node.parent, node.children.names, node.isDeleted) }
            context.delete(all[4])
            context.processPendingChanges()
            context.advance()
            context.refresh(all[3], mergeChanges: true)
            context.refreshAllObjects()
            context.rollback()
            #expect(!context.hasChanges && context.refusedEdits.isEmpty, "\(what)")
            #expect(context.readFailures.isEmpty, "\(what)")
            context.reset()
            let again = try open(folder)
            try expectUntouched(again, what)
            try again.closeNow()
        }
    }

    /// The rules run in a fetch or a merge, too; nobody saves.
    @Test(arguments: ["fetch", "advance", "refreshAll", "process", "count"])
    func aHookClosesTheContainerBesideASave(_ what: String) throws {
        let folder = try TemporaryFolder()
        let container = try open(folder)
        let context = container.newContext()
        let all = try edited(context)
        let other = container.newContext()
        try other.same(all.dropLast())[2].score = 0
        all[0].onPrepareForDeletion = {
            #expect(code { try container.closeNow() } == .unsavedChanges)
            #expect(code { try container.closeNow(discardingEdits: true) } == nil)
        }
        // What had begun before may come to its end.
        switch what {
        case "fetch":
            let found = code { _ = try context.fetch(Node.all) }
            #expect(found == nil || found == .closed)
            #expect(code { _ = try context.fetch(Node.all) } == .closed)
        case "count":
            let found = code { _ = try context.count(Node.where { $0.name == "x" }) }
            #expect(found == nil || found == .closed)
        case "advance": context.advance()
        case "refreshAll": context.refreshAllObjects()
        default: context.processPendingChanges()
        }
        #expect(context.readFailures.allSatisfy { $0.error.code == .closed })
        #expect(code { try context.save() } == .closed)
        context.rollback()
        #expect(!context.hasChanges)
        let again = try open(folder)
        try expectUntouched(again, what)
        try again.closeNow()
    }

    /// The save is on disk when `didSave` runs; that it cannot be read any more does not undo it.
    @Test(arguments: [false, true])
    func didSaveClosesTheContainer(_ isLast: Bool) throws {
        let folder = try TemporaryFolder()
        let container = try open(folder)
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        for node in all { node.name += " edited" }
        context.delete(all[2])
        all[isLast ? 2 : 0].onDidSave = {
            #expect(code { try container.closeNow() } == nil)
        }
        do {
            try context.save()
        } catch let error as StoreError {
            #expect(error.code == .closed && error.outcome == .saved)
        }
        #expect(!context.hasChanges)
        #expect(code { try context.save() } == .closed)
        let again = try open(folder)
        #expect(try storedNames(again) == ["a edited", "b edited"])
        try again.closeNow()
    }

    /// The edit that is under way reads what can be read no more.
    @MainActor @Test(arguments: ["set", "relate", "append", "insert", "delete", "rollback"])
    func anObserverClosesTheContainer(_ edit: String) throws {
        let folder = try TemporaryFolder()
        let container = try open(folder)
        let view = container.viewContext
        let all = try edited(view)
        let isDone = Shared(false)
        withObservationTracking {
            for node in all.dropFirst(3) {
                _ = (node.name, node.next, node.parent, node.playlist.count)
            }
        } onChange: {
            if isDone.withLock({ value in
                defer { value = true }; return value
            }) {
                return
            }
            #expect(code { try container.closeNow(discardingEdits: true) } == nil)
        }
        switch edit {
        case "set": all[3].name = "late"
        case "relate": all[3].next = all[2]
        case "append": all[4].playlist.append(all[1])
        case "insert": all[4].playlist.insert(all[1], at: 1)
        case "delete": view.delete(all[4])
        default: view.rollback()
        }
        #expect(isDone.withLock { $0 }, "\(edit)")
        #expect(code { try view.save() } == .closed, "\(edit)")
        for node in all { _ = (node.name, node.parent, node.children.names, node.playlist.names) }
        view.rollback()
        #expect(!view.hasChanges && view.readFailures.isEmpty, "\(edit)")
        let again = try open(folder)
        try expectUntouched(again, edit)
        try again.closeNow()
    }
}
