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
        if random.next() % 2 == 0 { try watch(contexts[Int(random.next() % 2)], &random) }
        try super.step(number)
        for observer in observers { observer.turnOff() }
        observers = []
    }

    override func end() {
        for observer in observers { observer.turnOff() }
        observers = []
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
            observer.watch {
                _ = (object.isDeleted, object.parent, object.children.count, object.name)
                for relation in relations where relation.owner == "A" {
                    _ = access.ones[relation.name]?.get(object)
                    _ = access.lists[relation.name]?(object).count()
                }
            }
            observers.append(observer)
        }
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
}
