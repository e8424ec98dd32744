// Observers that act: they edit, delete, move on, refresh and roll back in the middle of setters,
// moves, undos and merges.
//
// A world of its own, so that the runs of the other ones stay as they are.

import VarveObjects
import VarveTesting

/// Wrong orders with observers that act.
final class MeddlingWorld: TangleWorld {
    private enum Act: CaseIterable {
        case rollback, reset, refresh, advance, delete, unlink, make, process, edit
    }

    private var observers: [GraphObserver] = []

    override func step(_ number: UInt64) throws {
        var random = SeededRandom(seed: ~number)
        switch random.next() % 8 {
        case 0: return try takeBack(contexts[Int(random.next() % 2)], &random)
        case 1...4: try watch(contexts[Int(random.next() % 2)], &random)
        default: break
        }
        try super.step(number)
        turnOff()
    }

    private func turnOff() {
        for observer in observers { observer.turnOff() }
        observers = []
    }

    override func end() {
        turnOff()
        super.end()
    }

    /// What an observer sets may be deleted by then.
    override func refuses(_ error: StoreError, _ context: ManagedObjectContext) -> Bool {
        guard error.code == .objectDeleted else { return false }
        note("   refused")
        context.acknowledgeRefusedEdits()
        return true
    }

    /// Up to three objects are watched; the first change of each does something.
    private func watch(
        _ context: ManagedObjectContext,
        _ random: inout SeededRandom
    ) throws {
        let alphas = try context.fetch(Alpha.all)
        for _ in 0..<(1 + random.next() % 3) {
            guard let object = alphas.randomElement(using: &random),
                let other = alphas.randomElement(using: &random),
                let act = Act.allCases.randomElement(using: &random)
            else { return }
            let observer = GraphObserver { [weak self] in
                self?.note("   \(act), observing")
                Self.does(act, object, other, context)
            }
            note("\(name(object)) is watched: \(act) with \(name(other))")
            watch(object, observer)
        }
    }

    private func watch(_ object: Alpha, _ observer: GraphObserver) {
        observer.watch {
            _ = (object.isDeleted, object.parent, object.children.count, object.name)
            for relation in relations where relation.owner == "A" {
                _ = access.ones[relation.name]?.get(object)
                _ = access.lists[relation.name]?(object).count()
            }
        }
        observers.append(observer)
    }

    private static func does(
        _ act: Act,
        _ object: Alpha,
        _ other: Alpha,
        _ context: ManagedObjectContext
    ) {
        guard object.context != nil else { return }
        let isThere = other.context != nil && !other.isDeleted
        switch act {
        case .rollback: context.rollback()
        case .reset: context.reset()
        case .refresh: context.refresh(object, mergeChanges: false)
        case .advance: context.advance()
        case .delete: if isThere { context.delete(other) }
        case .unlink: if !object.isDeleted { object.parent = nil }
        case .make:
            let new = Alpha(in: context)
            if isThere { new.parent = other }
        case .process: context.processPendingChanges()
        case .edit: if !object.isDeleted { object.number = 77 }
        }
    }

    // MARK: Taken back

    /// A transaction that throws, or a step that is undone, while observers move the context to
    /// what others save: all is shown as before, but for what these changed.
    private func takeBack(
        _ context: ManagedObjectContext,
        _ random: inout SeededRandom
    ) throws {
        context.advance()
        context.processPendingChanges()
        let before = try ShownGraph(context, access)
        var changed: Set<ManagedObjectID> = []
        let alphas = try context.fetch(Alpha.all)
        for number in 0..<(1 + random.next() % 3) {
            guard let object = alphas.randomElement(using: &random) else { break }
            let seed = random.next()
            let observer = GraphObserver { [weak self] in
                guard let self, let id = try? saveANumber(seed) else { return }
                note("   another one saves a number of \(name(of: id)), advance, observing")
                changed.insert(id)
                context.advance()
            }
            note("\(name(object)) is watched: \(number)")
            watch(object, observer)
        }
        let isUndo = random.next() % 2 == 0
        // An earlier one may be the last step, behind a redo.
        let title = "taken back, line \(script.count)"
        note("in context \(contexts[0] === context ? 0 : 1), to be taken back {")
        struct Stop: Error {}
        var inner = random
        if isUndo {
            try context.withUndoGroup(title) {
                for _ in 0..<4 { try edit(context, &inner) }
                context.processPendingChanges()
            }
        } else {
            do {
                try context.transaction {
                    for _ in 0..<4 { try edit(context, &inner) }
                    context.processPendingChanges()
                    throw Stop()
                }
            } catch is Stop {}
        }
        note("} \(isUndo ? "undo" : "throws")")
        turnOff()
        if isUndo, context.undoActionName == title { try context.undo() }
        context.acknowledgeRefusedEdits()
        func known(_ shown: ShownGraph) -> ShownGraph {
            var shown = shown
            for id in changed { shown.objects[id]?.values[1] = "" }
            return shown
        }
        let (expected, now) = (known(before), known(try ShownGraph(context, access)))
        if expected != now { throw Violation("taken back: \(expected.difference(now))") }
    }

    /// - Returns: whose number it is; nil: there is nothing in the store.
    private func saveANumber(_ seed: UInt64) throws -> ManagedObjectID? {
        var random = SeededRandom(seed: seed)
        let other = container.newContext()
        guard let alpha = try other.fetch(Alpha.all).randomElement(using: &random) else {
            return nil
        }
        alpha.number = 900 + Int(random.next() % 100)
        try other.save()
        return alpha.objectID
    }
}
