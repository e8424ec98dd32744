// One entity with every kind of relationship, and what must hold between its objects.

import Observation
import Testing
import VarveObjects

final class Node: ManagedObject {
    static let entityName = "Node"
    struct Columns: Sendable {
        let name = Column<Node, String>("name", default: "")
        let score = Column<Node, Double>("score", default: 0)
        let key = Column<Node, String?>("key")
        let parent = ToOneColumn<Node, Node>("parent", inverse: "children")
        let children = ToManyColumn<Node, Node>("children", deleteRule: .cascade)
        let next = ToOneColumn<Node, Node>("next", inverse: "previous")
        let previous = ToOneColumn<Node, Node>("previous")
        let loose = ToOneColumn<Node, Node>("loose")
        let stale = ToOneColumn<Node, Node>("stale", deleteRule: .noAction)
        let picks = ToManyColumn<Node, Node>("picks")
        let playlist = ToManyColumn<Node, Node>("playlist", ordered: true)
        let left = ToManyColumn<Node, Node>("left", inverse: "right", ordered: true)
        let right = ToManyColumn<Node, Node>("right", ordered: true)
        let book = ToOneColumn<Node, Node>("book", inverse: "chapters")
        let chapters = ToManyColumn<Node, Node>("chapters", ordered: true)
        let guardian = ToOneColumn<Node, Node>("guardian", inverse: "guarded")
        let guarded = ToManyColumn<Node, Node>("guarded", deleteRule: .deny)
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.key, onConflict: .upsert)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var score: Double {
        get { storedValue(Self.columns.score, \.score) }
        set { setStoredValue(newValue, Self.columns.score, \.score) }
    }
    var key: String? {
        get { storedValue(Self.columns.key, \.key) }
        set { setStoredValue(newValue, Self.columns.key, \.key) }
    }
    var parent: Node? {
        get { storedValue(Self.columns.parent, \.parent) }
        set { setStoredValue(newValue, Self.columns.parent, \.parent) }
    }
    var children: ToMany<Node> { storedValue(Self.columns.children, \.children) }
    var next: Node? {
        get { storedValue(Self.columns.next, \.next) }
        set { setStoredValue(newValue, Self.columns.next, \.next) }
    }
    var previous: Node? {
        get { storedValue(Self.columns.previous, \.previous) }
        set { setStoredValue(newValue, Self.columns.previous, \.previous) }
    }
    var loose: Node? {
        get { storedValue(Self.columns.loose, \.loose) }
        set { setStoredValue(newValue, Self.columns.loose, \.loose) }
    }
    var stale: Node? {
        get { storedValue(Self.columns.stale, \.stale) }
        set { setStoredValue(newValue, Self.columns.stale, \.stale) }
    }
    var picks: ToMany<Node> { storedValue(Self.columns.picks, \.picks) }
    var playlist: ToMany<Node> { storedValue(Self.columns.playlist, \.playlist) }
    var left: ToMany<Node> { storedValue(Self.columns.left, \.left) }
    var right: ToMany<Node> { storedValue(Self.columns.right, \.right) }
    var book: Node? {
        get { storedValue(Self.columns.book, \.book) }
        set { setStoredValue(newValue, Self.columns.book, \.book) }
    }
    var chapters: ToMany<Node> { storedValue(Self.columns.chapters, \.chapters) }
    var guardian: Node? {
        get { storedValue(Self.columns.guardian, \.guardian) }
        set { setStoredValue(newValue, Self.columns.guardian, \.guardian) }
    }
    var guarded: ToMany<Node> { storedValue(Self.columns.guarded, \.guarded) }

    /// What a test wants to happen in a hook of this object.
    var onWillSave: (() -> Void)?
    var onDidSave: (() -> Void)?
    var onPrepareForDeletion: (() -> Void)?
    var onValidate: (() -> Void)?
    /// What `validate` says against the name.
    var complaint: String?
    func willSave() { onWillSave?() }
    func didSave() { onDidSave?() }
    func prepareForDeletion() { onPrepareForDeletion?() }
    func validate(_ report: inout ValidationReport) {
        onValidate?()
        if let complaint { report.fail("name", complaint) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Node: Sendable {}

enum GraphSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Node.self] }
}

func graph() throws -> PersistentContainer {
    try PersistentContainer.inMemory(schema: GraphSchema.self)
}

/// New nodes with names, saved.
func nodes(_ names: String..., in context: ManagedObjectContext) throws -> [Node] {
    let nodes = names.map { name in
        let node = Node(in: context)
        node.name = name
        return node
    }
    try context.save()
    return nodes
}

/// A root with a list below it, and a job below that, saved.
func family(_ context: ManagedObjectContext) throws -> (root: Node, list: Node, job: Node) {
    let all = try nodes("root", "list", "job", in: context)
    all[1].parent = all[0]
    all[2].parent = all[1]
    try context.save()
    return (all[0], all[1], all[2])
}

/// Another context of the newest commit edits and saves.
func saveElsewhere(
    _ container: PersistentContainer,
    _ body: (ManagedObjectContext) throws -> Void = { _ = Node(in: $0) }
) throws {
    let other = container.newContext()
    try body(other)
    try other.save()
}

/// What is stored, which must be sound: "name<name of the parent", in order.
func storedFamilies(_ container: PersistentContainer) throws -> [String] {
    let fresh = container.newContext()
    try expectSound(fresh)
    return try fresh.fetch(Node.all).map { "\($0.name)<\($0.parent?.name ?? "")" }.sorted()
}

/// Runs `body`, once, just before what `read` reads changes.
@MainActor func beforeChange(
    of read: () -> Void,
    _ body: @escaping @MainActor () throws -> Void
) {
    let isDone = Shared(false)
    withObservationTracking(read) {
        let isFirst = isDone.withLock { value in
            defer { value = true }
            return !value
        }
        guard isFirst else { return }
        MainActor.assumeIsolated {
            do { try body() } catch { Issue.record(error) }
        }
    }
}

extension Collection where Element == Node {
    var names: [String] { map(\.name) }
}

extension ManagedObjectContext {
    /// The same objects in this context.
    func same(_ nodes: [Node]) throws -> [Node] {
        try nodes.map { try #require(try existingObject(with: $0.id)) }
    }

    func named(_ name: String) throws -> Node? { try fetch(Node.where { $0.name == name }).first }
}

/// What a fresh context reads, by name.
func storedNames(_ container: PersistentContainer) throws -> [String] {
    let context = container.newContext()
    return try context.fetch(Node.all).names
}

/// Both sides of every relationship agree, and none leads to what is not there: as a context shows
/// it; a fresh one shows what is stored.
func expectSound(
    _ context: ManagedObjectContext,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let all = try context.fetch(Node.all)
    let ids = Set(all.map(\.id))
    func expect(_ holds: Bool, _ node: Node, _ what: String) {
        #expect(holds, "\(node.id) \(node.name): \(what)", sourceLocation: sourceLocation)
    }
    for node in all {
        for (target, what) in [
            (node.parent, "parent"), (node.next, "next"), (node.previous, "previous"),
            (node.loose, "loose"), (node.stale, "stale"), (node.book, "book"),
            (node.guardian, "guardian"),
        ] {
            if let target { expect(ids.contains(target.id), node, "\(what) leads to nothing") }
        }
        if let next = node.next {
            expect(next.previous === node, node, "next has another previous")
        }
        if let previous = node.previous {
            expect(previous.next === node, node, "previous has another next")
        }
        if let parent = node.parent { expect(parent.children.contains(node), node, "parent") }
        if let book = node.book {
            expect(book.chapters.filter { $0 === node }.count == 1, node, "book")
        }
        if let guardian = node.guardian {
            expect(guardian.guarded.contains(node), node, "guardian")
        }
        for (list, what) in [
            (node.children, "children"), (node.picks, "picks"), (node.playlist, "playlist"),
            (node.left, "left"), (node.right, "right"), (node.chapters, "chapters"),
            (node.guarded, "guarded"),
        ] {
            expect(list.count == list.ids.count, node, "\(what): count")
            expect(Set(list.ids).count == list.ids.count, node, "\(what): twice")
            expect(list.ids.allSatisfy(ids.contains), node, "\(what) leads to nothing")
            expect(list.allSatisfy { list.contains($0) }, node, "\(what): contains")
        }
        expect(node.children.allSatisfy { $0.parent === node }, node, "children")
        expect(node.chapters.allSatisfy { $0.book === node }, node, "chapters")
        expect(node.guarded.allSatisfy { $0.guardian === node }, node, "guarded")
        expect(node.left.allSatisfy { $0.right.contains(node) }, node, "left")
        expect(node.right.allSatisfy { $0.left.contains(node) }, node, "right")
    }
}
