// What must hold when a stage has run, what its code is told, and how a migration is ended.

import Foundation
import Synchronization
import Testing
import VarveEngine
import VarveRecords

@testable import VarveObjects

@Suite(.verified) struct StageRuleTests {
    private static func text(_ name: String, isOptional: Bool = false) -> AttributeDescription {
        AttributeDescription(
            name: name,
            type: .text,
            isOptional: isOptional,
            defaultValue: isOptional ? .null : .text("")
        )
    }

    /// Rows with a name and a list of parts, which forbid that their owner is deleted.
    private static let first = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "Box",
                attributes: [text("name"), text("size", isOptional: true)],
                relationships: [
                    RelationshipDescription(
                        name: "parts",
                        target: "Part",
                        inverse: "box",
                        isToMany: true,
                        deleteRule: .deny
                    )
                ]
            ),
            EntityDescription(
                name: "Part",
                attributes: [text("name")],
                relationships: [
                    RelationshipDescription(name: "box", target: "Box", inverse: "parts")
                ]
            ),
        ]
    )

    private func open(
        _ folder: TemporaryFolder,
        _ schema: SchemaDescription,
        _ stages: [MigrationStage] = [],
        _ options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try PersistentContainer.openNow(
            PersistentContainer.location(of: folder.store),
            place: folder.store.path,
            description: schema,
            stages: stages,
            options: options
        )
    }

    /// Ten boxes, the even ones with a part and a size.
    private func fill(_ folder: TemporaryFolder) throws {
        let empty = SchemaDescription(version: 0, entities: [])
        try open(folder, empty).closeNow()
        let stage = MigrationStage.custom(to: Self.first) { migration in
            for number in 0..<10 {
                let box = try migration.insert("Box") { new in
                    try new.set("name", to: "box \(number)")
                    if number % 2 == 0 { try new.set("size", to: "\(number)") }
                }
                if number % 2 == 1 { continue }
                try migration.insert("Part") { new in
                    try new.set("name", to: "part \(number)")
                    try new.set("box", to: box)
                }
            }
        }
        try open(folder, Self.first, [stage]).closeNow()
    }

    private func changed(_ change: (inout SchemaDescription) -> Void) -> SchemaDescription {
        var schema = Self.first
        schema.version = 2
        change(&schema)
        return schema
    }

    /// Fails, and the store opens with the schema of before and all its rows.
    private func failure(
        _ schema: SchemaDescription,
        removing: Set<String> = [],
        _ body: @escaping @Sendable (Migration) throws -> Void
    ) throws -> StoreError {
        let folder = try TemporaryFolder()
        try fill(folder)
        var found: StoreError?
        do {
            let stage = MigrationStage.custom(to: schema, removing: removing, body)
            try open(folder, schema, [stage]).closeNow()
        } catch {
            found = error as? StoreError
        }
        let container = try open(folder, Self.first)
        let snapshot = try container.store.snapshot()
        let box = try #require(snapshot.schema.entity(named: "Box"))
        #expect(try snapshot.count(RecordQuery(entity: box.id)) == 10)
        #expect(snapshot.number.rawValue == 2)
        try container.closeNow()
        return try #require(found)
    }

    @Test func `A constraint that the stage breaks fails with every group of duplicates`() throws {
        let schema = changed { schema in
            schema[entity: "Box"]?.uniqueConstraints = [UniqueConstraintDescription(["name"])]
        }
        let error = try failure(schema) { migration in
            try migration.convert("Box", "name") { (name: String) in
                String(name.dropLast()) + (name.last == "0" || name.last == "1" ? "x" : "y")
            }
        }
        #expect(error.code == .notUnique && error.details.count == 2)
    }

    @Test func `A required value that the stage leaves out fails with the objects`() throws {
        let schema = changed { schema in
            schema[entity: "Box"]?[attribute: "weight"] = AttributeDescription(
                name: "weight",
                type: .int64
            )
        }
        let error = try failure(schema) { migration in
            try migration.update("Box") { old, new in
                if try old["size"] as String? != nil { try new.set("weight", to: 1) }
            }
        }
        #expect(error.code == .migrationFailed && error.details.count == 1)
        #expect(error.message.contains("Box.weight must have a value"))
    }

    @Test func `A deletion that deny forbids fails, one of all parts does not`() throws {
        let schema = changed { _ in }
        let error = try failure(schema) { migration in
            try migration.forEach("Box") { old in try migration.delete(old.id) }
        }
        #expect(error.code == .migrationFailed && error.details.count == 5)
        let folder = try TemporaryFolder()
        try fill(folder)
        let stage = MigrationStage.custom(to: schema) { migration in
            try migration.forEach("Part") { old in try migration.delete(old.id) }
            try migration.forEach("Box") { old in
                if try old["size"] as String? != nil { try migration.delete(old.id) }
            }
        }
        let container = try open(folder, schema, [stage])
        let snapshot = try container.store.snapshot()
        let counts = try snapshot.schema.entities.map {
            try snapshot.count(RecordQuery(entity: $0.id))
        }
        #expect(counts == [5, 0])
        try container.closeNow()
    }

    @Test func `A reference to nobody fails`() throws {
        let schema = changed { schema in schema[entity: "Box"] = schema[entity: "Box"] }
        let error = try failure(schema) { migration in
            var gone: ManagedObjectID?
            try migration.forEach("Part") { old in gone = old.id }
            guard let part = gone else { return }
            // The number of a part is no number of a box.
            let fake = migration.identity(
                try #require(migration.change.new.entity(named: "Box")).id,
                part.object
            )
            try migration.update("Part") { _, new in try new.set("box", to: fake) }
        }
        #expect(error.code == .migrationFailed)
        #expect(error.message.contains("Part.box leads to a Box that is not there"))
    }

    @Test func `What goes has to be named, and a changed type to be read`() throws {
        let lacking = changed { schema in schema[entity: "Box"]?[attribute: "size"] = nil }
        let unnamed = try failure(lacking) { _ in }
        #expect(unnamed.code == .migrationFailed && unnamed.message.contains("Box.size"))
        let retyped = changed { schema in
            schema[entity: "Box"]?[attribute: "size"] = AttributeDescription(
                name: "size",
                type: .int64,
                isOptional: true
            )
        }
        let unread = try failure(retyped) { migration in
            try migration.forEach("Box") { old in _ = try old["name"] as String }
        }
        #expect(unread.message.contains("the stage did not read it"))
    }

    @Test func `Wrong names and types are told with what is there`() throws {
        func told(
            _ body: @escaping @Sendable (borrowing OldRow, inout NewRow) throws -> Void
        ) throws -> StoreError {
            try failure(changed { _ in }) { migration in try migration.update("Box", body) }
        }
        let name = try told { old, _ in _ = try old["nmae"] as String }
        #expect(name.code == .unknownAttribute && name.place.entity == "Box")
        #expect(name.suggestion?.contains("name, size, parts") == true)
        let type = try told { old, _ in _ = try old["name"] as Int }
        #expect(type.code == .invalid && type.suggestion?.contains("as String") == true)
        let missing = try told { old, _ in _ = try old["size"] as String }
        #expect(missing.code == .missingValue && missing.suggestion?.contains("String?") == true)
        let written = try told { _, new in try new.set("name", to: 5) }
        #expect(written.code == .invalid && written.message.contains("was set to a Int"))
        let empty = try told { _, new in try new.setNil("name") }
        #expect(empty.code == .missingValue)
        let list = try told { _, new in try new.set("parts", to: [ManagedObjectID]()) }
        #expect(list.code == .invalid && list.suggestion?.contains("to-one") == true)
        let entity = try failure(changed { _ in }) { migration in
            try migration.forEach("Bax") { _ in }
        }
        #expect(entity.code == .unknownEntity && entity.suggestion?.contains("Box, Part") == true)
    }

    private struct Own: Error {}

    @Test func `Errors of the stage's code pass through, and progress is told`() throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        let schema = changed { _ in }
        let stage = MigrationStage.custom(to: schema) { migration in
            try migration.forEach("Box") { _ in throw Own() }
        }
        #expect(throws: Own.self) { try open(folder, schema, [stage]).closeNow() }
        let told = Shared<[MigrationProgress]>([])
        var options = ContainerOptions()
        options.onMigrationProgress = { progress in told.withLock { $0.append(progress) } }
        let works = MigrationStage.custom(to: schema) { migration in
            try migration.forEach("Box") { _ in }
        }
        try open(folder, schema, [works], options).closeNow()
        let rows = told.withLock { $0 }.filter { $0.step == "Box: rows" }
        #expect(rows.map(\.rowsDone) == [0, 10] && rows.allSatisfy { $0.rowsTotal == 10 })
        #expect(rows.allSatisfy { $0.stage == 1 && $0.stages == 1 && $0.version == 2 })
    }

    @Test func `A cancelled opening leaves the old schema`() async throws {
        let folder = try TemporaryFolder()
        try makeNotes(2_000, at: folder.store)
        let (began, cancelled) = (Shared(false), Shared(false))
        var options = ContainerOptions()
        options.onMigrationProgress = { progress in
            // The task is cancelled between two chunks of rows.
            if progress.rowsDone > 0, !began.withLock({ $0 }) {
                began.withLock { $0 = true }
                while !cancelled.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.001) }
            }
        }
        let opening = Task { [options] in
            _ = try await PersistentContainer.open(
                at: folder.store,
                schema: After.Schema.self,
                migrations: Slow.self,
                options: options
            )
        }
        while !began.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
        opening.cancel()
        cancelled.withLock { $0 = true }
        await #expect(throws: CancellationError.self) { try await opening.value }
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: Before.Schema.self
        )
        #expect(try container.newContext().count(Before.Note.all) == 2_000)
        try container.closeNow()
    }

    private enum Slow: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.convert("Note", "rank") { (rank: String) in Int(rank) ?? -1 }
                }
            ]
        }
    }

    @Test func `Stages in a wrong order are refused`() throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        var third = changed { _ in }
        third.version = 3
        let second = changed { _ in }
        let stages = [MigrationStage.automatic(to: third), .automatic(to: second)]
        #expect(code { try open(folder, third, stages).closeNow() } == .invalidSchema)
        #expect(
            code { try open(folder, second, [.automatic(to: third)]).closeNow() } == .invalidSchema
        )
    }
}
