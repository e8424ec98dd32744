// Edits that cannot be: each is refused with what is true, costs no other edit, and has a way out.

import Testing
import VarveObjects

@Suite(.verified) struct RefusedEditTests {
    @Test func everyEditOfADeletedObjectIsRefused() throws {
        for isSaved in [false, true] {
            let edits: [(Node, Node) -> Void] = [
                { deleted, _ in deleted.name = "x" }, { deleted, _ in deleted.score = 1 },
                { deleted, other in deleted.next = other },
                { deleted, other in other.next = deleted },
                { deleted, other in deleted.picks.append(other) },
                { deleted, other in other.picks.append(deleted) },
                { deleted, other in deleted.children.append(other) },
                { deleted, other in other.children.append(deleted) },
                { deleted, other in other.playlist.insert(deleted, at: 0) },
                { deleted, other in other.left.replaceAll(with: [deleted]) },
                { deleted, other in deleted.right.replaceAll(with: [other]) },
            ]
            for (number, edit) in edits.enumerated() {
                let container = try graph()
                let context = container.newContext()
                let all = try nodes("deleted", "other", in: context)
                context.delete(all[0])
                if isSaved { try context.save() } else { context.processPendingChanges() }
                edit(all[0], all[1])
                #expect(context.refusedEdits.count == 1, "\(number)")
                all[1].name = "kept"
                let error = #expect(throws: StoreError.self) { try context.save() }
                #expect(error?.code == .objectDeleted && error?.details.count == 1, "\(number)")
                #expect(error?.message.contains("another context") == false, "\(number)")
                context.acknowledgeRefusedEdits()
                try context.save()
                #expect(!context.hasChanges && context.refusedEdits.isEmpty)
                let fresh = container.newContext()
                #expect(try fresh.fetch(Node.all).names == ["kept"], "\(number)")
                try expectSound(fresh)
            }
        }
    }

    @Test func everyWayToJoinContextsIsRefused() throws {
        let edits: [(Node, Node) -> Void] = [
            { $0.next = $1 }, { $0.loose = $1 }, { $0.parent = $1 }, { $0.picks.append($1) },
            { $0.children.append($1) }, { $0.playlist.insert($1, at: 0) },
            { $0.left.append(contentsOf: [$1]) }, { $0.chapters.replaceAll(with: [$1]) },
            { $0.context?.delete($1) },
        ]
        for (number, edit) in edits.enumerated() {
            let container = try graph()
            let (context, other) = (container.newContext(), container.newContext())
            let all = try nodes("mine", "theirs", in: context)
            let foreign = try other.same(all)[1]
            edit(all[0], foreign)
            #expect(!foreign.hasChanges && !other.hasChanges, "\(number)")
            all[0].score = 1
            #expect(code { try context.save() } == .crossContext, "\(number)")
            // The way out that the error names: the same edit with this context's own object.
            edit(all[0], try #require(try context.existingObject(with: foreign.id)))
            if number == edits.count - 1 { context.acknowledgeRefusedEdits() }
            try context.save()
            #expect(context.refusedEdits.isEmpty && !context.hasChanges, "\(number)")
            let fresh = container.newContext()
            try expectSound(fresh)
            #expect(try fresh.named("mine")?.score == 1)
        }
    }

    @Test func removingFromAListAsksNothingOfOtherContexts() throws {
        let container = try graph()
        let (context, other) = (container.newContext(), container.newContext())
        let all = try nodes("a", "b", in: context)
        all[0].picks.append(all[1])
        try context.save()
        let theirs = try other.same(all)
        all[0].picks.remove(theirs[1])
        // Removed, or refused: never something else.
        if let refused = context.refusedEdits.first {
            #expect(refused.error.code == .crossContext && all[0].picks.count == 1)
            context.acknowledgeRefusedEdits()
        }
        try context.save()
        try expectSound(container.newContext())
        #expect(!other.hasChanges)
    }

    @Test func whatWasRefusedIsSaidInTheOrderOfTheCalls() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        let foreign = Node(in: container.newContext())
        context.delete(all[1])
        context.processPendingChanges()
        all[0].next = foreign
        all[1].name = "x"
        all[0].loose = all[1]
        all[1].name = "again"
        #expect(context.refusedEdits.map(\.property) == ["next", "name", "loose"])
        let error = #expect(throws: StoreError.self) { try context.save() }
        #expect(error?.code == .crossContext)
        #expect(error?.details.map(\.code) == [.crossContext, .objectDeleted, .objectDeleted])
        // Each ends by its own way out.
        all[0].next = nil
        #expect(context.refusedEdits.map(\.property) == ["name", "loose"])
        context.refresh(all[1], mergeChanges: false)
        #expect(context.refusedEdits.map(\.property) == ["loose"])
        all[0].loose = all[0]
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        #expect(try storedNames(container) == ["a"])
        try expectSound(container.newContext())
    }

    @Test func aTwiceDeletedObjectIsDeletedOnce() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        let other = container.newContext()
        other.delete(try other.same(all)[0])
        try other.save()
        context.delete(all[0])
        context.delete(all[0])
        #expect(context.deletedObjects.count == 1)
        try context.save()
        #expect(context.deletedObjects.isEmpty && !context.hasChanges)
        context.delete(all[0])
        #expect(!context.hasChanges)
        #expect(try context.save().commit == nil)
        #expect(try storedNames(container) == ["b"])
    }

    @Test func deletedObjectsAreThisContextsUntilItSaves() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("parent", "child", "others'", in: context)
        all[1].parent = all[0]
        try context.save()
        let other = container.newContext()
        other.delete(try other.same(all)[2])
        try other.save()
        context.delete(all[0])
        // With what the cascade reaches, without what others delete.
        context.processPendingChanges()
        context.advance()
        #expect(all[2].isDeleted)
        #expect(context.deletedObjects.map(\.objectID) == [all[0].objectID, all[1].objectID])
        #expect(context.insertedObjects.isEmpty && context.updatedObjects.isEmpty)
        try context.save()
        #expect(context.deletedObjects.isEmpty)
    }

    @Test func setAwayAndBackLeavesNothing() async throws {
        let container = try graph()
        let ids = try nodes("a", "b", "c", in: container.newContext()).map(\.id)
        try await container.performBackgroundTask { context in
            let all = try ids.map { try #require(try context.existingObject(with: $0)) }
            all[0].next = all[1]
            all[0].loose = all[1]
            all[0].book = all[1]
            try context.save()
            for target in [nil, all[2], all[0]] {
                all[0].next = target
                all[0].next = all[1]
                all[0].loose = target
                all[0].loose = all[1]
                all[0].book = target
                all[0].book = all[1]
                #expect(!context.hasChanges && !all[0].hasChanges && !all[1].hasChanges)
                #expect(context.updatedObjects.isEmpty)
            }
            // From the other side, and through a list.
            all[1].previous = all[2]
            all[1].previous = all[0]
            all[2].chapters.append(all[0])
            all[1].chapters.append(all[0])
            #expect(!context.hasChanges)
        }
        try expectSound(container.newContext())
    }

    @Test func anEmptySaveMovesOn() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        let other = container.newContext()
        try #require(try other.existingObject(with: node.id)).name = "theirs"
        let commit = try #require(try other.save().commit)
        #expect(node.name == "a")
        #expect(try context.save().commit == nil)
        #expect(context.commit == commit && node.name == "theirs")
        // Also after an edit that was set back, and a new object that was deleted.
        try #require(try other.existingObject(with: node.id)).name = "newer"
        try other.save()
        node.score = 1
        node.score = 0
        context.delete(Node(in: context))
        #expect(try context.save().commit == nil)
        #expect(node.name == "newer" && !context.hasChanges)
    }
}
