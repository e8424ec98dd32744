// A migration looked at before it is done, taken back after it, and met by an older build.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct MigrationRevertTests {
    private enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.update(After.Note.self) { old, new in
                        new.rank = Int(try old["rank"] as String) ?? -1
                        // Every blob goes but one.
                        if try old["number"] as Int != 5 { new.picture = nil }
                    }
                }
            ]
        }
    }

    /// What is in a store of version 1, with the pictures' bytes.
    private func content(_ url: URL) throws -> [String] {
        let container = try PersistentContainer.openNow(
            at: url,
            schema: Before.Schema.self,
            options: keeping()
        )
        let context = container.newContext()
        let rows = try context.select(Before.Note.all) {
            ($0.title, $0.rank, $0.number, $0.picture)
        }
        var lines: [String] = []
        for (title, rank, number, _) in rows { lines.append("\(title) \(rank) \(number)") }
        for id in try context.fetchIDs(Before.Note.all) {
            guard let note = try context.existingObject(with: id) else { continue }
            lines.append("\(try note.picture?.readAll().base64EncodedString() ?? "none")")
            lines.append(note.tags.map(\.name).sorted().joined(separator: ","))
            lines.append(note.folder?.name ?? "none")
        }
        try container.closeNow()
        return lines
    }

    private func keeping() -> ContainerOptions {
        ContainerOptions(retention: .commits(10))
    }

    @Test func `A migration is taken back with rows, links and blobs`() async throws {
        let folder = try TemporaryFolder()
        try makeNotes(400, at: folder.store, options: keeping())
        let before = try content(folder.store)
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self,
            options: keeping()
        )
        try container.closeNow()
        #expect(code { _ = try content(folder.store) } == .schemaTooNew)
        let reverted = try await PersistentContainer.revertMigration(
            at: folder.store,
            options: keeping()
        )
        #expect(reverted.fromVersion == 2 && reverted.toVersion == 1)
        #expect(reverted.discardedCommits == 0)
        #expect(try content(folder.store) == before)
        // It can be written, and migrated again.
        let old = try PersistentContainer.openNow(at: folder.store, schema: Before.Schema.self)
        try old.newContext().batchUpdate(Before.Note.where { $0.number == 3 }) { $0.rank = "7" }
        try old.closeNow()
        let again = try PersistentContainer.openNow(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self
        )
        let ranks = try again.newContext().select(After.Note.where { $0.number == 3 }) { $0.rank }
        #expect(ranks == [7])
        try again.closeNow()
    }

    @Test func `Later commits are told, and go only when that is said`() async throws {
        let folder = try TemporaryFolder()
        try makeNotes(30, at: folder.store, options: keeping())
        let before = try content(folder.store)
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self,
            options: keeping()
        )
        let context = container.newContext()
        try context.batchInsert(After.Note.self, 0..<3) { row, number in row.number = number }
        try context.batchDelete(After.Note.where { $0.number == 9 })
        try container.closeNow()
        await #expect {
            try await PersistentContainer.revertMigration(at: folder.store, options: keeping())
        } throws: { error in
            let error = error as? StoreError
            return error?.code == .revertConflict && error?.message.hasPrefix("2 commits") == true
        }
        let reverted = try await PersistentContainer.revertMigration(
            at: folder.store,
            discardingLaterCommits: true,
            options: keeping()
        )
        #expect(reverted.discardedCommits == 2)
        #expect(try content(folder.store) == before)
    }

    @Test func `A commit that is gone cannot be brought back`() async throws {
        let folder = try TemporaryFolder()
        try makeNotes(30, at: folder.store)
        await #expect {
            try await PersistentContainer.revertMigration(at: folder.store)
        } throws: { ($0 as? StoreError)?.code == .invalidRequest }
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self
        )
        try await container.compact()
        try container.closeNow()
        await #expect {
            try await PersistentContainer.revertMigration(at: folder.store)
        } throws: { ($0 as? StoreError)?.code == .commitExpired }
    }

    @Test func `A dry run tells the steps, and leaves every byte as it was`() async throws {
        let folder = try TemporaryFolder()
        try makeNotes(50, at: folder.store)
        let bytes = try Data(contentsOf: folder.store)
        let preview = try await PersistentContainer.planMigration(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self
        )
        #expect(preview.storedVersion == 1 && preview.version == 2 && preview.problems.isEmpty)
        let stage = try #require(preview.stages.first)
        #expect(preview.stages.count == 1 && stage.isCustom && stage.rows["Note"] == 50)
        let lines = stage.steps.map { "\($0.step) \($0.rowsRead) \($0.rowsWritten)" }
        #expect(
            lines == [
                "Note: rename attribute title -> headline 0 0",
                "Note: convert attribute rank: String -> Int64 50 50",
                "Note: add attribute serial 0 50",
                "Note: build index (rank) 50 0",
                "set version 1 -> 2 0 0",
            ]
        )
        #expect(preview.estimatedDuration > .zero)
        #expect(
            preview.difference.lines == [
                "~ version: 1 -> 2", "~ Note.title -> Note.headline",
                "~ Note.rank: String -> Int64", "+ Note.serial: UUID", "+ index Note (rank)",
            ]
        )
        let without = try await PersistentContainer.planMigration(
            at: folder.store,
            schema: After.Schema.self
        )
        #expect(without.problems.count == 1 && without.problems[0].contains("Note.rank"))
        #expect(try Data(contentsOf: folder.store) == bytes)
        #expect(
            try SchemaDifference(from: Before.Schema.self, to: After.Schema.self).lines
                == preview.difference.lines
        )
    }

    @Test func `An older build is told the difference, and reads what it can`() throws {
        let folder = try TemporaryFolder()
        try makeNotes(20, at: folder.store)
        try PersistentContainer.openNow(at: folder.store, schema: LaterApp.Schema.self).closeNow()
        var found: StoreError?
        do {
            _ = try PersistentContainer.openNow(at: folder.store, schema: Before.Schema.self)
        } catch {
            found = error as? StoreError
        }
        #expect(found?.code == .schemaTooNew)
        #expect(found?.details.map(\.message).contains("+ Folder.color: String?") == true)
        var options = ContainerOptions(isReadOnly: true)
        options.readsNewerSchemas = true
        let reading = try PersistentContainer.openNow(
            at: folder.store,
            schema: Before.Schema.self,
            options: options
        )
        let context = reading.newContext()
        #expect(try context.select(Before.Folder.all) { $0.name }.count == 3)
        #expect(try context.fetch(Before.Note.all).first?.title == "note 0")
        #expect(code { try context.batchDelete(Before.Note.all) } == .readOnly)
        try reading.closeNow()
    }

    @Test func `An older build cannot read what was renamed or has another type`() throws {
        let folder = try TemporaryFolder()
        try makeNotes(20, at: folder.store)
        try PersistentContainer.openNow(
            at: folder.store,
            schema: After.Schema.self,
            migrations: Plan.self
        ).closeNow()
        var options = ContainerOptions(isReadOnly: true)
        options.readsNewerSchemas = true
        var found: StoreError?
        do {
            _ = try PersistentContainer.openNow(
                at: folder.store,
                schema: Before.Schema.self,
                options: options
            )
        } catch {
            found = error as? StoreError
        }
        #expect(found?.code == .schemaTooNew)
        #expect(found?.message.contains("for lack of Note.rank, Note.title") == true)
    }
}
