// Undo and redo beside a transaction that throws: its edits are no step.

import Foundation
import Testing

@testable import VarveObjects

@Suite("Undo beside a transaction that throws", .verified) struct ThrownUndoTests {
    private struct Stop: Error {}

    /// An item that is saved, in a context with undo and no steps.
    private func item(in context: ManagedObjectContext) throws -> Item {
        let item = Item(in: context)
        item.title = "saved"
        try context.save()
        context.undoLimit = 5
        return item
    }

    @Test("There is nothing to undo behind it", arguments: ThrownWay.allCases)
    fileprivate func nothing(_ way: ThrownWay) throws {
        let container = try memory()
        let context = container.newContext()
        let item = try item(in: context)
        #expect(throws: Stop.self) { try thrown(way, item, context, container) }
        #expect(item.title == "saved")
        #expect(!context.canUndo)
        try context.undo()
        #expect(item.title == "saved")
        #expect(!context.hasChanges)
        context.rollback()
    }

    @Test("The step before it is undone", arguments: ThrownWay.allCases, [false, true])
    fileprivate func before(_ way: ThrownWay, _ isOpen: Bool) throws {
        let container = try memory()
        let context = container.newContext()
        let item = try item(in: context)
        if isOpen { item.number = 1 } else { context.withUndoGroup { item.number = 1 } }
        #expect(throws: Stop.self) { try thrown(way, item, context, container) }
        #expect(item.number == 1)
        try context.undo()
        #expect(item.title == "saved")
        #expect(item.number == 0)
        #expect(!context.canUndo)
        context.rollback()
    }

    @Test("What was undone can be redone", arguments: ThrownWay.allCases)
    fileprivate func redo(_ way: ThrownWay) throws {
        let container = try memory()
        let context = container.newContext()
        let item = try item(in: context)
        item.number = 1
        try context.undo()
        #expect(throws: Stop.self) { try thrown(way, item, context, container) }
        #expect(context.canRedo)
        try context.redo()
        #expect(item.number == 1)
        #expect(item.title == "saved")
        context.rollback()
    }

    @Test("An edit that was refused before is not forgotten", arguments: [false, true])
    func refused(_ acknowledges: Bool) throws {
        let context = try memory().newContext()
        let item = try item(in: context)
        context.undoLimit = 5
        context.delete(item)
        context.processPendingDeletions()
        item.title = "refused"
        try context.undo()
        #expect(context.refusedEdits.count == 1)
        #expect(throws: Stop.self) {
            try context.transaction {
                context.transaction { context.delete(item) }
                if acknowledges { context.acknowledgeRefusedEdits() }
                throw Stop()
            }
        }
        #expect(context.refusedEdits.count == (acknowledges ? 0 : 1))
        #expect(code { try context.save() } == (acknowledges ? nil : .objectDeleted))
        // Taken out for good by an edit that stays.
        context.transaction { item.title = "proper" }
        #expect(context.refusedEdits.isEmpty && item.title == "proper")
        context.rollback()
    }

    private func thrown(
        _ way: ThrownWay,
        _ item: Item,
        _ context: ManagedObjectContext,
        _ container: PersistentContainer
    ) throws {
        try context.transaction {
            switch way {
            case .plain: item.title = "edited"
            case .group: context.withUndoGroup { item.title = "edited" }
            case .branch:
                let branch = try context.branch()
                try branch.object(with: item.id).title = "edited"
                try branch.mergeIntoParent()
            case .move:
                item.title = "edited"
                try saveElsewhere(container) { Tag(in: $0).name = "x" }
                context.advance()
            }
            throw Stop()
        }
    }
}

/// How the body edits.
private enum ThrownWay: CaseIterable {
    case plain, group, branch, move
}
