// What `ContainerOptions.trace` is told of the whole store: checkpoints, compactions, migrations,
// backups.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct StoreTraceTests {
    // MARK: Checkpoints

    @Test func checkpointsAreToldAsTheyAreCounted() throws {
        let disk = SimulatedDisk()
        let log = TraceLog()
        var options = log.options
        options.adjustingEngine = { engine in
            engine.checkpointTailMin = 4 << 10
            engine.checkpointTailMax = 4 << 10
        }
        let container = try PersistentContainer.openNow(
            on: disk,
            schema: TestSchema.self,
            options: options
        )
        for _ in 0..<10 { try makeItems(100, in: container) }
        let counted = Int(container.store.engine.statistics.checkpoints)
        let told = log.checkpoints
        #expect(counted > 0 && told.count == counted)
        #expect(told.allSatisfy { $0.failure == nil && $0.duration > .zero })
        #expect(told.allSatisfy { $0.pages > 0 && $0.bytesWritten > 0 && !$0.isInBackground })
        let commits = told.compactMap(\.commit)
        #expect(commits.count == told.count && commits == commits.sorted())
        #expect(commits.allSatisfy { $0 <= container.statistics.newestCommit })
        // The last one of a store is written when it is closed.
        try makeItems(1, in: container)
        let newest = container.statistics.newestCommit
        try container.closeNow()
        #expect(log.checkpoints.map(\.commit) == [newest])
    }

    @Test(.timeLimit(.minutes(2))) func checkpointsInTheBackgroundAreTold() async throws {
        let folder = try TemporaryFolder()
        let log = TraceLog()
        var options = log.options
        options.adjustingEngine = { engine in
            engine.maintenance = .background
            engine.checkpointTailMin = 4 << 10
            engine.checkpointTailMax = 4 << 10
        }
        let container = try folder.open(options)
        var found: CheckpointTrace?
        while found == nil {
            try makeItems(100, in: container)
            found = log.checkpoints.first { $0.isInBackground }
        }
        let told = try #require(found)
        #expect(told.failure == nil && told.pages > 0 && told.bytesWritten > 0)
        #expect(told.commit != nil && told.duration > .zero)
        try container.closeNow()
    }

    @Test(.damagesStores("the disk refuses to make a checkpoint durable"))
    func aCheckpointThatFailedIsTold() throws {
        let disk = SimulatedDisk()
        let log = TraceLog()
        let container = try PersistentContainer.openNow(
            on: disk,
            schema: TestSchema.self,
            options: log.options
        )
        try makeItems(100, in: container)
        _ = log.take()
        disk.setFault(.init(first: 1, count: .max, code: 5))
        #expect(code { try container.closeNow() } != nil)
        let told = log.checkpoints
        #expect(told.count == 1)
        let failed = try #require(told.first)
        #expect(failed.failure != nil && failed.commit == nil && failed.pages == 0)
    }

    // MARK: Compactions

    @Test func compactionsThatEndEarlyAreTold() async throws {
        let disk = SimulatedDisk()
        let log = TraceLog()
        let container = try PersistentContainer.openNow(
            on: disk,
            schema: TestSchema.self,
            options: log.options
        )
        for _ in 0..<5 { try makeItems(500, in: container) }
        _ = log.take()
        let task = Task {
            try await container.compact { _ in
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        let cancelled = log.compactions
        #expect(cancelled.map(\.failure) == [.cancelled])
        #expect(cancelled.map(\.bytesAfter) == [0])
        disk.setFault(.init(first: 1, count: .max, code: SimulatedDisk.noSpace))
        await #expect(throws: StoreError.self) { try await container.compact() }
        disk.setFault(nil)
        #expect(log.compactions.map(\.failure) == [.store(.diskFull)])
        try container.closeNow()
    }

    // MARK: Migrations

    private enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.convert("Note", "rank") { (rank: String) in Int(rank) ?? -1 }
                }
            ]
        }
    }
    private struct Stop: Error {}
    private enum Failing: MigrationPlan {
        static var stages: [MigrationStage] {
            [.custom(to: After.Schema.self) { _ in throw Stop() }]
        }
    }

    @Test func migrationsAreTold() async throws {
        let folder = try TemporaryFolder()
        let log = TraceLog()
        var options = log.options
        options.retention = .commits(10)
        func open(_ plan: (any MigrationPlan.Type)?) throws {
            try PersistentContainer.openNow(
                at: folder.store,
                schema: After.Schema.self,
                migrations: plan,
                options: options
            ).closeNow()
        }
        // A new store is no migration.
        try makeNotes(40, at: folder.store, options: options)
        #expect(log.migrations.isEmpty)
        #expect(throws: Stop.self) { try open(Failing.self) }
        let failed = try #require(log.migrations.first)
        #expect(failed.fromVersion == 1 && failed.toVersion == 2 && failed.failure == .other)
        #expect(!failed.isRevert && failed.stages == 1)

        try open(Plan.self)
        let told = log.migrations
        #expect(told.count == 1)
        let done = try #require(told.first)
        #expect(done.fromVersion == 1 && done.toVersion == 2 && done.failure == nil)
        #expect(done.stages == 1 && done.rows >= 40 && done.duration > .zero)
        // Nor is an opening of a store that has its schema already.
        try open(Plan.self)
        #expect(log.migrations.isEmpty)

        try await PersistentContainer.revertMigration(at: folder.store, options: options)
        let reverted = try #require(log.migrations.first)
        #expect(reverted.isRevert && reverted.fromVersion == 2 && reverted.toVersion == 1)
        #expect(reverted.failure == nil && reverted.stages == 0 && reverted.rows == 0)
        try FileManager.default.removeItem(at: folder.store)
        await #expect(throws: StoreError.self) {
            try await PersistentContainer.revertMigration(at: folder.store, options: options)
        }
        let missing = try #require(log.migrations.first)
        #expect(missing.isRevert && missing.failure != nil && missing.fromVersion == nil)
    }

    // MARK: Backups

    @Test func backupsAndRestoresAreTold() async throws {
        let folder = try TemporaryFolder()
        let log = TraceLog()
        let container = try folder.open(log.options)
        try makeItems(200, in: container)
        _ = log.take()
        let place = folder.url.appending(path: "copy.varve")
        let first = try await container.backup(to: place)
        try makeItems(1, in: container)
        let second = try await container.backup(to: place)
        let told = log.backups
        #expect(told.map(\.kind) == [.backup, .increment])
        #expect(told.map(\.commit) == [first.commit, second.commit])
        #expect(told.map(\.bytesCopied) == [first.bytesCopied, second.bytesCopied])
        #expect(told.allSatisfy { $0.failure == nil && $0.duration > .zero })
        // Not a place for a backup.
        await #expect(throws: StoreError.self) {
            try await container.backup(to: folder.url.appending(path: "none/copy.varve"))
        }
        let failed = log.backups
        #expect(failed.map(\.failure) == [.store(.missingFolder)])
        #expect(failed.map(\.commit) == [nil])

        let target = folder.url.appending(path: "restored.varve")
        let result = try await PersistentContainer.restore(
            from: place,
            to: target,
            trace: log.handler
        )
        let restored = log.backups
        #expect(restored.map(\.kind) == [.restore])
        #expect(restored.map(\.bytesCopied) == [result.bytesCopied])
        await #expect(throws: StoreError.self) {
            try await PersistentContainer.restore(from: place, to: target, trace: log.handler)
        }
        #expect(log.backups.map(\.failure) == [.store(.storeExists)])
        try container.closeNow()
    }
}
