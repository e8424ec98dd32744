// Code of the app that runs in the middle of an edit, a rollback, a reset or a save: observers, the
// hook of a fault that is filled, and the end of objects.

import Foundation
import Observation
import Testing
import VarveObjects

@Suite(.verified) struct AttackObserverTests {
    /// Runs `body`, once, just before what `read` reads changes.
    @MainActor private func before(_ read: () -> Void, _ body: @escaping @MainActor () -> Void) {
        let isDone = Shared(false)
        withObservationTracking(read) {
            // What it changes itself is announced to it once more.
            if isDone.withLock({ value in
                defer { value = true }; return value
            }) {
                return
            }
            MainActor.assumeIsolated { body() }
        }
    }

    /// What an object shows is what the context saves, and the context says so.
    @MainActor private func expectSaved(
        _ container: PersistentContainer,
        _ items: [Item],
        _ sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let view = container.viewContext
        for item in items where item.context != nil {
            #expect(!item.hasChanges || view.hasChanges, sourceLocation: sourceLocation)
        }
        #expect(
            code { try container.closeNow() } == (view.hasChanges ? .unsavedChanges : nil),
            sourceLocation: sourceLocation
        )
    }

    /// In the middle of an edit the index and a list need not agree, and a list must have as many
    /// members as it says. The fuzzer's `seedsThatEndedTheProgram` are edits where it had not.
    @MainActor @Test(arguments: [false, true])
    func anObserverGoesThroughLists(savesBetween: Bool) throws {
        let container = try graph()
        let view = container.viewContext
        let all = try nodes("a", "b", "c", "d", in: view)
        func lists(_ node: Node) -> [ToMany<Node>] {
            [
                node.children, node.picks, node.playlist, node.left, node.right, node.chapters,
                node.guarded,
            ]
        }
        var runs = 0
        func goThrough() {
            runs += 1
            for node in all where node.context != nil {
                _ = (node.key, node.score, node.parent?.name)
                for list in lists(node) {
                    #expect(list.map(\.name).count == Array(list).count)
                }
            }
        }
        let edits: [() -> Void] = [
            { all[0].children.append(all[1]) }, { all[2].children.append(all[1]) },
            { all[1].parent = nil }, { all[0].left.append(contentsOf: all[1...3]) },
            { all[0].left.replaceAll(with: [all[3], all[1]]) }, { all[0].right.append(all[1]) },
            { all[0].guarded.append(all[1]) }, { all[2].guarded.append(all[1]) },
            { all[3].chapters.append(all[1]) }, { all[0].chapters.insert(all[1], at: 0) },
            { all[0].picks.append(contentsOf: all) }, { all[0].picks.removeAll() },
            { all[1].guardian = nil }, { view.delete(all[3]) }, { view.rollback() },
        ]
        for edit in edits {
            for node in all where node.context != nil {
                before({ _ = node.name }) { goThrough() }
                before({ _ = node.parent }) { goThrough() }
                before({ _ = node.book }) { goThrough() }
                before({ _ = node.guardian }) { goThrough() }
                for list in lists(node) { before({ _ = Array(list) }) { goThrough() } }
                before({ _ = node.children.count + node.left.count }) { goThrough() }
            }
            all[0].name += "x"
            edit()
            if savesBetween { try view.save() }
        }
        #expect(runs > 30)
    }

    @MainActor @Test(arguments: ["rollback", "reset", "refresh", "advance", "delete"])
    func anObserverEditsWhileEditsAreDropped(_ way: String) throws {
        for what in ["first", "second", "new", "delete", "relate"] {
            let container = try memory()
            let ids = try makeItems(3, in: container)
            let view = container.viewContext
            let items = try ids.map { try view.object(with: $0) }
            let folder = Folder(in: view)
            try view.save()
            for item in items { item.title = "edited" }
            if way == "advance" {
                let other = container.newContext()
                for id in ids { try other.object(with: id).number = 99 }
                try other.save()
            }
            before({ _ = (items[1].title, items[1].number) }) {
                switch what {
                case "first": items[0].title = "late"
                case "second": items[1].number = 77
                case "new": Item(in: view).title = "new"
                case "delete": view.delete(items[2])
                default: items[0].folder = folder
                }
            }
            switch way {
            case "rollback": view.rollback()
            case "reset": view.reset()
            case "refresh": view.refresh(items[1], mergeChanges: false)
            case "advance": view.advance()
            default: view.delete(items[1])
            }
            let shown = items.map { $0.isDeleted ? "gone" : "\($0.title) \($0.number)" }
            #expect(items.allSatisfy { !$0.hasChanges } || view.hasChanges, "\(way) \(what)")
            #expect(view.changedAreAlive, "\(way) \(what)")
            try view.save()
            #expect(!view.hasChanges && items.allSatisfy { !$0.hasChanges }, "\(way) \(what)")
            if way != "reset" {
                let fresh = container.newContext()
                let stored = try ids.map { id in
                    try fresh.existingObject(with: id).map { "\($0.title) \($0.number)" } ?? "gone"
                }
                #expect(stored == shown, "\(way) \(what)")
                #expect(
                    items.map { $0.isDeleted ? "gone" : "\($0.title) \($0.number)" } == shown,
                    "\(way) \(what)"
                )
            }
            try container.closeNow()
        }
    }

    /// The set that was under way goes to an object that has left its context.
    @MainActor @Test(arguments: ["rollback", "reset", "save", "delete", "refresh"])
    func anObserverEmptiesTheContextInTheMiddleOfASet(_ way: String) throws {
        for isNew in [false, true] {
            for edit in ["set", "setBack", "relate", "append", "delete"] {
                let container = try memory()
                let view = container.viewContext
                let item = Item(in: view)
                let folder = Folder(in: view)
                let tag = Tag(in: view)
                try view.save()
                let target = isNew ? Item(in: view) : item
                if edit == "setBack" { target.title = "before" }
                before({ _ = (target.title, target.folder, target.tags.count) }) {
                    switch way {
                    case "rollback": view.rollback()
                    case "reset": view.reset()
                    case "save": #expect(code { try view.save() } == .reentrantSave)
                    case "delete": view.delete(target)
                    default: view.refresh(target, mergeChanges: false)
                    }
                }
                switch edit {
                case "set": target.title = "set"
                case "setBack": target.title = ""
                case "relate": target.folder = folder
                case "append": target.tags.append(tag)
                default: view.delete(target)
                }
                let name = "\(way) \(isNew) \(edit)"
                #expect(view.changedAreAlive, "\(name)")
                #expect(target.context != nil || !target.hasChanges, "\(name)")
                #expect(!target.hasChanges || view.hasChanges, "\(name)")
                let id = target.id
                let shown = (
                    target.isDeleted || target.context == nil, target.title,
                    target.folder != nil, target.tags.count
                )
                let found = code { try view.save() }
                #expect(found == nil, "\(name)")
                view.rollback()
                let fresh = container.newContext()
                let stored = try fresh.existingObject(with: id)
                if target.context != nil, !shown.0 {
                    #expect(stored?.title == shown.1, "\(name)")
                    #expect((stored?.folder != nil) == shown.2, "\(name)")
                    #expect(stored?.tags.count == shown.3, "\(name)")
                }
                try container.closeNow()
            }
        }
    }

    /// A save settles: others' changes are merged, and an observer of them edits what was saved.
    @MainActor @Test(arguments: ["saved", "other", "deleteSaved", "relate", "new"])
    func anObserverEditsWhileASaveSettles(_ what: String) throws {
        let container = try memory(ContainerOptions(viewContextMergesAutomatically: false))
        let ids = try makeItems(4, in: container)
        let view = container.viewContext
        let items = try ids.map { try view.object(with: $0) }
        let folder = Folder(in: view)
        folder.name = "f"
        try view.save()
        before({ _ = items[3].title }) {
            switch what {
            case "saved": items[0].number = 77
            case "other": items[1].title = "late"
            case "deleteSaved": view.delete(items[0])
            case "relate": items[0].folder = folder
            default: Item(in: view).title = "new"
            }
        }
        let other = container.newContext()
        try other.object(with: ids[3]).title = "theirs"
        try other.save()
        items[0].title = "mine"
        try view.save()
        #expect(items[3].title == "theirs" && items[0].title == "mine")
        #expect(view.hasChanges && view.changedAreAlive)
        switch what {
        case "saved": #expect(items[0].number == 77 && items[0].isUpdated)
        case "other": #expect(items[1].title == "late" && items[1].isUpdated)
        case "deleteSaved": #expect(items[0].isDeleted)
        case "relate": #expect(items[0].folder === folder && folder.items.count == 1)
        default: #expect(view.insertedObjects.count == 1)
        }
        try view.save()
        #expect(!view.hasChanges)
        let fresh = container.newContext()
        let stored = try fresh.existingObject(with: ids[0])
        switch what {
        case "saved": #expect(stored?.number == 77)
        case "other": #expect(try fresh.existingObject(with: ids[1])?.title == "late")
        case "deleteSaved": #expect(stored == nil)
        case "relate": #expect(stored?.folder?.name == "f")
        default: #expect(try fresh.count(Item.all) == 5)
        }
        try container.closeNow()
    }
}

extension ManagedObjectContext {
    /// No object with unsaved edits has left the context.
    fileprivate var changedAreAlive: Bool {
        let all = insertedObjects + updatedObjects + deletedObjects
        return all.allSatisfy { $0.context === self }
    }
}
