// Undo and redo of edits of objects that others have deleted.

import Foundation
import Testing
import VarveObjects

@Suite("Undo of edits of objects that others deleted", .verified) struct UndoOfGoneTests {
    private struct World {
        let container: PersistentContainer
        let context: ManagedObjectContext
        let item: Item
        let old: Folder
        let new: Folder
        let worn: Tag
        let other: Tag

        /// Others have deleted the item; the context learns of it with `advance`.
        func deleteElsewhere() throws {
            try saveElsewhere(container) { try $0.delete($0.object(with: item.id)) }
        }

        /// Nothing is left of the item, under any policy.
        func expectNothing(_ policy: MergePolicy, _ place: SourceLocation = #_sourceLocation) throws
        {
            #expect(!context.hasChanges, sourceLocation: place)
            #expect(item.title == "before" && item.number == 0, sourceLocation: place)
            let failure = code { try context.save(mergePolicy: policy) }
            #expect(failure == nil, sourceLocation: place)
            let stored = container.newContext()
            #expect(try stored.fetch(Item.all).isEmpty, sourceLocation: place)
            #expect(try stored.count(Folder.all) == 2, sourceLocation: place)
        }
    }

    private func world() throws -> World {
        let container = try memory()
        let context = container.newContext()
        let world = World(
            container: container,
            context: context,
            item: Item(in: context),
            old: Folder(in: context),
            new: Folder(in: context),
            worn: Tag(in: context),
            other: Tag(in: context)
        )
        world.item.title = "before"
        world.item.folder = world.old
        world.item.tags.append(world.worn)
        try context.save()
        context.undoLimit = 9
        return world
    }

    private static let policies = [MergePolicy.error, .overwrite, .objectWinsByProperty]

    @Test("An undo takes an edit back", arguments: [false, true])
    func attribute(_ isEditedFirst: Bool) throws {
        for policy in Self.policies {
            let world = try world()
            let (context, item) = (world.context, world.item)
            if isEditedFirst { item.title = "edited" }
            try world.deleteElsewhere()
            context.advance()
            if !isEditedFirst { item.title = "edited" }
            #expect(context.hasChanges && context.canUndo)
            #expect(try context.undo().isEmpty)
            #expect(context.canRedo)
            try world.expectNothing(policy)
        }
    }

    @Test("One of two steps is taken back, and the other stays")
    func steps() throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        try world.deleteElsewhere()
        context.advance()
        context.withUndoGroup { item.title = "first" }
        context.withUndoGroup { (item.title, item.number) = ("second", 7) }
        #expect(try context.undo().isEmpty)
        #expect(item.title == "first" && item.number == 0)
        #expect(try context.redo().isEmpty)
        #expect(item.title == "second" && item.number == 7)
        #expect(try context.undo().isEmpty)
        try context.save(mergePolicy: .overwrite)
        let stored = try #require(try world.container.newContext().fetch(Item.all).first)
        #expect(stored.title == "first" && stored.number == 0)
    }

    @Test("A relationship alone is a step", arguments: GoneEdit.allCases, [false, true])
    fileprivate func relationship(_ edit: GoneEdit, _ isEditedFirst: Bool) throws {
        for policy in Self.policies {
            let world = try world()
            let context = world.context
            if isEditedFirst { make(edit, world) }
            try world.deleteElsewhere()
            context.advance()
            if !isEditedFirst { make(edit, world) }
            #expect(context.hasChanges && context.canUndo)
            #expect(try context.undo().isEmpty)
            #expect(context.canRedo && !context.canUndo)
            try world.expectNothing(policy)
        }
    }

    @Test(
        "Done again, an edit brings the object back as it would have at once",
        arguments: GoneEdit.allCases,
        [false, true]
    )
    fileprivate func redo(_ edit: GoneEdit, _ writes: Bool) throws {
        func stored(_ isUndone: Bool) throws -> [String] {
            let world = try world()
            try world.deleteElsewhere()
            world.context.advance()
            if writes { world.item.title = "edited" }
            make(edit, world)
            if isUndone {
                #expect(try world.context.undo().isEmpty)
                #expect(!world.context.hasChanges)
                #expect(try world.context.redo().isEmpty)
                #expect(world.context.hasChanges)
            }
            try world.context.save(mergePolicy: .overwrite)
            let names = [world.old.id: "old", world.new.id: "new"]
            let tags = [world.worn.id: "worn", world.other.id: "other"]
            return try world.container.newContext().fetch(Item.all).map { item in
                let folder = item.folder.flatMap { names[$0.id] } ?? "none"
                let worn = item.tags.compactMap { tags[$0.id] }
                return ([item.title, folder] + worn).joined(separator: " ")
            }
        }
        let links = [
            GoneEdit.move: "new worn", .clear: "none worn", .add: "old worn other", .remove: "old",
        ]
        let wanted = ["\(writes ? "edited" : "before") \(links[edit] ?? "")"]
        #expect(try stored(false) == wanted)
        #expect(try stored(true) == wanted)
    }

    private struct Stop: Error {}

    /// An edit that gives the object the values of its row ends the edits that held it.
    @Test("A step brings an edit back whose object nobody holds any more", arguments: [0, 1, 2])
    func released(_ kind: Int) throws {
        let world = try world()
        let (container, context) = (world.container, world.context)
        var item: Item? = Item(in: context)
        item?.title = "stored"
        try context.save()
        let id = try #require(item?.id)
        // The step of the insertion would hold it.
        context.removeAllUndoSteps()
        try saveElsewhere(container) { try $0.delete($0.object(with: id)) }
        context.advance()
        context.withUndoGroup { item?.title = "edited" }
        switch kind {
        case 0:
            #expect(throws: Stop.self) {
                try context.transaction {
                    item?.title = "stored"
                    item = nil
                    throw Stop()
                }
            }
        default:
            context.withUndoGroup { item?.title = "stored" }
            item = nil
            if kind == 2 { context.advance() }
            #expect(!context.hasChanges)
            #expect(try context.undo().isEmpty)
        }
        #expect(context.hasChanges)
        #expect(context.readFailures.isEmpty)
        try context.save(mergePolicy: .overwrite)
        #expect(try container.newContext().fetch(Item.all).map(\.title).contains("edited"))
    }

    @Test("A step holds an object that others deleted behind it", arguments: [false, true])
    func heldByItsStep(_ isRelationship: Bool) throws {
        let world = try world()
        let (container, context) = (world.container, world.context)
        var item: Item? = Item(in: context)
        item?.title = "stored"
        try context.save()
        context.removeAllUndoSteps()
        let id = try #require(item?.id)
        if !isRelationship { item?.title = "edited" }
        try saveElsewhere(container) { try $0.delete($0.object(with: id)) }
        if isRelationship {
            context.advance()
            item?.folder = world.new
        }
        item = nil
        context.advance()
        #expect(context.hasChanges && context.canUndo)
        #expect(try context.undo().isEmpty)
        #expect(!context.hasChanges)
        #expect(try context.redo().isEmpty)
        #expect(context.hasChanges && context.readFailures.isEmpty)
        #expect(try context.undo().isEmpty)
        #expect(!context.hasChanges)
        try context.save()
    }

    @Test("A relationship that is set to what the row has is no edit")
    func andBack() throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        try world.deleteElsewhere()
        context.advance()
        item.folder = world.new
        #expect(context.hasChanges)
        item.folder = world.old
        #expect(!context.hasChanges)
        try context.undo()
        try world.expectNothing(.error)
    }

    @Test("An undo behind a save takes back what the object came back with", arguments: [0, 1])
    func saved(_ groups: Int) throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        try world.deleteElsewhere()
        context.advance()
        func edit() {
            item.folder = world.new
            item.tags.append(world.other)
        }
        if groups == 1 { context.withUndoGroup { edit() } } else { edit() }
        try context.save(mergePolicy: .overwrite)
        #expect(!item.isDeleted && item.folder === world.new)
        #expect(Array(item.tags) == [world.worn, world.other])
        #expect(context.canUndo && !context.canRedo && !context.hasChanges)
        #expect(try context.undo().isEmpty)
        #expect(item.folder === world.old && Array(item.tags) == [world.worn])
        #expect(try context.redo().isEmpty)
        #expect(item.folder === world.new && Array(item.tags) == [world.worn, world.other])
    }

    @Test("Of a relationship that a policy gave up no step is left", arguments: [false, true])
    func givenUp(_ isGroup: Bool) throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        try world.deleteElsewhere()
        context.advance()
        if isGroup {
            context.withUndoGroup { item.folder = world.new }
        } else {
            item.folder = world.new
        }
        try context.save(mergePolicy: .rollback)
        #expect(item.isDeleted && !context.canUndo && !context.canRedo && !context.hasChanges)
    }

    /// The others' folder is gone: setting the property anew is an edit that shows nothing.
    @Test("An edit that shows nothing does not bring undone ones back")
    func stale() throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        let second = Item(in: context)
        try context.save()
        context.withUndoGroup { (item.folder, second.folder) = (world.new, world.old) }
        try saveElsewhere(world.container) { try $0.delete($0.object(with: world.new.id)) }
        context.advance()
        item.folder = nil
        #expect(try context.undo().allSatisfy { $0.reason != .deletedSince })
        #expect(second.folder == nil)
        context.withUndoGroup { world.other.name = "t" }
        #expect(try context.undo().isEmpty)
        #expect(second.folder == nil && world.other.name.isEmpty)
    }

    /// An undo has ended the instance that a step knows, and others have brought its row back.
    @Test("A step does not show an instance that has ended")
    func ended() throws {
        let world = try world()
        let (container, context) = (world.container, world.context)
        let other = container.newContext()
        other.undoLimit = 9
        let item = world.item
        let id = item.id
        try other.delete(other.object(with: id))
        let commit = try #require(try other.save().commit)
        context.advance()
        context.withUndoGroup { item.title = "x" }
        try context.revert(commit: commit, policy: .overwrite)
        try context.undo()
        try other.undo()
        try other.save()
        context.advance()
        try context.undo()
        let shown = try #require(try context.fetch(Item.all).first)
        #expect(shown.title == "before")
        shown.title = "set"
        #expect(shown.title == "set")
        try context.save(mergePolicy: .overwrite)
        #expect(try container.newContext().object(with: id).title == "set")
        context.removeAllUndoSteps()
    }

    @Test("Steps of nothing are none")
    func nothing() throws {
        let world = try world()
        let context = world.context
        context.withUndoGroup {
            world.item.folder = world.new
            world.item.folder = world.old
        }
        #expect(!context.canUndo && !context.hasChanges)
        try world.deleteElsewhere()
        context.advance()
        context.withUndoGroup { world.other.name = "x" }
        context.withUndoGroup {
            world.new.name = "y"
            world.new.name = ""
        }
        try context.undo()
        #expect(!context.canUndo && !context.hasChanges)
    }

    /// What was saved is another's to delete: nothing of it comes back.
    @Test("Of an edit that was saved before the deletion nothing comes back")
    func saved() throws {
        let world = try world()
        let (context, item) = (world.context, world.item)
        item.title = "edited"
        try context.save()
        try world.deleteElsewhere()
        context.advance()
        #expect(try context.undo().map(\.reason) == [.deletedSince])
        #expect(item.title == "edited" && !context.hasChanges)
        try context.save(mergePolicy: .overwrite)
        #expect(try world.container.newContext().fetch(Item.all).isEmpty)
    }

    private func make(_ edit: GoneEdit, _ world: World) {
        switch edit {
        case .move: world.item.folder = world.new
        case .clear: world.item.folder = nil
        case .add: world.item.tags.append(world.other)
        case .remove: world.item.tags.remove(world.worn)
        }
    }
}

/// An edit of a relationship of an object that others deleted.
private enum GoneEdit: CaseIterable {
    case move, clear, add, remove
}
