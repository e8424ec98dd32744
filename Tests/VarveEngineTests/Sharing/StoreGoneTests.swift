// Stores whose file is removed or replaced while they are open: no save is acknowledged.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveIO

@testable import VarveEngine

@Suite("Stores that go while they are open", .verified) struct StoreGoneTests {
    enum Way: CaseIterable {
        case removed, movedAway, replaced, allRemoved, folderRemoved
    }

    private static func insert(_ engine: Engine, _ text: String) throws {
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, id, row: row(1, text))
        }
    }

    private func takeAway(_ way: Way, _ folder: WritersFolder) throws {
        let files = FileManager.default
        let path = folder.path + "/test.varve"
        switch way {
        case .removed: try files.removeItem(atPath: path)
        case .movedAway: try files.moveItem(atPath: path, toPath: path + ".old")
        case .replaced:
            try Engine.open(
                .file(directory: folder.path, name: "other"),
                delegate: TestDelegate()
            ).close()
            try PosixDirectory.open(path: folder.path)
                .rename("other.varve", to: "test.varve", replacing: true)
        case .allRemoved:
            for name in try files.contentsOfDirectory(atPath: folder.path) {
                try files.removeItem(atPath: folder.path + "/" + name)
            }
        case .folderRemoved: try files.removeItem(atPath: folder.path)
        }
    }

    private func expectGone(_ engine: Engine, _ text: String) {
        let error = #expect(throws: EngineError.self) { try Self.insert(engine, text) }
        #expect(error?.code == .storeGone, "\(String(describing: error))")
        #expect(error?.message.contains("backup") == true)
    }

    /// The next save succeeded, and was lost.
    @Test("A save into a file that is not the store's any more fails", arguments: Way.allCases)
    func inATurn(way: Way) throws {
        let folder = try WritersFolder()
        let engine = try folder.open { $0.maintenance = .inline }
        try Self.insert(engine, "a")
        let before = try engine.contents()
        try takeAway(way, folder)
        let other = try? Data(contentsOf: URL(fileURLWithPath: folder.path + "/test.varve"))
        expectGone(engine, "b")
        // And each one after it; nobody saw it.
        expectGone(engine, "c")
        #expect(try engine.contents() == before)
        // What the error says helps: a backup has what was saved, and the store that is there now,
        // or a new one, is another opening's.
        let rescue = try WritersFolder()
        _ = try engine.backup(to: .file(directory: rescue.path, name: "test"))
        #expect(try rescue.open().contents() == before)
        try engine.close()
        let now = try? Data(contentsOf: URL(fileURLWithPath: folder.path + "/test.varve"))
        #expect(now == other)
        if way != .folderRemoved {
            let next = try folder.open()
            try Self.insert(next, "d")
            #expect(try next.contents().count == 1)
        }
    }

    @Test("A turn does not begin on a file that is gone", arguments: Way.allCases)
    func atATurn(way: Way) throws {
        let folder = try WritersFolder()
        let first = try folder.open { $0.maintenance = .inline }
        let second = try folder.open { $0.maintenance = .inline }
        try Self.insert(first, "a")
        first.drain()
        first.queue.claimLead()
        first.writer.withLock { first.giveTurn(&$0) }
        first.endLead([])
        try takeAway(way, folder)
        for engine in [second, first, second] { expectGone(engine, "b") }
        #expect(try first.contents().count == 1)
        guard way == .movedAway else { return }
        // Back in its place it is the store again: nothing was written to it.
        let path = folder.path + "/test.varve"
        try FileManager.default.moveItem(atPath: path + ".old", toPath: path)
        try Self.insert(second, "c")
        try Self.insert(first, "d")
        #expect(try first.contents().count == 3)
    }

    @Test("Of savers that share a sync none is told of a save that is lost")
    func savers() throws {
        let folder = try WritersFolder()
        let engine = try folder.open { $0.maintenance = .inline }
        try Self.insert(engine, "first")
        let acknowledged = Mutex(0)
        let isGone = Mutex(false)
        let wrong = Mutex(0)
        let savers = (0..<4).map { saver in
            TestThread {
                for _ in 0..<2_000 {
                    let wasGone = isGone.withLock { $0 }
                    do {
                        try Self.insert(engine, "\(saver)")
                        acknowledged.withLock { $0 += 1 }
                        if wasGone { wrong.withLock { $0 += 1 } }
                    } catch let error as EngineError {
                        if error.code != .storeGone { wrong.withLock { $0 += 1 } }
                        return
                    } catch {
                        wrong.withLock { $0 += 1 }
                        return
                    }
                }
            }
        }
        waitAMinute { acknowledged.withLock { $0 > 8 } }
        // A second name keeps what was acknowledged, to count it.
        let path = folder.path + "/test.varve"
        try FileManager.default.linkItem(atPath: path, toPath: folder.path + "/kept.varve")
        try FileManager.default.removeItem(atPath: path)
        isGone.withLock { $0 = true }
        for saver in savers { saver.join() }
        #expect(wrong.withLock { $0 } == 0)
        let shown = try engine.contents().count
        #expect(shown == acknowledged.withLock { $0 } + 1)
    }

    @Test("An idle process hears that its store is gone when the lock file is touched")
    func idle() throws {
        let folder = try WritersFolder()
        let engine = try folder.open {
            $0.maintenance = .inline
            $0.turnMilliseconds = 60_000
        }
        let other = try folder.open { $0.maintenance = .inline }
        try Self.insert(other, "a")
        try Self.insert(engine, "b")
        guard engine.role.turn?.isHeard == true else { return }
        try takeAway(.allRemoved, folder)
        waitAMinute { !engine.writer.withLock { $0.isOpen } }
        expectGone(engine, "c")
    }

    @Test("A compaction by another process, or by this one, is no loss", arguments: [true, false])
    func compaction(isOwn: Bool) throws {
        let folder = try WritersFolder()
        let first = try folder.open { $0.maintenance = .inline }
        let second = try folder.open { $0.maintenance = .inline }
        for step in 0..<20 { try Self.insert(step % 2 == 0 ? first : second, "\(step)") }
        _ = try (isOwn ? first : second).compact()
        for step in 0..<4 { try Self.insert(step % 2 == 0 ? first : second, "\(step)") }
        #expect(try first.contents().count == 24)
        #expect(try first.contents() == second.contents())
    }
}
