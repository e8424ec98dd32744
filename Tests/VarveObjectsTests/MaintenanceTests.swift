// Compaction, backup, restore, retention and memory as an app reaches them.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct MaintenanceTests {
    private static let picture = Data((0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

    /// Items that are changed again and again, and a picture in a file of its own.
    private static func churn(_ container: PersistentContainer, rounds: Int = 12) throws {
        let ids = try makeItems(400, in: container)
        let context = container.newContext(author: "churn")
        for round in 0..<rounds {
            for id in ids { try context.object(with: id).number += round }
            try context.save()
        }
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(Self.picture, for: Picture.columns.data)
        try context.save()
    }

    /// What a store holds, as texts.
    private static func content(_ container: PersistentContainer) throws -> [String] {
        let context = container.newContext()
        let items = try context.fetch(Item.all.returningFaults(false)).map {
            "\($0.objectID) \($0.title) \($0.number)"
        }
        let pictures = try context.fetch(Picture.all).map { picture in
            "\(picture.objectID) \(try picture.data?.readAll() ?? Data())"
        }
        return items + pictures
    }

    private static func code(_ body: () async throws -> Void) async -> StoreError.Code? {
        do {
            try await body()
            return nil
        } catch let error as StoreError {
            return error.code
        } catch {
            Issue.record("not a StoreError: \(error)")
            return nil
        }
    }

    // MARK: Compaction

    @Test func compactingGivesBytesBackAndTellsHowFarItIs() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(ContainerOptions(compactsAutomatically: false))
        try Self.churn(container)
        let before = try Self.content(container)
        let held = container.newContext()
        let first = try #require(try held.fetch(Item.all).first)
        let steps = Mutex<[MaintenanceProgress]>([])
        let result = try await container.compact { step in steps.withLock { $0.append(step) } }
        #expect(result.bytesAfter < result.bytesBefore / 2)
        #expect(result.newestCommit == container.statistics.newestCommit)
        #expect(result.oldestCommit == result.newestCommit)
        #expect(result.duration > .zero)
        let fractions = steps.withLock { $0.map(\.fractionCompleted) }
        #expect(fractions.last == 1 && fractions == fractions.sorted())
        #expect(container.statistics.compactions == 1)
        // Who held a commit goes on reading it.
        #expect(first.title == "item 0")
        #expect(try Self.content(container) == before)
        try container.closeNow()
        let again = try folder.open()
        #expect(try Self.content(again) == before)
        try again.closeNow()
        #expect(await Self.code { try await again.compact() } == .closed)
    }

    @Test func aCancelledTaskEndsACompaction() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(ContainerOptions(compactsAutomatically: false))
        try Self.churn(container, rounds: 2)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        let task = Task {
            // Cancelled before it begins, or in its first steps.
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            try await container.compact()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(container.statistics.compactions == 0)
        let after = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        #expect(after == before)
        try await container.compact()
        try container.closeNow()
    }

    @Test func retentionDecidesWhatACompactionLeaves() async throws {
        for (retention, left) in [(Retention.newest, UInt64(1)), (.commits(5), 5), (.all, 0)] {
            // How long a test takes is no matter: other tests may keep all threads for minutes.
            let began = Date().addingTimeInterval(-60)
            let folder = try TemporaryFolder()
            let container = try folder.open(
                ContainerOptions(retention: retention, compactsAutomatically: false)
            )
            try Self.churn(container)
            let all = container.statistics.newestCommit.rawValue
            let result = try await container.compact()
            let kept = result.newestCommit.rawValue - result.oldestCommit.rawValue + 1
            #expect(left == 0 ? kept >= all : kept == left, "\(retention)")
            let space = try container.spaceUse()
            #expect(space.oldestCommit == result.oldestCommit)
            let ended = Date().addingTimeInterval(60)
            #expect(began...ended ~= space.oldestCommitDate)
            #expect(space.blobFiles == 1 && space.blobFileBytes == Self.picture.count)
            if retention == .newest { #expect(space.historyBytes == 0) }
            let onDisk = try folder.store.resourceValues(forKeys: [.fileSizeKey]).fileSize
            #expect(space.fileBytes == onDisk)
            try container.closeNow()
        }
        #expect(ContainerOptions().retention == .newest)
        #expect(ContainerOptions().compactsAutomatically)
    }

    // MARK: Backup and restore

    @Test func aBackupIsBroughtUpToDateAndRestored() async throws {
        let folder = try TemporaryFolder()
        let copy = folder.url.appending(path: "copy.varve")
        let container = try folder.open()
        try Self.churn(container, rounds: 2)
        let steps = Mutex<[MaintenanceProgress]>([])
        let full = try await container.backup(to: copy) { step in
            steps.withLock { $0.append(step) }
        }
        #expect(!full.isIncrement && full.blobsCopied == 1)
        let last = try #require(steps.withLock { $0.last })
        #expect(last.completedUnitCount == full.bytesCopied + Self.picture.count)
        #expect(last.fractionCompleted == 1)
        try makeItems(20, in: container)
        let increment = try await container.backup(to: copy)
        #expect(increment.isIncrement && increment.blobsCopied == 0)
        #expect(increment.bytesCopied < full.bytesCopied / 2)
        let saved = try Self.content(container)
        try makeItems(1, in: container)
        // To another place.
        let place = folder.url.appending(path: "elsewhere.varve")
        let result = try await PersistentContainer.restore(from: copy, to: place)
        #expect(result.commit == increment.commit && result.blobsCopied == 1)
        let other = try PersistentContainer.openNow(at: place, schema: TestSchema.self)
        #expect(try Self.content(other) == saved)
        // Over a store: only when that is said, and only when it is closed.
        let restore: @Sendable (Bool) async throws -> Void = { replacing in
            try await PersistentContainer.restore(
                from: copy,
                to: folder.store,
                replacing: replacing
            )
        }
        #expect(await Self.code { try await restore(false) } == .storeExists)
        #expect(await Self.code { try await restore(true) } == .busy)
        try container.closeNow()
        #expect(await Self.code { try await restore(false) } == .storeExists)
        try await restore(true)
        let back = try folder.open()
        #expect(try Self.content(back) == saved)
        // A reader is in the way, too.
        try back.closeNow()
        let reader = try folder.open(ContainerOptions(isReadOnly: true))
        #expect(await Self.code { try await restore(true) } == .busy)
        try reader.closeNow()
        try await restore(true)
        try other.closeNow()
    }

    @Test func aStoreInMemoryBecomesAFile() async throws {
        let folder = try TemporaryFolder()
        let container = try memory()
        try Self.churn(container, rounds: 1)
        let result = try await container.backup(to: folder.store)
        #expect(result.commit == container.statistics.newestCommit)
        let opened = try folder.open()
        #expect(try Self.content(opened) == Self.content(container))
        try opened.closeNow()
    }

    @Test func whatIsNoBackupIsRefused() async throws {
        let folder = try TemporaryFolder()
        let text = folder.url.appending(path: "text.varve")
        try Data("no store".utf8).write(to: text)
        let target = folder.store
        let restore: @Sendable (URL) async throws -> Void = { url in
            try await PersistentContainer.restore(from: url, to: target)
        }
        #expect(await Self.code { try await restore(text) } == .notAStore)
        let missing = folder.url.appending(path: "missing.varve")
        #expect(await Self.code { try await restore(missing) } == .ioFailed)
        let nowhere = URL(filePath: "/")
        #expect(await Self.code { try await restore(nowhere) } == .invalidRequest)
        #expect(!FileManager.default.fileExists(atPath: target.path))
        // A store that went its own way is no backup any more.
        let container = try folder.open()
        try Self.churn(container, rounds: 1)
        let copy = folder.url.appending(path: "copy.varve")
        try await container.backup(to: copy)
        let own = try PersistentContainer.openNow(at: copy, schema: TestSchema.self)
        try makeItems(1, in: own)
        #expect(await Self.code { try await container.backup(to: copy) } == .busy)
        try own.closeNow()
        #expect(await Self.code { try await container.backup(to: copy) } == .invalidRequest)
        try container.closeNow()
        // A damaged one is no store to come back to.
        var bytes = try Data(contentsOf: copy)
        let middle = bytes.count / 2
        for index in middle..<(middle + 4096) { bytes[index] ^= 0x55 }
        try bytes.write(to: copy)
        let damaged = await Self.code {
            try await PersistentContainer.restore(from: copy, to: target, replacing: true)
        }
        #expect(damaged == .damaged)
        try FileManager.default.removeItem(at: copy)
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == 400)
        try again.closeNow()
    }

    // MARK: Memory

    @Test func trimmingGivesBackWhatItSays() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        try makeItems(3_000, in: container)
        try container.closeNow()
        let again = try folder.open()
        let context = again.newContext()
        #expect(try context.fetch(Item.all.returningFaults(false)).count == 3_000)
        #expect(again.statistics.rowCache.rows == 3_000)
        let pages = again.statistics.nodeCacheBytes
        #expect(pages > 100_000)
        again.trimMemory()
        #expect(again.statistics.rowCache.rows == 0)
        #expect(again.statistics.nodeCacheBytes == pages)
        // Without pages every read restores them from the file.
        let restored = again.statistics.pagesRestored
        #expect(try context.fetch(Item.all.returningFaults(false)).count == 3_000)
        #expect(again.statistics.pagesRestored == restored)
        again.trimMemory(.everything)
        #expect(again.statistics.nodeCacheBytes == 0)
        #expect(again.statistics.rowCache.rows == 0)
        #expect(try context.fetch(Item.all.returningFaults(false)).count == 3_000)
        #expect(again.statistics.pagesRestored > restored)
        let statistics = again.statistics
        #if os(Linux) || os(macOS)
        #expect(try #require(statistics.processBytes) > 1 << 20)
        #endif
        #expect(statistics.fileBytes > statistics.liveBytes)
        try again.closeNow()
    }
}
