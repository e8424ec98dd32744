// Two classes of one entity, as an app has that keeps the classes of older versions: the schema
// lists one of them, and the compiler lets the other one pass.

import Foundation
import Testing
import VarveObjects

private final class Leaf: ManagedObject {
    static let entityName = "Leaf"
    struct Columns: Sendable {
        let name = Column<Leaf, String>("name", default: "")
        let tree = ToOneColumn<Leaf, Tree>("tree", inverse: "leaves")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var tree: Tree? {
        get { storedValue(Self.columns.tree, \.tree) }
        set { setStoredValue(newValue, Self.columns.tree, \.tree) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Leaf: Sendable {}

private final class Tree: ManagedObject {
    static let entityName = "Tree"
    struct Columns: Sendable {
        let name = Column<Tree, String>("name", default: "")
        let leaves = ToManyColumn<Tree, Leaf>("leaves")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var leaves: ToMany<Leaf> { storedValue(Self.columns.leaves, \.leaves) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Tree: Sendable {}

/// An older class of the same entity, with more properties.
private final class OldLeaf: ManagedObject {
    static let entityName = "Leaf"
    struct Columns: Sendable {
        let colour = Column<OldLeaf, Int>("colour", default: 0)
        let name = Column<OldLeaf, String>("name", default: "")
        let more = Column<OldLeaf, String>("more", default: "")
        let evenMore = Column<OldLeaf, String>("evenMore", default: "")
        let tree = ToOneColumn<OldLeaf, Tree>("tree")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var evenMore: String {
        get { storedValue(Self.columns.evenMore, \.evenMore) }
        set { setStoredValue(newValue, Self.columns.evenMore, \.evenMore) }
    }
    let own = "the class's own"
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension OldLeaf: Sendable {}

private enum Forest: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Leaf.self, Tree.self] }
}

/// Its tree leads to a class that it does not list.
private enum MixedForest: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [OldLeaf.self, Tree.self] }
}

@Suite(.verified) struct AttackUnlistedTests {
    /// An ID of the other class comes out of a file.
    private func old(_ id: Leaf.ID) throws -> OldLeaf.ID {
        try JSONDecoder().decode(OldLeaf.ID.self, from: JSONEncoder().encode(id))
    }

    @Test func anIDOfTheOtherClassLeadsToNobody() throws {
        let container = try PersistentContainer.inMemory(schema: Forest.self)
        let context = container.newContext()
        let leaf = Leaf(in: context)
        leaf.name = "leaf"
        let second = Leaf(in: context)
        try context.save()
        let id = try old(leaf.id)
        // The object lives here.
        #expect(code { _ = try context.existingObject(with: id) } == .unknownEntity)
        #expect(code { _ = try context.object(with: id) } == .unknownEntity)
        #expect(context.registeredObject(with: id) == nil)
        // It does not.
        let other = container.newContext()
        #expect(code { _ = try other.existingObject(with: id) } == .unknownEntity)
        #expect(code { _ = try other.object(with: id) } == .unknownEntity)
        #expect(container.id("\(id)", of: OldLeaf.self) == nil)
        #expect(code { _ = try other.batchDelete([id]) } == .unknownEntity)
        #expect(code { _ = try other.batchUpdate([id]) { $0.name = "x" } } == .unknownEntity)
        #expect(code { _ = try other.fetch(OldLeaf.all) } == .unknownEntity)
        #expect(code { _ = try other.fetchBatched(OldLeaf.all) } == .unknownEntity)
        #expect(code { _ = try other.count(OldLeaf.where { $0.name == "leaf" }) } == .unknownEntity)
        #expect(
            code { _ = try other.batchInsert(OldLeaf.self, count: 1) { _, _ in } } == .unknownEntity
        )
        let made = OldLeaf(in: other)
        made.name = "x"
        made.evenMore = "y"
        #expect(made.name == "" && made.evenMore == "" && made.own == "the class's own")
        other.delete(made)
        #expect(other.refusedEdits.map(\.error.code) == [.unknownEntity])
        other.acknowledgeRefusedEdits()
        #expect(!other.hasChanges)
        #expect(try other.fetch(Leaf.all).map(\.name) == ["leaf", ""])
        withExtendedLifetime((leaf, second)) {}
    }

    @Test func aRelationshipToTheOtherClassIsAnInvalidSchema() throws {
        #expect(
            code { _ = try PersistentContainer.inMemory(schema: MixedForest.self) }
                == .invalidSchema
        )
    }
}
