// Restoring backups: what is at the place afterwards, and after a crash at any moment of it.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct RestoreTests {
    /// A backup in a directory of its own, and what it holds.
    private struct Backup {
        let directory: MemoryDirectory
        let content: Everything
        let history: RandomHistory

        init(seed: UInt64, commits: Int = 14) throws {
            directory = MemoryDirectory()
            let engine = try CompactionTests.open(MemoryDirectory(), .all)
            var history = RandomHistory(seed: seed)
            for _ in 0..<commits { try history.commit(engine) }
            _ = try engine.backup(to: .directory(directory, name: "copy"))
            (content, self.history) = (history.newest, history)
            try engine.close()
        }

        func open() throws -> Engine {
            try Engine.open(
                .directory(directory, name: "copy"),
                mode: .readOnly,
                delegate: TestDelegate()
            )
        }

        func restore(to root: any StoreDirectory, replacing: Bool) throws {
            let engine = try open()
            defer { try? engine.close() }
            _ = try engine.restore(to: .directory(root, name: "test"), replacing: replacing)
        }
    }

    /// A store of another history, closed.
    private static func fill(_ root: any StoreDirectory, seed: UInt64) throws -> Everything {
        let engine = try CompactionTests.open(root, .newest)
        var history = RandomHistory(seed: seed)
        for _ in 0..<9 { try history.commit(engine) }
        try engine.close()
        return history.newest
    }

    private static func opened(_ root: any StoreDirectory) throws -> Engine {
        try Engine.openTest(root, mode: .existing, RandomHistory.adjust)
    }

    @Test("A restored store is the backup, with its history", arguments: [UInt64(301), 302])
    func restored(seed: UInt64) throws {
        let backup = try Backup(seed: seed)
        for isThere in [false, true] {
            let root = MemoryDirectory()
            if isThere {
                _ = try Self.fill(root, seed: seed + 7)
                let refused = #expect(throws: EngineError.self) {
                    try backup.restore(to: root, replacing: false)
                }
                #expect(refused?.code == .exists)
            }
            try backup.restore(to: root, replacing: true)
            #expect(try !root.list().contains { $0.contains("-new-") })
            let engine = try Self.opened(root)
            // It is not written once more: its name is proven.
            #expect(engine.published.withLock { $0.state.generation.header.generation } == 1)
            try CompactionTests.check(engine, backup.history, from: CommitNumber(0))
            // No blob of the store before is left.
            var needed: Set<BlobDigest> = []
            try engine.forEachBlobFile(of: engine.snapshot().state) { digest, _ in
                needed.insert(digest)
            }
            #expect(Set(try engine.blobStore.files.list()).isSubset(of: needed))
            var history = backup.history
            try history.commit(engine)
            #expect(try engine.snapshot().everything() == history.newest)
            // The backup goes on as one of it.
            let report = try engine.backup(to: .directory(backup.directory, name: "copy"))
            #expect(report.isIncrement || isThere)
            try engine.close()
            if !isThere { break }
        }
    }

    @Test("A store that is open is not replaced")
    func openStore() throws {
        let backup = try Backup(seed: 311)
        let root = MemoryDirectory()
        let before = try Self.fill(root, seed: 312)
        let engine = try Self.opened(root)
        let refused = #expect(throws: EngineError.self) {
            try backup.restore(to: root, replacing: true)
        }
        #expect(refused?.code == .busy)
        #expect(try engine.snapshot().everything() == before)
        try engine.close()
    }

    @Test("A damaged blob of the store that is replaced is mended")
    func damagedBlob() throws {
        let backup = try Backup(seed: 321)
        let root = MemoryDirectory()
        try backup.restore(to: root, replacing: false)
        let blobs = try root.directory("test.varve-blobs", create: false)
        let names = try blobs.list()
        #expect(!names.isEmpty)
        for name in names {
            let file = try blobs.openFile(name, mode: .readWrite)
            try file.write([0xEE, 0xEE, 0xEE], at: FileOffset(3))
            file.close()
        }
        try backup.restore(to: root, replacing: true)
        let engine = try Self.opened(root)
        #expect(try engine.snapshot().everything() == backup.content)
        try engine.close()
    }

    @Test("Cancelled, nothing has changed")
    func cancelled() throws {
        let backup = try Backup(seed: 331)
        let root = MemoryDirectory()
        let before = try Self.fill(root, seed: 332)
        let names = try root.list()
        let source = try backup.open()
        defer { try? source.close() }
        var asked = 0
        for after in 0..<6 {
            var steps = 0
            let error = #expect(throws: EngineError.self) {
                _ = try source.restore(to: .directory(root, name: "test"), replacing: true) {
                    _,
                    _ in
                } isCancelled: {
                    steps += 1
                    return steps > after
                }
            }
            #expect(error?.code == .cancelled)
            asked += steps
            #expect(try root.list() == names)
            let engine = try Engine.openTest(root, mode: .readOnly)
            #expect(try engine.snapshot().everything() == before)
            try engine.close()
        }
        #expect(asked >= 6)
    }

    /// Whatever reaches the disk: the store of before or the restored one, whole; and once the
    /// restore has returned, the restored one.
    @Test("A power cut at any moment leaves the one or the other", arguments: [UInt64(341), 342])
    func powerCuts(seed: UInt64) throws {
        let backup = try Backup(seed: seed, commits: 9)
        for isThere in [false, true] {
            let disk = SimulatedDisk()
            let before = isThere ? try Self.fill(disk.root, seed: seed + 50) : nil
            disk.record()
            try backup.restore(to: disk.root, replacing: isThere)
            disk.note(1)
            #expect(disk.violations == [])
            let recording = disk.takeRecording()
            var luck = SeededRandom(seed: seed)
            var state = recording.start
            var (olds, news) = (0, 0)
            for (index, step) in recording.steps.enumerated() {
                state.apply(step.operation)
                let isLast = index == recording.steps.count - 1
                for image in state.crashImages(after: step.operation, &luck, most: 6) {
                    let left = SimulatedDisk(state.after(image))
                    if before == nil, try !left.root.exists("test.varve") {
                        #expect(!isLast, "the restored store is gone")
                        olds += 1
                        continue
                    }
                    let engine: Engine
                    do { engine = try Self.opened(left.root) } catch let error as EngineError {
                        // Garbage inside a sector looks like rot of the bytes that prove the name.
                        guard error.code == .newestCommitDamaged, image.mayLookRotten else {
                            throw error
                        }
                        continue
                    }
                    let found = try engine.snapshot().everything()
                    let isNew = found == backup.content
                    #expect(isNew || found == before, "step \(index), seed \(seed)")
                    #expect(isNew || !isLast, "seed \(seed)")
                    if isNew { news += 1 } else { olds += 1 }
                    // What is saved now is not lost behind a second power cut.
                    _ = try engine.write {
                        try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(1, "later"))
                    }
                    let after = try engine.snapshot().everything()
                    let cut = SimulatedDisk(left.state.after(CrashImage()))
                    let again = try Self.opened(cut.root)
                    #expect(try again.snapshot().everything() == after, "step \(index)")
                    withExtendedLifetime(engine) {}
                }
            }
            #expect(olds > 20 && news > 2, "old \(olds) new \(news)")
            print("restore: \(olds) cuts before, \(news) after, seed \(seed)")
        }
    }

    @Test("Behind a failed call the one or the other is there, and what is saved then stays")
    func failedCalls() throws {
        let backup = try Backup(seed: 351, commits: 6)
        let whole = SimulatedDisk()
        _ = try Self.fill(whole, 352)
        let first = whole.calls + 1
        try backup.restore(to: whole.root, replacing: true)
        for call in first...whole.calls {
            let disk = SimulatedDisk()
            let before = try Self.fill(disk, 352)
            disk.setFault(SimulatedDisk.Fault(first: call))
            let failure = #expect(throws: (any Error).self) { () throws in
                try backup.restore(to: disk.root, replacing: true)
                // Bytes that prove the name may fail without a word.
                throw EngineError(.cancelled, "it went well")
            }
            disk.setFault(nil)
            let succeeded = (failure as? EngineError)?.code == .cancelled
            disk.kill()
            let engine = try Self.opened(disk.root)
            let found = try engine.snapshot().everything()
            #expect(found == backup.content || found == before, "call \(call)")
            if succeeded { #expect(found == backup.content, "call \(call)") }
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(1 << 40), row: row(1, "later"))
            }
            let after = try engine.snapshot().everything()
            let cut = SimulatedDisk(disk.state.after(CrashImage()))
            #expect(try Self.opened(cut.root).snapshot().everything() == after, "call \(call)")
            withExtendedLifetime(engine) {}
        }
    }

    private static func fill(_ disk: SimulatedDisk, _ seed: UInt64) throws -> Everything {
        try fill(disk.root, seed: seed)
    }
}
