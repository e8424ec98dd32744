// Every hook of an object: what it sees, what it may do, and that a save inside it is refused.

import Foundation
import Testing
import VarveObjects

/// `code`, where a hook has a name like it.
private func codeOf(_ body: () throws -> Void) -> StoreError.Code? { code(body) }

@Suite(.verified) struct HookTests {
    // MARK: awakeFromInsert

    @Test func awakeFromInsertSeesDefaultsAndItsEditsAreSaved() throws {
        try scene { scene in
            var seen: [String] = []
            scene.script.awakeFromInsert = { object in
                seen.append("\(object.name) \(object.isInserted) \(object.context != nil)")
                object.name = "set by the hook"
                object.edits = 1
                object.edits = 0
                seen.append("\((try? object.context?.fetch(Hooked.all).count) ?? -1)")
            }
            let object = Hooked(in: scene.context)
            #expect(seen == ["made true true", "1"])
            #expect(object.name == "set by the hook")
            try scene.context.save()
            #expect(try scene.stored() == ["set by the hook"])
            // It may make others, and take itself back.
            scene.script.awakeFromInsert = { object in
                guard let context = object.context else { return }
                scene.script.awakeFromInsert = nil
                Hooked(in: context).name = "second"
                context.delete(object)
            }
            _ = Hooked(in: scene.context)
            try scene.context.save()
            #expect(try scene.stored() == ["second", "set by the hook"])
        }
    }

    // MARK: awakeFromFetch

    @Test func awakeFromFetchSeesItsRowAndMayEdit() throws {
        try scene { scene in
            let ids = try scene.saved("a", "b").map(\.id)
            let fresh = scene.container.newContext()
            var seen: [String] = []
            scene.script.awakeFromFetch = { object in
                seen.append("\(object.name) \(object.isFault)")
                object.edits = 7
            }
            let object = try #require(try fresh.existingObject(with: ids[0]))
            #expect(object.name == "a" && seen == ["a false"])
            #expect(object.isUpdated && object.edits == 7)
            // Setting it back is no edit.
            scene.script.awakeFromFetch = {
                $0.edits = 7; $0.edits = 0
            }
            let other = try #require(try fresh.existingObject(with: ids[1]))
            #expect(other.name == "b" && !other.isUpdated)
            // It may delete and fetch.
            var counted = -1
            let third = scene.container.newContext()
            scene.script.awakeFromFetch = { object in
                guard object.name == "b" else { return }
                object.context?.delete(object)
                counted = (try? third.count(Hooked.all)) ?? -1
            }
            #expect(try third.existingObject(with: ids[1])?.name == "b")
            #expect(counted == 1)
            scene.script.awakeFromFetch = nil
            try third.save()
            try fresh.save()
            #expect(try scene.stored() == ["a"])
        }
    }

    /// A row that was read before the hook moved the context was given to objects behind it.
    @Test(arguments: ["save", "advance", "reset"])
    func awakeFromFetchMayMoveItsContext(way: String) throws {
        try scene { scene in
            let ids = try scene.saved("a", "b", "c").map(\.id)
            let fresh = scene.container.newContext()
            #expect(try fresh.count(Hooked.all) == 3)
            let known = try ids.dropFirst().map { try fresh.object(with: $0) }
            let other = scene.container.newContext()
            for id in ids { try #require(try other.existingObject(with: id)).edits = 4 }
            try other.save()
            scene.script.awakeFromFetch = { object in
                guard object.context === fresh else { return }
                scene.script.awakeFromFetch = nil
                switch way {
                case "save": _ = try? fresh.save()
                case "advance": fresh.advance()
                default: fresh.reset()
                }
            }
            let list = try fresh.fetch(Hooked.all.returningFaults(false))
            if way == "reset" {
                #expect(known.allSatisfy { $0.context == nil })
                #expect(try fresh.fetch(Hooked.all).map(\.edits) == [4, 4, 4])
            } else {
                #expect(known.map(\.edits) == [4, 4])
                #expect(list.map(\.edits) == [4, 4, 4])
            }
            #expect(fresh.readFailures.isEmpty && !fresh.hasChanges)
        }
    }

    // MARK: didTurnIntoFault

    @Test func didTurnIntoFaultSeesAFaultAndMayReadAndEdit() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            #expect(objects[0].name == "a")
            var seen: [String] = []
            scene.script.didTurnIntoFault = { object in
                seen.append("\(object.isFault) \(object.name) \(object.isFault)")
                object.edits = 3
            }
            scene.context.refresh(objects[0], mergeChanges: false)
            #expect(seen == ["true a false"])
            #expect(objects[0].isUpdated && objects[0].edits == 3)
            try scene.context.save()
            let fresh = scene.container.newContext()
            #expect(try fresh.existingObject(with: objects[0].id)?.edits == 3)
        }
    }

    @Test func aRefreshThatKeepsEditsShowsThemToTheHook() throws {
        try scene { scene in
            let object = try scene.saved("a")[0]
            object.name = "edited"
            var seen: [String] = []
            scene.script.didTurnIntoFault = { object in
                seen.append(object.name)
                object.edits = 5
            }
            scene.context.refresh(object, mergeChanges: true)
            #expect(seen == ["edited"])
            #expect(object.name == "edited" && object.edits == 5)
            // Without edits before: what the hook sets is an edit like any other.
            try scene.context.save()
            #expect(object.edits == 5)
            scene.script.didTurnIntoFault = { $0.edits = 6 }
            scene.context.refresh(object, mergeChanges: true)
            #expect(object.edits == 6 && object.isUpdated)
            try scene.context.save()
            #expect(!scene.context.hasChanges)
            let fresh = scene.container.newContext()
            #expect(try fresh.existingObject(with: object.id)?.edits == 6)
        }
    }

    // MARK: willSave

    @Test func willSaveSeesEditsAndWhatItChangesIsSavedToo() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            var seen: [String] = []
            scene.script.willSave = { object in
                seen.append(object.name)
                if object === objects[0] { objects[1].name = "by the hook" }
                if object.edits < 9 { object.edits = 9 }
            }
            objects[0].name = "edited"
            let result = try scene.context.save()
            #expect(result.commit != nil && seen == ["edited", "by the hook"])
            #expect(try scene.stored() == ["by the hook", "edited"])
            #expect(objects[1].edits == 9 && !scene.context.hasChanges)
        }
    }

    @Test func willSaveMaySetBackDeleteInsertAndFetch() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b", "c")
            objects[1].parent = objects[0]
            try scene.context.save()
            // Set back: nothing is left to save.
            scene.script.willSave = { $0.name = "c" }
            objects[2].name = "edited"
            #expect(try scene.context.save().commit == nil)
            #expect(!scene.context.hasChanges)
            // Delete itself, and with it what its cascade reaches; make another; fetch.
            var found: [String] = []
            scene.script.willSave = { object in
                guard object === objects[0] else { return }
                scene.script.willSave = nil
                object.context?.delete(object)
                Hooked(in: scene.context).name = "new"
                found = (try? scene.context.fetch(Hooked.all).map(\.name)) ?? []
            }
            objects[0].name = "edited"
            try scene.context.save()
            #expect(found == ["c", "new"])
            #expect(objects[0].isDeleted && objects[1].isDeleted && !scene.context.hasChanges)
            #expect(try scene.stored() == ["c", "new"])
            // And drop everything.
            scene.script.willSave = { $0.context?.rollback() }
            objects[2].name = "edited"
            #expect(try scene.context.save().commit == nil)
            #expect(objects[2].name == "c" && !scene.context.hasChanges)
        }
    }

    // MARK: validate

    @Test func validateSeesAllAndMayOnlyLook() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            var seen: [String] = []
            scene.script.validate = { object in
                seen = (try? scene.context.fetch(Hooked.all).map(\.name)) ?? []
            }
            objects[0].name = "edited"
            try scene.context.save()
            #expect(seen == ["edited", "b"])
            // Any edit is refused, and said.
            for number in 0..<5 {
                scene.script.validate = { object in Self.edit(number, object, objects[1]) }
                objects[0].name = "again \(number)"
                #expect(code { try scene.context.save() } == .reentrantSave, "\(number)")
                #expect(objects[0].name == "again \(number)" && objects[0].parent == nil)
                #expect(!objects[1].isDeleted && !objects[0].isDeleted)
                #expect(scene.context.refusedEdits.count == 1)
                #expect(try !scene.stored().contains("again \(number)"))
                scene.script.validate = nil
                scene.context.acknowledgeRefusedEdits()
                try scene.context.save()
                #expect(try scene.stored().contains("again \(number)"))
            }
            // What would take the edits of the save away does nothing either.
            for number in 0..<5 {
                scene.script.validate = { object in Self.takeAway(number, object) }
                objects[0].name = "kept \(number)"
                try scene.context.save()
                #expect(try scene.stored().contains("kept \(number)"))
            }
        }
    }

    private static func edit(_ number: Int, _ object: Hooked, _ other: Hooked) {
        switch number {
        case 0: object.name = "by validate"
        case 1: object.parent = other
        case 2: other.children.append(object)
        case 3: object.context?.delete(object)
        default: other.context?.delete(other)
        }
    }

    private static func takeAway(_ number: Int, _ object: Hooked) {
        guard let context = object.context else { return }
        switch number {
        case 0: context.rollback()
        case 1: context.reset()
        case 2: context.advance()
        case 3: context.refreshAllObjects()
        default: context.refresh(object, mergeChanges: false)
        }
    }

    // MARK: didSave

    @Test(arguments: [false, true])
    func didSaveSeesTheNewValuesAndItsEditsAreInTheNextSave(isNew: Bool) throws {
        try scene { scene in
            let object: Hooked
            if isNew {
                object = Hooked(in: scene.context)
            } else {
                object = try scene.saved("before")[0]
            }
            object.name = "saved"
            object.edits = 2
            var seen: [String] = []
            var fetched: [String] = []
            scene.script.didSave = { object in
                scene.script.didSave = nil
                seen = ["\(object.name) \(object.edits) \(object.hasChanges)"]
                fetched = (try? scene.context.fetch(Hooked.all).map(\.name)) ?? []
                object.edits = 3
                Hooked(in: scene.context).name = "made in didSave"
            }
            try scene.context.save()
            #expect(seen == ["saved 2 false"] && fetched == ["saved"])
            #expect(scene.context.readFailures.isEmpty)
            #expect(object.edits == 3 && object.isUpdated)
            #expect(scene.context.insertedObjects.count == 1)
            #expect(try scene.stored() == ["saved"])
            try scene.context.save()
            #expect(!scene.context.hasChanges)
            #expect(try scene.stored() == ["made in didSave", "saved"])
            let fresh = scene.container.newContext()
            #expect(try fresh.existingObject(with: object.id)?.edits == 3)
        }
    }

    @Test func didSaveMaySetBackRelateAndDelete() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            // Back to what it was before this save: an edit over what was saved.
            scene.script.didSave = { $0.name = "a" }
            objects[0].name = "x"
            try scene.context.save()
            #expect(objects[0].isUpdated && objects[0].name == "a")
            #expect(try scene.stored() == ["b", "x"])
            // To what was saved: no edit.
            scene.script.didSave = {
                $0.name = "y"; $0.name = "a"
            }
            try scene.context.save()
            #expect(!scene.context.hasChanges)
            #expect(try scene.stored() == ["a", "b"])
            scene.script.didSave = { object in
                scene.script.didSave = nil
                object.parent = objects[1]
            }
            objects[0].name = "z"
            try scene.context.save()
            #expect(objects[0].parent === objects[1] && objects[1].children.count == 1)
            try scene.context.save()
            let fresh = scene.container.newContext()
            #expect(try fresh.existingObject(with: objects[0].id)?.parent?.name == "b")
            scene.script.didSave = { object in
                scene.script.didSave = nil
                scene.context.delete(object)
            }
            objects[1].name = "gone soon"
            try scene.context.save()
            #expect(objects[1].isDeleted)
            #expect(try scene.stored() == ["gone soon", "z"])
            try scene.context.save()
            #expect(try scene.stored() == [])
        }
    }

    @Test func didSaveOfADeletedObject() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            var seen: [String] = []
            scene.script.didSave = { seen.append("\($0.name) \($0.isDeleted) \($0.hasChanges)") }
            scene.context.delete(objects[0])
            try scene.context.save()
            #expect(seen == ["a true false"])
            // Others' values are there, too.
            let other = scene.container.newContext()
            try #require(try other.existingObject(with: objects[1].id)).edits = 4
            try other.save()
            var edits = -1
            scene.script.didSave = { edits = $0.edits }
            objects[1].name = "c"
            try scene.context.save(mergePolicy: .objectWinsByProperty)
            #expect(edits == 4)
        }
    }

    @Test func didSaveMayRollBackAndReset() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            scene.script.didSave = { object in
                object.edits = 8
                object.context?.rollback()
            }
            objects[0].name = "x"
            try scene.context.save()
            #expect(!scene.context.hasChanges && objects[0].edits == 0)
            scene.script.didSave = { $0.context?.reset() }
            objects[0].name = "y"
            objects[1].name = "z"
            try scene.context.save()
            #expect(objects[0].context == nil && scene.context.commit == nil)
            #expect(try scene.stored() == ["y", "z"])
            #expect(try scene.context.fetch(Hooked.all).map(\.name) == ["y", "z"])
        }
    }

    // MARK: prepareForDeletion

    @Test func prepareForDeletionSeesItsValuesAndMayChangeItsReach() throws {
        try scene { scene in
            let objects = try scene.saved("parent", "child", "other")
            objects[1].parent = objects[0]
            try scene.context.save()
            var seen: [String] = []
            var found: [String] = []
            scene.script.prepareForDeletion = { object in
                seen.append("\(object.name) of \(object.parent?.name ?? "-") \(object.isDeleted)")
                guard object === objects[0] else { return }
                // Its child stays, another one goes.
                objects[1].parent = nil
                scene.context.delete(objects[2])
                object.edits = 1
                found = (try? scene.context.fetch(Hooked.all).map(\.name)) ?? []
            }
            scene.context.delete(objects[0])
            try scene.context.save()
            #expect(seen == ["parent of - true", "other of - true"])
            #expect(found == ["child"])
            #expect(!scene.context.hasChanges && !objects[1].isDeleted)
            #expect(try scene.stored() == ["child"])
        }
    }

    @Test func prepareForDeletionOfACascadeRunsOnceEach() throws {
        try scene { scene in
            let objects = try scene.saved("parent", "child", "grandchild")
            objects[1].parent = objects[0]
            objects[2].parent = objects[1]
            try scene.context.save()
            var seen: [String] = []
            scene.script.prepareForDeletion = { object in
                seen.append("\(object.name) of \(object.parent?.name ?? "-")")
                object.context?.delete(object)
            }
            scene.context.delete(objects[0])
            _ = try scene.context.fetch(Hooked.all)
            try scene.context.save()
            #expect(seen == ["parent of -", "child of parent", "grandchild of child"])
            #expect(try scene.stored() == [])
        }
    }

    @Test func prepareForDeletionMayTakeItAllBack() throws {
        try scene { scene in
            let objects = try scene.saved("parent", "child")
            objects[1].parent = objects[0]
            try scene.context.save()
            scene.script.prepareForDeletion = { $0.context?.rollback() }
            scene.context.delete(objects[0])
            #expect(try scene.context.save().commit == nil)
            #expect(!objects[0].isDeleted && !objects[1].isDeleted && !scene.context.hasChanges)
            scene.script.prepareForDeletion = { $0.context?.reset() }
            scene.context.delete(objects[0])
            #expect(try scene.context.save().commit == nil)
            #expect(!scene.context.hasChanges)
            #expect(try scene.stored() == ["child", "parent"])
        }
    }

    // MARK: A save inside

    @Test func aSaveInsideASaveIsRefusedAtOnce() throws {
        try scene { scene in
            let objects = try scene.saved("a", "b")
            var codes: [StoreError.Code?] = []
            let save: (Hooked) -> Void = { object in
                codes.append(
                    codeOf { _ = try object.context?.save() }
                )
            }
            scene.script.willSave = save
            scene.script.validate = save
            scene.script.didSave = save
            objects[0].name = "saved"
            try scene.context.save()
            #expect(codes == [.reentrantSave, .reentrantSave, .reentrantSave])
            #expect(!scene.context.hasChanges)
            #expect(try scene.stored() == ["b", "saved"])
            scene.script.willSave = nil
            scene.script.didSave = nil
            scene.script.prepareForDeletion = save
            codes = []
            scene.context.delete(objects[0])
            // Wherever the rules run.
            _ = try scene.context.fetch(Hooked.all)
            #expect(codes == [.reentrantSave])
            try scene.context.save()
            #expect(try scene.stored() == ["b"])
            // And another context may be saved from all of them but those under the writer lock.
            let other = scene.container.newContext()
            let theirs = try #require(try other.existingObject(with: objects[1].id))
            scene.script.validate = nil
            scene.script.willSave = { object in
                guard object.context === scene.context else { return }
                theirs.edits = 5
                _ = try? other.save()
            }
            _ = try scene.saved("c")
            let fresh = scene.container.newContext()
            #expect(try fresh.existingObject(with: objects[1].id)?.edits == 5)
        }
    }
}
