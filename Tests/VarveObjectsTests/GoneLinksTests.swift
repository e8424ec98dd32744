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
                // Of what is gone, and nobody deleted here, the list is as it was at last.
                if moment == .beforeTheEdit { edit.make(world) }
                if !isHeld { world.item = nil }
                let place = "\(name), \(isHeld ? "held" : "not held")"
                guard world.context.hasChanges else {
                    // An order that is asked for, or a member that goes, of what shows none.
                    #expect(moment == .beforeTheEdit && edit == .remove, "\(place)")
                    continue
                }
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
}
