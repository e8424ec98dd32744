// What is used too late: lists of objects that are gone, values of rows that others deleted, blobs
// that others took out, objects whose context is gone.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackLifetimeTests {
    private func bytes(_ count: Int, _ seed: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) })
    }

    @Test func aListThatWasReadOutlivesTheResetOfItsContext() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        all[0].playlist.append(contentsOf: [all[1], all[2]])
        try context.save()
        let list = all[0].playlist
        #expect(list.count == 2 && list.names == ["b", "c"])
        context.reset()
        #expect(list.count == 2)
        #expect(list[0].name == "" && list.names == ["", ""])
        #expect(!list.contains(all[1]))
        list.append(all[1])
        list.remove(all[1])
        list.removeAll()
        #expect(all[0].playlist.isEmpty && !context.hasChanges)
        #expect(context.readFailures.isEmpty)
        #expect(try context.fetch(Node.all).names == ["a", "b", "c"])
    }

    @Test func aListOfANewObjectOutlivesItsRollback() throws {
        let container = try graph()
        let context = container.newContext()
        let old = try nodes("old", in: context)[0]
        let new = Node(in: context)
        new.children.append(old)
        new.chapters.append(old)
        let (children, chapters) = (new.children, new.chapters)
        #expect(children.count == 1 && chapters.first === old)
        for child in children {
            context.rollback()
            #expect(child === old)
        }
        #expect(children[0] === old && chapters.names == ["old"])
        #expect(new.children.isEmpty && old.parent == nil && old.book == nil)
        #expect(context.readFailures.isEmpty && !context.hasChanges)
    }

    @Test func aListOutlivesItsContext() throws {
        let container = try graph()
        func list() throws -> (Node, ToMany<Node>) {
            let context = container.newContext()
            let all = try nodes("a", "b", in: context)
            all[0].picks.append(all[1])
            try context.save()
            let list = all[0].picks
            #expect(list.names == ["b"])
            all[1].score = 5
            return (all[0], list)
        }
        let (node, kept) = try list()
        #expect(kept.count == 1 && kept[0].name == "" && node.name == "a")
        kept.append(node)
        #expect(node.picks.isEmpty && node.parent == nil)
        node.name = "x"
        node.parent = node
        #expect(node.name == "a" && !node.hasChanges)
    }

    /// Texts too large for a row are found through a snapshot.
    @Test(arguments: [false, true])
    func aLargeTextOfADeletedObjectStays(_ comesBack: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let long = String(repeating: "long ", count: 40_000)
        let node = try nodes("a", in: context)[0]
        node.name = long
        try context.save()
        #expect(node.name == long)
        node.score = 5
        let other = container.newContext()
        other.delete(try other.same([node])[0])
        try other.save()
        context.advance()
        #expect(node.isDeleted && node.name == long)
        if comesBack {
            try context.save(mergePolicy: .objectWinsByProperty)
            let fresh = container.newContext()
            let back = try #require(try fresh.fetch(Node.all).first)
            #expect(back.name == long && back.score == 5)
        } else {
            try context.save(mergePolicy: .storeWinsByProperty)
            #expect(node.name == long)
        }
        #expect(context.readFailures.isEmpty)
    }

    @Test func aLargeTextOutlivesItsContext() throws {
        let container = try graph()
        let long = String(repeating: "long ", count: 40_000)
        func make() throws -> Node {
            let context = container.newContext()
            let node = try nodes(long, in: context)[0]
            #expect(node.name == long)
            node.score = 5
            return node
        }
        let node = try make()
        #expect(node.name == long && node.snapshot().name == long)
    }

    /// The base's blob is no more in the newest commit; the policies put it back.
    @Test(arguments: ["overwrite", "revive", "revive behind an advance"])
    func aBlobThatOthersTookOutComesBackWhole(_ what: String) throws {
        let folder = try TemporaryFolder()
        var container = try folder.open()
        let (first, second) = (bytes(50_000, 1), bytes(50_000, 2))
        func run() throws -> Picture.ID {
            let context = container.newContext()
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(first, for: Picture.columns.data)
            try context.save()
            picture.caption = "mine"
            func others() throws {
                let other = container.newContext()
                let same = try #require(try other.existingObject(with: picture.id))
                if what == "overwrite" {
                    same.data = try other.makeBlob(second, for: Picture.columns.data)
                } else {
                    other.delete(same)
                }
                try other.save()
            }
            try others()
            if what == "revive behind an advance" {
                context.advance()
                // Nobody holds the old commit any more: what only it names may go.
                for number in 0..<4 {
                    let other = container.newContext()
                    let more = Picture(in: other)
                    more.caption = "\(number)"
                    more.data = try other.makeBlob(
                        bytes(2_000, number + 3),
                        for: Picture.columns.data
                    )
                    try other.save()
                }
                container.trimMemory()
            }
            try context.save(mergePolicy: .overwrite)
            return picture.id
        }
        let id = try run()
        try container.closeNow()
        container = try folder.open()
        let fresh = container.newContext()
        let picture = try #require(try fresh.existingObject(with: id))
        #expect(try picture.data?.readAll() == first)
        #expect(picture.caption == "mine")
        try container.closeNow()
    }

    /// A number of another entity's object: nothing is found, and nobody is taken for another.
    @Test func anIDWithAnotherEntityLeadsToNobody() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        item.title = "item"
        let tag = Tag(in: context)
        try context.save()
        func asTag(_ id: Item.ID) throws -> ManagedObjectID {
            var parts = id.objectID.uri.split(separator: "/").map(String.init)
            parts[1] = String(tag.id.objectID.uri.split(separator: "/")[1])
            return try #require(ManagedObjectID(uri: parts.joined(separator: "/")))
        }
        let forged = try asTag(item.id)
        #expect(try context.existingObject(with: forged) == nil)
        let other = container.newContext()
        let wrong = try other.object(with: forged)
        #expect(wrong is Tag && wrong.isFault)
        #expect(try other.existingObject(with: forged) == nil)
        let right = try #require(try other.fetch(Item.all.returningFaults(false)).first)
        #expect(right.title == "item")
        #expect(try other.existingObject(with: item.id)?.title == "item")
        withExtendedLifetime(wrong) {}
    }

    @Test func aBlobThatIsNotAssignedInTheEndIsLetGo() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        try context.save()
        func files() -> Int {
            let all = FileManager.default.enumerator(
                at: folder.url.appending(path: "test.varve-blobs"),
                includingPropertiesForKeys: [.isRegularFileKey]
            )
            return (all?.allObjects ?? []).compactMap { $0 as? URL }.filter {
                (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true
            }.count
        }
        for number in 0..<3 {
            picture.data = try context.makeBlob(bytes(9_000, number), for: Picture.columns.data)
            picture.data = nil
        }
        #expect(!context.hasChanges)
        picture.data = try context.makeBlob(bytes(9_000, 7), for: Picture.columns.data)
        context.refresh(picture, mergeChanges: false)
        #expect(!context.hasChanges)
        // What the context still holds would stay.
        try container.closeNow()
        #expect(files() == 0)
        withExtendedLifetime(context) {}
    }
}
