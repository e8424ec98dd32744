// What stays in memory behind a long scroll, edits on the way, and stores that are closed and
// opened again: nothing that nobody holds.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackMemoryTests {
    private static let count = 40_000

    /// What is held now, beside the budget of rows that nobody holds.
    private func expectNothingHeld(
        _ container: PersistentContainer,
        _ what: String,
        contexts: Int
    ) {
        let now = container.statistics
        #expect(now.registeredObjects == 0, "\(what)")
        #expect(now.realisedObjects == 0, "\(what)")
        #expect(now.rowCache.pinnedRows == 0 && now.rowCache.pinnedBytes == 0, "\(what)")
        #expect(now.rowCache.readAheadBytes == 0, "\(what)")
        #expect(now.rowCache.bytes <= 1 << 20, "\(what)")
        #expect(now.nodeCacheBytes <= 4 << 20, "\(what)")
        #expect(now.contexts == contexts, "\(what)")
        #expect(now.pins.count <= contexts, "\(what)")
    }

    private func make(_ folder: TemporaryFolder) throws {
        let container = try folder.open()
        let context = container.newContext()
        try context.batchInsert(Item.self, count: Self.count) { row, index in
            row.title = "item \(index) " + String(repeating: "x", count: 50)
            row.number = index
        }
        try container.closeNow()
    }

    /// Goes through a list with edits, saves, merges, refreshes and rollbacks on the way.
    private func scroll(
        _ container: PersistentContainer,
        _ context: ManagedObjectContext,
        _ returnsFaults: Bool,
        _ round: Int
    ) throws -> Int {
        let list = try context.fetchBatched(
            Item.all.sorted { [$0.number.ascending] }.returningFaults(returnsFaults),
            size: 40
        )
        var most = 0
        for index in list.indices {
            let item = list[index]
            if item.number != index { Issue.record("\(item.number) at \(index)") }
            if index % 400 == 0 {
                _ = (item.tags.count, item.folder?.name)
                most = max(most, container.statistics.registeredObjects)
            }
            if index % 5_000 == 1 {
                item.title = "edited \(round)"
                let new = Tag(in: context)
                new.name = "new"
                item.tags.append(new)
                switch index / 5_000 % 4 {
                case 0: try context.save()
                case 1: context.rollback()
                case 2:
                    context.refresh(item, mergeChanges: false)
                    context.delete(new)
                    try context.save()
                default:
                    let other = container.newContext()
                    try #require(try other.existingObject(with: item.id)).priority = .high
                    try other.save()
                    try context.save(mergePolicy: .overwrite)
                }
            }
            if index % 9_000 == 2 { context.advance() }
            if index % 13_000 == 3 { context.refreshAllObjects() }
        }
        return most
    }

    @Test(arguments: [false, true]) func nothingStaysBehindAScroll(_ returnsFaults: Bool) throws {
        let folder = try TemporaryFolder()
        try make(folder)
        var options = ContainerOptions(unreferencedRowBytes: 1 << 20, nodeCacheBytes: 4 << 20)
        options.everyContextObserves = true
        for round in 0..<2 {
            weak var gone: PersistentContainer?
            weak var goneContext: ManagedObjectContext?
            func run() throws {
                let container = try folder.open(options)
                gone = container
                let context = container.newContext()
                goneContext = context
                do {
                    let most = try scroll(container, context, returnsFaults, round)
                    // Two batches, and what the edits hold.
                    #expect(most <= 200, "\(most)")
                    #expect(!context.hasChanges)
                    expectNothingHeld(container, "behind a scroll", contexts: 1)
                }
                let list = try context.fetchBatched(Item.all, size: 40)
                let shown = list[20_000]
                #expect(shown.title != "")
                try container.closeNow()
                // What is on screen can still be read.
                #expect(shown.title != "")
            }
            try run()
            #expect(gone == nil && goneContext == nil)
        }
        let container = try folder.open(options)
        #expect(try container.newContext().count(Item.all) == Self.count)
        try container.closeNow()
        expectNothingHeld(container, "closed", contexts: 0)
    }
}
