// The examples of the article Migration.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: migration") struct MigrationGuide {
    enum Before {
        // Shown in Migration: before
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
        // Shown in Migration: after
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
        // Shown in Migration: copy
        let container = try await PersistentContainer.open(at: url, schema: AppSchema.self)
        let result = try await container.performBackgroundTask(author: "migration") { context in
            try context.batchUpdate(Note.where { $0.position == 0 && $0.rank != "" }) { row in
                row.position = Int(row.rank) ?? 0
            }
        }
        print(result.updated)
        // End.
        let notes = try container.newContext().fetchIDs(Note.where { $0.position > 0 })
        let headlines = try container.newContext().selectDistinct(Note.all) { $0.headline }
        let serials = try container.newContext().selectDistinct(Note.all) { $0.serial }
        #expect(notes.count == 2 && headlines.count == 3 && serials.count == 3)
        try await container.close()
    }

    private func remove(_ url: URL) async throws {
        typealias AppSchema = Last.AppSchema
        // Shown in Migration: remove
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
