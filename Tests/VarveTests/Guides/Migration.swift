// The examples of the article Migration.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: migration") struct MigrationGuide {
    enum Before {
        // Shown in ChangingTheSchema: before
        @Entity final class Note: ManagedObject {
            var title: String = ""
            var rank: String = ""
        }

        enum AppSchema: VersionedSchema {
            static let version = 1
            static var entities: [any ManagedObject.Type] { [Note.self] }
        }
        // End.
    }

    enum After {
        // Shown in ChangingTheSchema: after
        @Entity final class Note: ManagedObject {
            #Index<Note>([\.position])
            @Attribute(originalName: "title") var headline: String = ""
            var rank: String = ""
            var position: Int = 0
            var serial: UUID = UUID()
        }

        enum AppSchema: VersionedSchema {
            static let version = 2
            static var entities: [any ManagedObject.Type] { [Note.self] }
        }
        // End.
    }

    enum Staged {
        @Entity final class Note: ManagedObject {
            @Attribute(originalName: "title") var headline: String = ""
            var rank: Int = 0
        }

        enum AppSchema: VersionedSchema {
            static let version = 3
            static var entities: [any ManagedObject.Type] { [Note.self] }
        }

        // Shown in ChangingTheSchema: plan
        enum AppMigrations: MigrationPlan {
            static var stages: [MigrationStage] {
                [
                    .custom(to: AppSchema.self) { migration in
                        try migration.update(Note.self) { old, new in
                            new.rank = Int(try old["rank"] as String) ?? 0
                        }
                    }
                ]
            }
        }
        // End.

        // Shown in ChangingTheSchema: chain
        enum LongPlan: MigrationPlan {
            static var stages: [MigrationStage] {
                [
                    .automatic(to: 2) { schema in
                        schema[entity: "Note"]?[attribute: "color"] = AttributeDescription(
                            name: "color",
                            type: .text,
                            isOptional: true
                        )
                    },
                    .custom(to: AppSchema.self, removing: ["Note.color"]) { migration in
                        try migration.update(Note.self) { old, new in
                            new.rank = Int(try old["rank"] as String) ?? 0
                            if try old["color"] as String? == "red" { new.rank += 1_000 }
                        }
                    },
                ]
            }
        }
        // End.
    }

    enum Last {
        @Entity final class Note: ManagedObject {
            @Attribute(originalName: "title") var headline: String = ""
            var position: Int = 0
            var serial: UUID = UUID()
        }

        enum AppSchema: VersionedSchema {
            static let version = 3
            static var entities: [any ManagedObject.Type] { [Note.self] }
        }
    }

    @Test("A store goes from version to version with its data") func versions() async throws {
        let place = try TemporaryStore()
        let url = place.url
        let old = try await PersistentContainer.open(at: url, schema: Before.AppSchema.self)
        try old.newContext().batchInsert(Before.Note.self, count: 3) { row, number in
            row.title = "note \(number)"
            row.rank = "\(number)"
        }
        try await old.close()
        try await copy(url)
        let tooOld = code {
            _ = try PersistentContainer.openNow(at: url, schema: Before.AppSchema.self)
        }
        let lacking = code {
            _ = try PersistentContainer.openNow(at: url, schema: Last.AppSchema.self)
        }
        #expect(tooOld == .schemaTooNew && lacking == .schemaMismatch)
        try await remove(url)
    }

    private func copy(_ url: URL) async throws {
        typealias AppSchema = After.AppSchema
        typealias Note = After.Note
        let container = try await PersistentContainer.open(at: url, schema: AppSchema.self)
        _ = try await container.performBackgroundTask(author: "migration") { context in
            try context.batchUpdate(Note.where { $0.position == 0 && $0.rank != "" }) { row in
                row.position = Int(row.rank) ?? 0
            }
        }
        let notes = try container.newContext().fetchIDs(Note.where { $0.position > 0 })
        let headlines = try container.newContext().selectDistinct(Note.all) { $0.headline }
        let serials = try container.newContext().selectDistinct(Note.all) { $0.serial }
        #expect(notes.count == 2 && headlines.count == 3 && serials.count == 3)
        try await container.close()
    }

    @Test("A stage converts a type, in one step and in a chain") func stages() async throws {
        for plan in [Staged.AppMigrations.self, Staged.LongPlan.self] as [any MigrationPlan.Type] {
            let place = try TemporaryStore()
            let old = try await PersistentContainer.open(
                at: place.url,
                schema: Before.AppSchema.self
            )
            try old.newContext().batchInsert(Before.Note.self, count: 3) { row, number in
                row.title = "note \(number)"
                row.rank = "\(number)"
            }
            try await old.close()
            try await migrate(place.url, plan)
        }
    }

    private func migrate(_ url: URL, _ plan: any MigrationPlan.Type) async throws {
        typealias AppSchema = Staged.AppSchema
        if plan == Staged.AppMigrations.self {
            typealias AppMigrations = Staged.AppMigrations
            // Shown in ChangingTheSchema: open
            let container = try await PersistentContainer.open(
                at: url,
                schema: AppSchema.self,
                migrations: AppMigrations.self
            )
            // End.
            try await container.close()
        }
        let container = try await PersistentContainer.open(
            at: url,
            schema: AppSchema.self,
            migrations: plan
        )
        let ranks = try container.newContext().select(Staged.Note.all) { $0.rank }
        #expect(ranks.sorted() == [0, 1, 2])
        try await container.close()
    }

    private func remove(_ url: URL) async throws {
        typealias AppSchema = Last.AppSchema
        // Shown in ChangingTheSchema: remove
        let options = ContainerOptions(removing: ["Note.rank"])
        let container = try await PersistentContainer.open(
            at: url,
            schema: AppSchema.self,
            options: options
        )
        // End.
        #expect(try container.newContext().count(Last.Note.all) == 3)
        try await container.close()
    }
}
#endif
