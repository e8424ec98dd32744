// An entity whose hooks run what a test wants, and a context to try them in.

import Foundation
import Testing
import VarveObjects

/// Runs what a test wants in the hooks of this thread.
final class HookScript {
    var awakeFromInsert: ((Hooked) -> Void)?
    var awakeFromFetch: ((Hooked) -> Void)?
    var didTurnIntoFault: ((Hooked) -> Void)?
    var willSave: ((Hooked) -> Void)?
    var validate: ((Hooked) -> Void)?
    var didSave: ((Hooked) -> Void)?
    var prepareForDeletion: ((Hooked) -> Void)?

    static var current: HookScript? {
        get { Thread.current.threadDictionary["HookScript"] as? HookScript }
        set { Thread.current.threadDictionary["HookScript"] = newValue }
    }
}

final class Hooked: ManagedObject {
    static let entityName = "Hooked"
    struct Columns: Sendable {
        let name = Column<Hooked, String>("name", default: "made")
        let edits = Column<Hooked, Int>("edits", default: 0)
        let parent = ToOneColumn<Hooked, Hooked>("parent", inverse: "children")
        let children = ToManyColumn<Hooked, Hooked>("children", deleteRule: .cascade)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var edits: Int {
        get { storedValue(Self.columns.edits, \.edits) }
        set { setStoredValue(newValue, Self.columns.edits, \.edits) }
    }
    var parent: Hooked? {
        get { storedValue(Self.columns.parent, \.parent) }
        set { setStoredValue(newValue, Self.columns.parent, \.parent) }
    }
    var children: ToMany<Hooked> { storedValue(Self.columns.children, \.children) }

    func awakeFromInsert() { HookScript.current?.awakeFromInsert?(self) }
    func awakeFromFetch() { HookScript.current?.awakeFromFetch?(self) }
    func didTurnIntoFault() { HookScript.current?.didTurnIntoFault?(self) }
    func willSave() { HookScript.current?.willSave?(self) }
    func validate(_ report: inout ValidationReport) { HookScript.current?.validate?(self) }
    func didSave() { HookScript.current?.didSave?(self) }
    func prepareForDeletion() { HookScript.current?.prepareForDeletion?(self) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Hooked: Sendable {}

enum HookSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Hooked.self] }
}

extension HookTests {
    struct Scene {
        let container: PersistentContainer
        let context: ManagedObjectContext
        let script: HookScript

        /// Names of a fresh context, sorted.
        func stored() throws -> [String] {
            let context = container.newContext()
            return try context.fetch(Hooked.all).map(\.name).sorted()
        }

        func saved(_ names: String...) throws -> [Hooked] {
            let objects = names.map { name in
                let object = Hooked(in: context)
                object.name = name
                return object
            }
            try context.save()
            return objects
        }
    }

    func scene(_ body: (Scene) throws -> Void) throws {
        let container = try PersistentContainer.inMemory(schema: HookSchema.self)
        let script = HookScript()
        HookScript.current = script
        defer { HookScript.current = nil }
        try body(Scene(container: container, context: container.newContext(), script: script))
    }
}
