// Observers in a run of the object layer's fuzzer: they run in the middle of edits, and read, or
// roll their context back.
//
// Contexts tell observers where the run's options say so; elsewhere nothing here is ever called.

import Observation
import VarveObjects
import VarveTesting

/// What runs, once, just before something that was looked at changes.
final class GraphObserver {
    /// Nil: its time is over. It keeps nothing any more.
    private var body: (() -> Void)?
    private(set) var hasRun = false

    init(_ body: @escaping () -> Void) { self.body = body }

    /// Looks at what `read` reads.
    func watch(_ read: () -> Void) {
        withObservationTracking(read) { [self] in
            guard let body, !hasRun else { return }
            hasRun = true
            body()
        }
    }

    func turnOff() { body = nil }
}
// A run is of one thread, and so are its observers.
extension GraphObserver: @unchecked Sendable {}

extension GraphWorld {
    /// Somebody looks at an object, and reads something else when it changes: that means nothing.
    func look(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let held = editor.held.keys.sorted()
        guard !held.isEmpty,
            let object = editor.held[held[Int(random.next() % UInt64(held.count))]],
            object.context != nil
        else { return }
        let choice = random.next()
        let observer = GraphObserver { [weak self, weak editor] in
            guard let self, let editor else { return }
            read(editor, choice)
        }
        observer.watch { read(object) }
    }

    /// Reads some of what the editor holds: values, lists, and what they lead to.
    private func read(_ editor: GraphEditor, _ choice: UInt64) {
        var random = SeededRandom(seed: choice)
        let held = editor.held.keys.sorted()
        for _ in 0..<3 where !held.isEmpty {
            guard let object = editor.held[held[Int(random.next() % UInt64(held.count))]] else {
                continue
            }
            read(object)
        }
        if random.next() % 4 == 0 { _ = editor.context.hasChanges }
        if random.next() % 4 == 0 { _ = editor.context.updatedObjects.count }
    }

    private func read(_ object: any ManagedObject) {
        let kind: Character = object is Alpha ? "A" : "B"
        values(object)
        for relation in relations.flatMap({ [$0] + [$0.back].compactMap(\.self) })
        where relation.owner == kind {
            if let target = access.ones[relation.name]?.get(object) { values(target) }
            guard relation.isMany, let list = access.lists[relation.name]?(object) else { continue }
            _ = list.count()
            for member in list.objects() { values(member) }
        }
    }

    private func values(_ object: any ManagedObject) {
        if let alpha = object as? Alpha { _ = (alpha.name, alpha.number, alpha.code) }
        if let beta = object as? Beta { _ = (beta.name, beta.number, beta.code) }
    }

    /// Does one edit of a relationship, in a share of runs beside an observer of one of its ends
    /// that rolls the context back in the middle. True: it did, and nothing of the edit stays.
    func interrupting(
        _ editor: GraphEditor,
        _ ends: [(object: any ManagedObject, relation: ModelRelation?)],
        _ edit: () -> Void
    ) -> Bool {
        guard interrupts, let end = ends.randomElement(using: &chance), chance.next() % 3 == 0,
            let relation = end.relation
        else {
            edit()
            return false
        }
        let observer = GraphObserver { [weak editor] in editor?.context.rollback() }
        observer.watch {
            _ = access.ones[relation.name]?.get(end.object)
            _ = access.lists[relation.name]?(end.object).count()
        }
        edit()
        observer.turnOff()
        if observer.hasRun {
            note("   rolled back in the middle")
            editor.forget()
        }
        return observer.hasRun
    }
}
