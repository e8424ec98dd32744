// Objects whose end edits others, saves, or empties their context, in the middle of what
// the library does, which often has the last reference.

import Testing
import VarveObjects

/// Does something when it ends.
private final class Mourner: ManagedObject {
    static let entityName = "Mourner"
    struct Columns: Sendable {
        let name = Column<Mourner, String>("name", default: "")
        let key = Column<Mourner, String?>("key")
        let next = ToOneColumn<Mourner, Mourner>("next", inverse: "previous")
        let previous = ToOneColumn<Mourner, Mourner>("previous")
        let parent = ToOneColumn<Mourner, Mourner>("parent", inverse: "children")
        let children = ToManyColumn<Mourner, Mourner>("children", deleteRule: .cascade)
        let list = ToManyColumn<Mourner, Mourner>("list", ordered: true)
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
    var key: String? {
        get { storedValue(Self.columns.key, \.key) }
        set { setStoredValue(newValue, Self.columns.key, \.key) }
    }
    var next: Mourner? {
        get { storedValue(Self.columns.next, \.next) }
        set { setStoredValue(newValue, Self.columns.next, \.next) }
    }
    var previous: Mourner? {
        get { storedValue(Self.columns.previous, \.previous) }
        set { setStoredValue(newValue, Self.columns.previous, \.previous) }
    }
    var parent: Mourner? {
        get { storedValue(Self.columns.parent, \.parent) }
        set { setStoredValue(newValue, Self.columns.parent, \.parent) }
    }
    var children: ToMany<Mourner> { storedValue(Self.columns.children, \.children) }
    var list: ToMany<Mourner> { storedValue(Self.columns.list, \.list) }
    var onDeinit: (() -> Void)?
    deinit { onDeinit?() }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Mourner: Sendable {}

private enum Wake: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Mourner.self] }
}

@Suite(.verified) struct AttackDeinitTests {
    private static let actions = [
        "set", "relate", "append", "arrange", "new", "delete", "save", "rollback", "reset",
        "advance", "refreshAll", "fetch",
    ]
    private static let ways = [
        "let go", "rollback", "reset", "save", "process", "delete", "upsert", "advance",
        "refreshAll",
    ]

    private func describe(_ context: ManagedObjectContext) throws -> [String] {
        try context.fetch(Mourner.all).map { object in
            let next = object.next?.name ?? "-"
            let previous = object.previous?.name ?? "-"
            let parent = object.parent?.name ?? "-"
            return "\(object.name): \(next) \(previous) \(parent) "
                + "\(object.children.map(\.name)) \(object.list.map(\.name))"
        }.sorted()
    }

    /// Returns what a save threw.
    private func act(
        _ what: String,
        _ context: ManagedObjectContext,
        _ all: [Mourner]
    ) -> StoreError.Code? {
        var saved: StoreError.Code?
        switch what {
        case "set": all[1].name += "!"
        case "relate": (all[1].next, all[2].parent) = (all[0], all[1])
        case "append": all[0].list.append(all[2])
        case "arrange": all[0].list.insert(all[3], at: 0)
        case "new":
            let new = Mourner(in: context)
            new.name = "new"
            new.parent = all[0]
        case "delete": context.delete(all[3])
        case "save": saved = code { try context.save(mergePolicy: .objectWinsByProperty) }
        case "rollback": context.rollback()
        case "reset": context.reset()
        case "advance": context.advance()
        case "refreshAll": context.refreshAllObjects()
        default: _ = try? context.fetch(Mourner.all).map(\.name)
        }
        return saved
    }

    /// What a context shows behind it is what it saves; nothing that has left it is edited.
    @Test(arguments: ways) func theEndOfAnObject(_ way: String) throws {
        for action in Self.actions {
            let name = "\(way), \(action)"
            let container = try PersistentContainer.inMemory(schema: Wake.self)
            let context = container.newContext()
            let all = (0..<4).map { number in
                let object = Mourner(in: context)
                object.name = "\(number)"
                return object
            }
            all[0].list.append(contentsOf: [all[1], all[3]])
            all[3].key = "k"
            try context.save()
            var ends = 0
            /// Three that only the context holds: an old one, a changed one, a new one.
            func mourners() throws {
                let three = (0..<3).map { number in
                    let object = Mourner(in: context)
                    object.name = "mourner \(number)"
                    return object
                }
                three[2].parent = three[0]
                try context.save()
                three[1].name += " edited"
                three[1].next = all[2]
                let new = Mourner(in: context)
                var phantoms: [Mourner] = []
                new.name = "mourner 3"
                new.parent = three[0]
                new.list.append(contentsOf: [all[0], three[1]])
                if way == "upsert" { new.key = "k" }
                if way == "process" {
                    // Two that were never there.
                    let second = Mourner(in: context)
                    second.parent = new
                    phantoms = [second]
                    context.delete(new)
                }
                if way == "delete" { context.delete(three[0]) }
                if way == "advance" {
                    let other = container.newContext()
                    other.delete(try #require(try other.existingObject(with: three[1].id)))
                    try other.save()
                }
                for object in three + [new] + phantoms {
                    object.onDeinit = { [weak context] in
                        ends += 1
                        guard let context, ends <= 4 else { return }
                        let found = act(action, context, all)
                        // A save lets go of others, whose end saves as well.
                        #expect(found == nil || found == .reentrantSave, "\(name)")
                    }
                }
            }
            all[2].name = "two"
            try mourners()
            switch way {
            case "let go": break
            case "rollback": context.rollback()
            case "reset": context.reset()
            case "process": context.processPendingChanges()
            case "advance": context.advance()
            case "refreshAll": context.refreshAllObjects()
            default: _ = try context.save(mergePolicy: .objectWinsByProperty)
            }
            #expect(ends > 0, "\(name)")
            let changed =
                context.insertedObjects + context.updatedObjects + context.deletedObjects
            #expect(changed.allSatisfy { $0.context === context }, "\(name)")
            #expect(all.allSatisfy { !$0.hasChanges || $0.context === context }, "\(name)")
            #expect(
                code { try container.closeNow() }
                    == (context.hasChanges ? .unsavedChanges : nil),
                "\(name)"
            )
            // What has left the context cannot be led to.
            if way == "reset" || action == "reset" {
                let codes = context.refusedEdits.map(\.error.code)
                #expect(codes.allSatisfy { $0 == .crossContext }, "\(name)")
                context.acknowledgeRefusedEdits()
            }
            if !context.hasChanges { continue }
            context.processPendingChanges()
            let shown = try describe(context)
            #expect(context.readFailures.isEmpty, "\(name)")
            // Others saved: what is written is the journal, not what is shown.
            let other = container.newContext()
            Mourner(in: other).name = "other"
            try other.save()
            try context.save(mergePolicy: .storeWinsByProperty)
            #expect(!context.hasChanges, "\(name)")
            let others = ["other: - - - [] []"]
            let stored = try describe(container.newContext())
            let isSame = Set(stored) == Set(shown + others) || action == "save"
            #expect(isSame, "\(name): \(shown) \(stored)")
            #expect(try describe(context) == stored, "\(name)")
            for object in context.registeredObjects { (object as? Mourner)?.onDeinit = nil }
        }
    }

    /// Scrolling lets objects go while rows are read; their end touches the same list.
    @Test func theEndOfAnObjectTouchesItsList() throws {
        let container = try PersistentContainer.inMemory(schema: Wake.self)
        let context = container.newContext()
        func make() throws {
            for number in 0..<200 {
                let object = Mourner(in: context)
                object.name = "\(number)"
            }
            try context.save()
        }
        try make()
        for returnsFaults in [false, true] {
            let list = try context.fetchBatched(
                Mourner.all.returningFaults(returnsFaults),
                size: 10
            )
            var ends = 0
            var depth = 0
            func scroll(_ index: Int) {
                let object = list[index]
                #expect(object.name == "\(index)")
                if object.onDeinit != nil { return }
                object.onDeinit = {
                    ends += 1
                    guard depth < 3 else { return }
                    depth += 1
                    defer { depth -= 1 }
                    let place = (index * 7 + ends) % 200
                    #expect(list[place].name == "\(place)")
                    if ends % 50 == 0 { context.refreshAllObjects() }
                    if ends % 70 == 0 { context.reset() }
                }
            }
            for index in 0..<200 { scroll(index) }
            for index in stride(from: 199, to: 0, by: -3) { scroll(index) }
            #expect(ends > 100)
            for object in context.registeredObjects { (object as? Mourner)?.onDeinit = nil }
        }
        #expect(context.readFailures.isEmpty && !context.hasChanges)
    }
}
