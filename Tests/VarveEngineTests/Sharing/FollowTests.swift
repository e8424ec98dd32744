// Reading engines that follow a writing one through the lock file, as other processes do: each
// opening has descriptors and locks of its own.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Following another process", .verified) struct FollowTests {
    static let entity = TestDelegate.entity

    /// A folder that goes with the test.
    private final class Folder {
        let path: String
        init() throws {
            path =
                FileManager.default.temporaryDirectory
                .appendingPathComponent("varve-follow-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        deinit { try? FileManager.default.removeItem(atPath: path) }
        func open(_ mode: StoreOpenMode = .createIfMissing) throws -> Engine {
            try Engine.openTest(PosixDirectory.open(path: path), mode: mode) {
                $0.nodeWeightMax = 512
                $0.checkpointTailMin = 8 << 10
                $0.checkpointTailMax = 8 << 10
                $0.deltaBytesMax = 4 << 10
            }
        }
    }

    private static func change(
        _ engine: Engine,
        _ random: inout SeededRandom,
        _ live: inout [UInt64],
        _ next: inout UInt64
    ) throws {
        _ = try engine.write { transaction in
            let count = Int.random(in: 0..<20, using: &random) == 0 ? 60 : 3
            for _ in 0..<count {
                if live.isEmpty || Int.random(in: 0..<3, using: &random) > 0 {
                    next += 1
                    let text = String(repeating: "v\(next)", count: Int(next % 40) + 1)
                    try transaction.insert(entity, ObjectID(next), row: row(Int64(next), text))
                    live.append(next)
                } else {
                    let index = Int.random(in: 0..<live.count, using: &random)
                    if Bool.random(using: &random) {
                        try transaction.delete(entity, ObjectID(live.remove(at: index)))
                    } else {
                        next += 1
                        let patch = patch(Int64(next), nil)
                        try transaction.update(entity, ObjectID(live[index]), patch: patch)
                    }
                }
            }
        }
    }

    @Test("A reader sees each durable commit at its next snapshot", arguments: [UInt64(1), 2, 3])
    func aReaderSeesTheNewestCommit(seed: UInt64) throws {
        let folder = try Folder()
        let writer = try folder.open()
        let reader = try folder.open(.readOnly)
        var random = SeededRandom(seed: seed)
        var (live, next): ([UInt64], UInt64) = ([], 0)
        var old: [(Snapshot, UInt64)] = []
        for step in 0..<120 {
            try Self.change(writer, &random, &live, &next)
            if step % 17 == 0 { try writer.checkpoint() }
            let snapshot = reader.snapshot()
            #expect(snapshot.number == writer.snapshot().number, "seed \(seed), step \(step)")
            #expect(snapshot.count(TestDelegate.rows) == UInt64(live.count))
            if step % 10 == 0 {
                #expect(try reader.contents() == writer.contents(), "seed \(seed), step \(step)")
                old.append((snapshot, UInt64(live.count)))
            }
        }
        // What is held stays as it was.
        for (snapshot, count) in old { #expect(snapshot.count(TestDelegate.rows) == count) }
        #expect(reader.statistics.followFailures == 0)
        // A second writer in turn: the reader goes on.
        try writer.close()
        let second = try folder.open()
        try Self.change(second, &random, &live, &next)
        #expect(try reader.contents() == second.contents())
        let late = try folder.open(.readOnly)
        try Self.change(second, &random, &live, &next)
        #expect(try late.contents() == second.contents())
        #expect(try reader.contents() == second.contents())
    }

    @Test("Readers on threads beside a writer see whole commits only")
    func readersBesideAWriter() throws {
        let folder = try Folder()
        let writer = try folder.open()
        let readers = try (0..<3).map { _ in try folder.open(.readOnly) }
        let isDone = Mutex(false)
        let failures = Mutex<[String]>([])
        let threads = readers.map { reader in
            TestThread {
                var last = CommitNumber(0)
                while !isDone.withLock({ $0 }) {
                    let snapshot = reader.snapshot()
                    // Each commit adds one row: its count says which commit it is.
                    let rows = snapshot.count(TestDelegate.rows)
                    let indexed = snapshot.count(TestDelegate.byInt)
                    if snapshot.number < last || rows != indexed
                        || rows + 1 != snapshot.number.rawValue
                    {
                        failures.withLock {
                            $0.append("\(snapshot.number) after \(last): \(rows), \(indexed)")
                        }
                        return
                    }
                    last = snapshot.number
                }
            }
        }
        for object in UInt64(1)...400 {
            _ = try writer.write {
                try $0.insert(Self.entity, ObjectID(object), row: row(Int64(object), "text"))
            }
        }
        isDone.withLock { $0 = true }
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        for reader in readers {
            #expect(reader.snapshot().number == writer.snapshot().number)
            #expect(reader.statistics.followFailures == 0)
        }
    }

    #if os(Linux) || os(Android)
    @Test("A reader that waits hears of a commit without asking")
    func aReaderIsWoken() throws {
        let folder = try Folder()
        let writer = try folder.open()
        let reader = try folder.open(.readOnly)
        reader.followInBackground()
        _ = try writer.write {
            try $0.insert(Self.entity, ObjectID(1), row: row(1, "text"))
        }
        let wanted = writer.snapshot().number
        for _ in 0..<60_000 where reader.published.withLock({ $0.state.number }) != wanted {
            _ = Parker().park(milliseconds: 1)
        }
        #expect(reader.published.withLock { $0.state.number } == wanted)
    }
    #endif

    @Test("A lock file of any bytes makes no difference but freshness")
    func theLockFileIsNotTrusted() throws {
        let folder = try Folder()
        let writer = try folder.open()
        _ = try writer.write {
            try $0.insert(Self.entity, ObjectID(1), row: row(1, "text"))
        }
        let directory = try PosixDirectory.open(path: folder.path)
        let lock = try directory.openFile("test.varve-lock", mode: .readWrite)
        let reader = try folder.open(.readOnly)
        let contents = try reader.contents()
        let sound = try lock.read(at: FileOffset(0), count: SharedState.length)
        var told = try #require(SharedState(decoding: sound))
        // Right hashes, wrong contents.
        told.sequence &+= 77
        for frame in [8192, told.frame.rawValue + 8, 1 << 50] as [UInt64] {
            told.frame = FileOffset(frame)
            told.durableEnd = FileOffset(frame + 8)
            (told.logEnd, told.preparedEnd) = (told.durableEnd, told.durableEnd)
            told.sequence &+= 1
            try lock.write(told.encoded(), at: FileOffset(0))
            #expect(try reader.contents() == contents)
        }
        told.fileID = UUIDValue(high: 1, low: 2)
        told.sequence &+= 1
        try lock.write(told.encoded(), at: FileOffset(0))
        #expect(try reader.contents() == contents)
        try lock.write([UInt8](repeating: 7, count: 96), at: FileOffset(0))
        #expect(try reader.contents() == contents)
        // The next commit tells the truth again.
        _ = try writer.write {
            try $0.insert(Self.entity, ObjectID(2), row: row(2, "text"))
        }
        #expect(try reader.contents() == writer.contents())
    }

    /// What one writer takes back and what another tells had one number: who had seen the first
    /// took the second for nothing new.
    @Test("Each word of each writer has a number of its own") func numbers() throws {
        let folder = try Folder()
        let engine = try folder.open()
        _ = try engine.write { try $0.insert(Self.entity, ObjectID(1), row: row(1, "text")) }
        let state = engine.snapshot().state
        let directory = try PosixDirectory.open(path: folder.path)
        let pages = try (0..<2).map { _ in
            let page = try SharedPage.open(
                directory,
                "test.varve-lock",
                isReader: false,
                mayMake: { true },
                SystemEnvironment()
            )
            return try #require(page)
        }
        var seen: Set<UInt64> = []
        for round in 0..<20 {
            let place = FileOffset(state.frame.rawValue + 8)
            try pages[round % 2].write(
                state,
                durableEnd: place,
                log: (place, place),
                nextObjectID: 2
            )
            seen.insert(try #require(pages[0].read()).sequence)
            let other = pages[round / 2 % 2]
            try other.spoil(round % 3 == 0 ? other.read() : nil)
            let told = try #require(pages[0].read())
            #expect(!told.isComplete && told.frame == state.frame)
            seen.insert(told.sequence)
        }
        #expect(seen.count == 40)
        for page in pages { page.close() }
    }
}
