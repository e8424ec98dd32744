// A store, its contexts, and the plain model of each: one step at a time, each from a number.

import VarveInspection
import VarveObjects
import VarveTesting

/// A context with what the model knows of it.
final class GraphEditor {
    let context: ManagedObjectContext
    /// The commit that the context stands on.
    var base: ModelState
    var commit: Int
    /// Edits of relationships, in the order of the calls, and of attributes: the last ones.
    var edits: [ModelEdit] = []
    var attributes: [Int: ModelAttributes] = [:]
    /// Deleted, before rules ran.
    var marked: [Int] = []
    /// Deleted here, and by others too: nobody misses them.
    var endedByBoth: Set<Int> = []
    /// Objects live as long as somebody looks at them.
    var held: [Int: any ManagedObject] = [:]
    /// Whether a save may do what the model does not say: then its outcome is only checked for
    /// soundness, and the model taken from it.
    var isWild = false
    /// Lists that follow the context.
    var lists: [LiveMirror] = []

    init(_ context: ManagedObjectContext, _ base: ModelState, _ commit: Int) {
        self.context = context
        self.base = base
        self.commit = commit
    }

    /// The edits over a state.
    func applied(to state: ModelState) -> ModelState {
        var state = state
        for edit in edits { state.apply(edit) }
        for (id, given) in attributes where state.isAlive(id) { state.set(id, given.write) }
        return state
    }

    /// What the context shows.
    var shown: ModelState { applied(to: base) }

    func isMarked(_ id: Int) -> Bool { marked.contains(id) }

    /// Whether the steps on the way count, not only the last word about a relationship.
    private var hasHistory = false
    /// Edits before this one stand: a later word takes no place of theirs.
    private var barrier = 0

    /// Adds an edit. A to-one that has its stored value again was never set, as long as nothing
    /// stands on the steps between.
    func append(_ edit: ModelEdit) {
        guard case .relate(let id, let name, let target) = edit,
            let back = ModelRelation.named[name].map(\.back), back?.isMany != false,
            back?.isOrdered != true
        else {
            hasHistory = true
            edits.append(edit)
            barrier = edits.count
            return
        }
        // Only the last word counts.
        if let earlier = edits.lastIndex(where: { other in
            if case .relate(id, name, _) = other { return true }
            return false
        }), earlier >= barrier {
            edits.remove(at: earlier)
        }
        if !hasHistory, shown.objects[id]?.isNew == false, base.objects[id]?.ones[name] == target {
            removeEdits { $0.subject.map { $0 == (id, name) } ?? false }
            hasHistory = false
            return
        }
        edits.append(edit)
    }

    func removeEdits(_ isOut: (ModelEdit) -> Bool) {
        edits.removeAll(where: isOut)
        hasHistory = true
        barrier = edits.count
    }

    func replaceEdits(_ change: (ModelEdit) -> ModelEdit?) {
        edits = edits.compactMap(change)
        hasHistory = true
        barrier = edits.count
    }

    func process() {
        if marked.isEmpty { return simplify() }
        let before = Set(shown.objects.filter(\.value.isDead).keys)
        for id in marked { append(.delete(id)) }
        marked = []
        let dead = shown.objects.filter { $0.value.isDead && !before.contains($0.key) }
        // New objects that are deleted were never there.
        let gone = Set(dead.filter(\.value.isNew).keys)
        if !gone.isEmpty {
            // What their cascades reached is deleted for itself.
            let reached = shown.objects.filter { _, object in
                object.isDead && !object.isNew && object.killer.map(gone.contains) == true
            }
            edits = edits.compactMap { $0.without(gone) }
            hasHistory = true
            edits += reached.keys.sorted().map { .delete($0) }
            barrier = edits.count
        }
        for id in dead.keys { attributes[id] = nil }
        simplify()
    }

    /// Edits that came to nothing are none.
    func simplify() {
        guard attributes.isEmpty, marked.isEmpty else { return }
        if edits.isEmpty { return forget() }
        let shown = shown
        if shown.sameAs(base), shown.lost.isEmpty, shown.homeless.isEmpty { forget() }
    }

    func forget() {
        edits = []
        attributes = [:]
        marked = []
        isWild = false
        endedByBoth = []
        hasHistory = false
        barrier = 0
    }

    var hasEdits: Bool { !edits.isEmpty || !attributes.isEmpty || !marked.isEmpty }
}

/// Attributes that an app set.
struct ModelAttributes {
    var name: String?
    var number: Int?
    var code: String??

    func write(_ object: inout ModelState.Object) {
        if let name { object.name = Array(name.utf8) }
        if let number { object.number = number }
        if let code { object.code = code }
    }

    var isEmpty: Bool { name == nil && number == nil && code == nil }
}

/// One run.
class GraphWorld: FuzzedWorld {
    /// What a run chooses its relationships from.
    class var pool: [ModelRelation] { ModelRelation.all }

    let access = GraphAccess()
    let disk = SimulatedDisk()
    let options: ContainerOptions
    var container: PersistentContainer
    var editors: [GraphEditor] = []
    var newest = ModelState()
    /// The commit before it.
    var previous = ModelState()
    var commit = 0
    /// The commit that last changed a row, and those of rows that are gone.
    var versions: [Int: Int] = [:]
    var ids: [ManagedObjectID] = []
    var numbers: [ManagedObjectID: Int] = [:]
    /// The relationships of this run.
    let relations: [ModelRelation]
    /// How often of 16 times everything is compared behind an edit.
    let density: Int
    let codes: Int
    let verifies: Bool
    /// Whether somebody looks at objects, and whether edits of relationships are rolled back in the
    /// middle.
    let looks: Bool
    /// Decides which live lists the contexts have: the run's own choices stay as they are.
    let listSeed: UInt64
    let interrupts: Bool
    /// Chance beside the steps' own: runs without observers stay as they are.
    var chance = SeededRandom(seed: 0)
    var script: [String] = []
    /// Whether the model does not know any more what is stored.
    var isOver = false

    required init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        var random = SeededRandom(seed: setup)
        self.options = options
        looks = observes
        listSeed = ~setup
        interrupts = observes && setup % 2 == 0
        density = [0, 1, 4, 16][Int(random.next() % 4)]
        codes = [0, 3, 40][Int(random.next() % 3)]
        verifies = random.next() % 4 == 0
        // Few relationships meet each other more often than many.
        let kinds = 1 + Int(random.next() % 6)
        relations = Array(Self.pool.shuffled(using: &random).prefix(kinds))
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        let count = 1 + Int(random.next() % 3)
        for _ in 0..<count { try addEditor() }
        note("uses \(relations.map(\.name).joined(separator: " ")), \(count) contexts")
        if observes { note(interrupts ? "with observers that roll back" : "with observers") }
    }

    func step(_ number: UInt64) throws { try doStep(number) }

    func end() {
        editors = []
        try? container.closeNow(discardingEdits: true)
    }

    /// A context that stands on the newest commit.
    func addEditor() throws {
        let editor = GraphEditor(container.newContext(), newest, commit)
        _ = try editor.context.count(Alpha.all)
        try addLists(editor)
        editors.append(editor)
    }

    func note(_ line: @autoclosure () -> String) { script.append(line()) }

    func fail(_ what: String) -> Violation { Violation(what) }

    func number(_ id: ManagedObjectID) -> Int {
        if let known = numbers[id] { return known }
        numbers[id] = ids.count
        ids.append(id)
        return ids.count - 1
    }

    func object(_ id: Int, _ editor: GraphEditor) throws -> any ManagedObject {
        guard let object = try editor.context.existingObject(with: ids[id]) else {
            throw fail("\(name(id)) is not there")
        }
        editor.held[id] = object
        return object
    }

    func name(_ id: Int) -> String { "#\(id)" }
    func index(_ editor: GraphEditor) -> Int { editors.firstIndex { $0 === editor } ?? -1 }
}
