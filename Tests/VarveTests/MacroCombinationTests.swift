// What combinations of the macros' arguments become (MacroCombinations.swift).
#if Macros || GeneratedEntities
import Foundation
import Testing
import Varve

@Suite("Combinations of the macros' arguments") struct MacroCombinationTests {
    @Test("A store takes a schema with all of them, and opens again")
    func aStoreTakesThemAll() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "varve-combinations-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let place = folder.appending(path: "all.varve")
        do {
            let container = try PersistentContainer.openNow(
                at: place,
                schema: CombinationSchema.self
            )
            let context = container.newContext()
            let whole = PublicCombination(in: context)
            whole.kept = 1
            for number in [3, 1, 2] {
                let part = PublicCombination(in: context)
                part.kept = number
                whole.parts.append(part)
            }
            try context.save()
            try container.closeNow()
        }
        let container = try PersistentContainer.openNow(at: place, schema: CombinationSchema.self)
        let context = container.newContext()
        let whole = try #require(
            try context.fetch(PublicCombination.where { $0.parts.count > 0 }).first
        )
        // `ordered: true, deleteRule: .cascade` means both.
        #expect(whole.parts.map(\.kept) == [3, 1, 2])
        context.delete(whole)
        try context.save()
        #expect(try context.count(PublicCombination.all) == 0)
        try container.closeNow()
    }

    @Test("Former names come in their order")
    func formerNames() {
        #expect(PlainEntity.originalEntityNames == [])
        #expect(RenamedEntity.originalEntityNames == ["Older"])
        #expect(TwiceRenamedEntity.originalEntityNames == ["Old", "Oldest"])
    }
}
#endif
