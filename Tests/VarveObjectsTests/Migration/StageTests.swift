// Stages with code: types that change, by names and by classes, and what must hold afterwards.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct StageTests {
    private enum ByNames: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.convert("Note", "rank") { (rank: String) in Int(rank) ?? -1 }
                }
            ]
        }
    }

    private enum ByClasses: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.update(After.Note.self) { old, new in
                        new.rank = Int(try old["rank"] as String) ?? -1
                    }
                }
            ]
        }
    }

    private enum Forgetful: MigrationPlan {
        static var stages: [MigrationStage] { [.custom(to: After.Schema.self) { _ in }] }
    }

    private func check(_ url: URL, _ count: Int) throws {
        let container = try PersistentContainer.openNow(at: url, schema: After.Schema.self)
        let context = container.newContext()
        let sorted = After.Note.all.sorted { [$0.rank.ascending] }
        let rows = try context.select(sorted) { ($0.headline, $0.rank, $0.number) }
        #expect(rows.map { $0.1 } == Array(1...count))
        #expect(rows.allSatisfy { $0.0 == "note \($0.2)" && $0.1 == count - $0.2 })
        #expect(try context.selectDistinct(After.Note.all) { $0.serial }.count == count)
        #expect(try context.explain(sorted).contains("index"))
        for note in try context.fetch(After.Note.all.sorted { [$0.number.ascending] }) {
            let number = note.number
            if number % 5 == 0 {
                #expect(try note.picture?.readAll() == pictureBytes(number), "\(number)")
            } else {
                #expect(note.picture == nil)
            }
            #expect(note.tags.count == 2 && note.folder != nil)
        }
        try container.closeNow()
    }

    @Test(arguments: [false, true])
    func `A text becomes a number, and everything else stays`(
        _ isByClasses: Bool
    ) async throws {
        let plan: any MigrationPlan.Type = isByClasses ? ByClasses.self : ByNames.self
        let folder = try TemporaryFolder()
        try makeNotes(1_200, at: folder.store)
        let container = try await PersistentContainer.open(
            at: folder.store,
            schema: After.Schema.self,
            migrations: plan
        )
        #expect(try container.newContext().count(After.Note.all) == 1_200)
        try await container.close()
        try check(folder.store, 1_200)
    }

    @Test func `Without a stage a changed type is refused, and nothing is written`() throws {
        let folder = try TemporaryFolder()
        try makeNotes(10, at: folder.store)
        #expect(
            code {
                _ = try PersistentContainer.openNow(at: folder.store, schema: After.Schema.self)
            } == .schemaMismatch
        )
        #expect(
            code {
                _ = try PersistentContainer.openNow(
                    at: folder.store,
                    schema: After.Schema.self,
                    migrations: Forgetful.self
                )
            } == .migrationFailed
        )
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: Before.Schema.self
        )
        #expect(try container.newContext().count(Before.Note.all) == 10)
        try container.closeNow()
    }
}
