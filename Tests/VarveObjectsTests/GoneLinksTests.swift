// Edits of nothing but relationships, of objects that others deleted: a policy that brings an
// edited object back brings these back as well, whenever the context learns of the deletion.

import Foundation
import Testing
import VarveObjects

@Suite("Relationships of what others deleted, and saves", .verified) struct GoneLinksTests {
    /// When the context learns that others deleted the item.
    fileprivate enum Moment: CaseIterable { case atTheSave, behindTheEdit, beforeTheEdit }

    fileprivate struct World {
        let container: PersistentContainer
        let context: ManagedObjectContext
        var item: Item?
        let id: TypedObjectID<Item>
        let folders: [Folder]
        let tags: [Tag]
        let picture: Picture

        init() throws {
            container = try memory()
            context = container.newContext()
            let item = Item(in: context)
            item.title = "stored"
            let context = context
            folders = ["old", "new"].map { name in
                let folder = Folder(in: context)
                folder.name = name
                return folder
            }
            tags = ["worn", "other"].map { name in
                let tag = Tag(in: context)
                tag.name = name
                return tag
            }
            picture = Picture(in: context)
            item.folder = folders[0]
            item.tags.append(tags[0])
            try context.save()
            id = item.id
            self.item = item
        }

        /// What others find: title, folder, tags and picture of each item.
        func stored() throws -> [String] {
            try container.newContext().fetch(Item.all).map { item in
                let tags = item.tags.map(\.name).joined(separator: "+")
                let picture = item.picture == nil ? "" : " picture"
                return "\(item.title) \(item.folder?.name ?? "none") \(tags)\(picture)"
            }
        }
    }

    fileprivate enum Edit: CaseIterable {
        case move, clear, add, remove, picture, arrange

        fileprivate func make(_ world: borrowing World) {
            guard let item = world.item else { return }
            switch self {
            case .move: item.folder = world.folders[1]
            case .clear: item.folder = nil
            case .add: item.tags.append(world.tags[1])
            case .remove: item.tags.remove(world.tags[0])
            case .picture: item.picture = world.picture
            case .arrange: item.tags.insert(world.tags[1], at: 0)
            }
        }

        /// What is stored when a policy brings the item back with it.
        var result: String {
            switch self {
            case .move: "stored new worn"
            case .clear: "stored none worn"
            case .add: "stored old worn+other"
            case .remove: "stored old "
            case .picture: "stored old worn picture"
            case .arrange: "stored old other+worn"
            }
        }
    }

    private static let policies: [(name: String, policy: MergePolicy, isBack: Bool?)] = [
        ("error", .error, nil), ("overwrite", .overwrite, true),
        ("object wins", .objectWinsByProperty, true), ("store wins", .storeWinsByProperty, false),
        ("rollback", .rollback, false), ("custom", .custom { _ in .overwrite }, true),
    ]

    @Test(
        "It counts the same whenever the context learns of the deletion, and whoever holds it",
        arguments: Edit.allCases,
        Moment.allCases
    )
    fileprivate func saved(_ edit: Edit, _ moment: Moment) throws {
        for (name, policy, isBack) in Self.policies {
            for isHeld in [true, false] {
                var world = try World()
                let id = world.id
                if moment != .beforeTheEdit { edit.make(world) }
                if !isHeld, moment != .beforeTheEdit { world.item = nil }
                try saveElsewhere(world.container) { try $0.delete($0.object(with: id)) }
                if moment != .atTheSave { world.context.advance() }
                if moment == .beforeTheEdit { edit.make(world) }
                if !isHeld { world.item = nil }
                let place = "\(name), \(isHeld ? "held" : "not held")"
                #expect(world.context.hasChanges, "\(place)")
                let failure = code { try world.context.save(mergePolicy: policy) }
                #expect((failure == .conflict) == (isBack == nil), "\(place)")
                #expect(try world.stored() == (isBack == true ? [edit.result] : []), "\(place)")
                #expect(world.context.hasChanges == (isBack == nil), "\(place)")
                if isBack == true, let item = world.item {
                    #expect(!item.isDeleted && item.title == "stored", "\(place)")
                    let folder = edit == .clear ? nil : edit == .move ? "new" : "old"
                    #expect(item.folder?.name == folder, "\(place)")
                }
            }
        }
    }
    /// It has no edits of its own, and may be a fault: given up, it is lost like any other object.
    @Test("A fault whose list alone was edited keeps its values when a policy gives that up")
    func fault() throws {
        let made = try World()
        let context = made.container.newContext()
        let item = try context.object(with: made.id)
        #expect(item.isFault)
        item.tags.append(try context.object(with: made.tags[1].id))
        try saveElsewhere(made.container) { try $0.delete($0.object(with: made.id)) }
        try context.save(mergePolicy: .rollback)
        #expect(item.isDeleted && !context.hasChanges)
        #expect(item.title == "stored" && context.readFailures.isEmpty)
        #expect(item.tags.map(\.name) == ["worn"])
        try context.save()
    }
    @Test("What is as it was brings nothing back", arguments: [false, true])
    func notEdited(_ learns: Bool) throws {
        let world = try World()
        let (context, item) = (world.context, try #require(world.item))
        // Whatever else is edited keeps the journal.
        world.folders[0].name = "edited"
        // An edit of the tag, of which the item's list shows something as well.
        world.tags[1].items.append(item)
        item.folder = nil
        item.folder = world.folders[0]
        item.tags.remove(world.tags[0])
        item.tags.insert(world.tags[0], at: 0)
        try saveElsewhere(world.container) { try $0.delete($0.object(with: world.id)) }
        if learns { context.advance() }
        item.tags.append(world.tags[0])
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(try world.stored() == [])
    }

    @Test("A member that comes and goes behind the deletion is none")
    func comesAndGoes() throws {
        let world = try World()
        let (context, item) = (world.context, try #require(world.item))
        try saveElsewhere(world.container) { try $0.delete($0.object(with: world.id)) }
        context.advance()
        item.tags.append(world.tags[1])
        item.tags.append(world.tags[1])
        item.tags.remove(world.tags[1])
        #expect(!context.hasChanges)
        item.folder = world.folders[1]
        item.tags.append(world.tags[1])
        item.tags.remove(world.tags[1])
        try context.save(mergePolicy: .overwrite)
        #expect(try world.stored() == ["stored new worn"])
    }

    @Test("What a redo edits again is held, also when its step is forgotten")
    func redone() throws {
        var world = try World()
        let (context, id) = (world.context, world.id)
        context.undoLimit = 9
        try saveElsewhere(world.container) { try $0.delete($0.object(with: id)) }
        context.advance()
        world.item?.tags.append(world.tags[1])
        world.item = nil
        try context.undo()
        #expect(!context.hasChanges)
        try context.redo()
        context.removeAllUndoSteps()
        try context.save(mergePolicy: .overwrite)
        #expect(try world.stored() == ["stored old worn+other"])
    }

    @Test("An object comes back to its place in an order", arguments: [false, true])
    func place(_ learns: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let (first, item, last) = (Tag(in: context), Tag(in: context), Tag(in: context))
        for (name, tag) in [("first", first), ("middle", item), ("last", last)] { tag.name = name }
        let (owner, more) = (Item(in: context), Item(in: context))
        for tag in [first, item, last] { owner.tags.append(tag) }
        try context.save()
        // Only a relationship of it.
        item.items.append(more)
        let id = item.id
        try saveElsewhere(container) { try $0.delete($0.object(with: id)) }
        if learns { context.advance() }
        try context.save(mergePolicy: .objectWinsByProperty)
        let stored = try container.newContext().object(with: owner.id)
        #expect(stored.tags.map(\.name) == ["first", "middle", "last"])
    }
    @Test("Lists of what is gone are edited as the app wants them, not as they show")
    func ordersOfTheGone() throws {
        func stored(_ edit: (Item, [Tag]) -> Void) throws -> String? {
            let world = try World()
            let (context, item) = (world.context, try #require(world.item))
            item.tags.append(world.tags[1])
            try context.save()
            try saveElsewhere(world.container) { try $0.delete($0.object(with: world.id)) }
            context.advance()
            edit(item, world.tags)
            try context.save(mergePolicy: .overwrite)
            return try world.stored().first
        }
        let swapped = try stored { item, tags in item.tags.insert(tags[0], at: 1) }
        #expect(swapped == "stored old other+worn")
        let twice = try stored { item, tags in
            item.tags.replaceAll(with: [tags[1], tags[0]])
            item.tags.replaceAll(with: [tags[0], tags[1]])
        }
        #expect(twice == nil)
        let emptied = try stored { item, tags in
            item.tags.remove(tags[0])
            item.tags.append(tags[0])
            item.tags.removeAll()
        }
        #expect(emptied == "stored old ")
        let replaced = try stored { item, tags in
            item.tags.replaceAll(with: [tags[1]])
            item.tags.insert(tags[0], at: 0)
            item.tags.insert(tags[0], at: 1)
        }
        #expect(replaced == "stored old other+worn")
    }
}
