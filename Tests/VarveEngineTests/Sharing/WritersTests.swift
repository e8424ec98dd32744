// Several writing processes on one folder: each opening has descriptors and locks of its own.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Writing processes in turn", .verified) struct WritersTests {
    static let entity = TestDelegate.entity

    @Test("Each batch stands on the newest of all", arguments: [UInt64(1), 2, 3])
    func eachStandsOnTheNewest(seed: UInt64) throws {
        let folder = try WritersFolder()
        var random = SeededRandom(seed: seed)
        var engines = [try folder.open(), try folder.open(), try folder.open()]
        let reader = try folder.open(.readOnly)
        var model = RowModel()
        for step in 0..<90 {
            let index = Int.random(in: 0..<3, using: &random)
            let engine = engines[index]
            _ = try engine.write { try model.change(engine, $0, &random) }
            switch Int.random(in: 0..<20, using: &random) {
            case 0: try engine.checkpoint()
            case 1: _ = try engine.compact()
            case 2:
                try engine.close()
                engines[index] = try folder.open()
            default: break
            }
            let other = engines[Int.random(in: 0..<3, using: &random)]
            #expect(try other.contents() == model.contents, "seed \(seed), step \(step)")
            if step % 10 == 0 {
                #expect(try reader.contents() == model.contents, "seed \(seed), step \(step)")
            }
        }
        #expect(engines.contains { $0.statistics.turnsBehindOthers > 0 })
        #expect(engines.allSatisfy { $0.statistics.settledCommits == 0 })
        for engine in engines { try engine.close() }
        #expect(try reader.contents() == model.contents)
        // The last one has left it closed.
        let again = try folder.open()
        #expect(try again.contents() == model.contents)
        #expect(again.statistics.settledCommits == 0)
    }

    @Test("Threads of several processes lose nothing and share no ID")
    func threadsOfSeveral() throws {
        let folder = try WritersFolder()
        let engines = try (0..<3).map { _ in
            try folder.open(.createIfMissing) { $0.turnMilliseconds = 60_000 }
        }
        let written = Mutex<[UInt64: String]>([:])
        let failures = Mutex<[String]>([])
        let threads = engines.flatMap { engine in
            (0..<2).map { thread in
                TestThread {
                    for step in 0..<25 {
                        do {
                            let id = engine.allocateObjectIDs(1)
                            let text = "\(thread).\(step)"
                            let (_, commit) = try engine.write {
                                try $0.insert(Self.entity, id, row: row(Int64(step), text))
                            }
                            if engine.snapshot().number < commit! {
                                failures.withLock { $0.append("an own commit is not seen") }
                            }
                            let values: [StoredValue?] = [.int(Int64(step)), .text(text)]
                            let old = written.withLock {
                                $0.updateValue("\(values)", forKey: id.rawValue)
                            }
                            if old != nil { failures.withLock { $0.append("ID \(id) twice") } }
                        } catch {
                            failures.withLock { $0.append("\(error)") }
                        }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        let expected = written.withLock { $0 }
        #expect(expected.count == 150)
        for engine in engines { #expect(try engine.contents() == expected) }
        for engine in engines { try engine.close() }
        #expect(try folder.open().contents() == expected)
    }

    @Test("A commit that is visible early is on disk before another process writes")
    func relaxedCommits() throws {
        let folder = try WritersFolder()
        let first = try folder.open()
        var model = RowModel()
        var random = SeededRandom(seed: 7)
        for _ in 0..<3 {
            _ = try first.write(durability: .relaxed) { try model.change(first, $0, &random) }
        }
        let second = try folder.open()
        #expect(try second.contents() == model.contents)
        let before = first.statistics.relaxedCommits
        _ = try first.write(durability: .relaxed) { try model.change(first, $0, &random) }
        #expect(first.statistics.relaxedCommits == before, "full beside another writer")
        #expect(try second.contents() == model.contents)
        _ = try second.write { try model.change(second, $0, &random) }
        #expect(try first.contents() == model.contents)
    }

    @Test("Who waits too long is told so")
    func busy() throws {
        let folder = try WritersFolder()
        let first = try folder.open()
        let second = try folder.open(.createIfMissing) { $0.turnMilliseconds = 30 }
        var model = RowModel()
        var random = SeededRandom(seed: 8)
        _ = try first.write { transaction in
            try model.change(first, transaction, &random)
            let error = #expect(throws: EngineError.self) {
                _ = try second.write { _ in }
            }
            #expect(error?.code == .busy)
            #expect(error?.message.contains("30 ms") == true)
            let opening = #expect(throws: EngineError.self) {
                _ = try folder.open(.existing) { $0.turnMilliseconds = 30 }
            }
            #expect(opening?.code == .busy)
        }
        _ = try second.write { try model.change(second, $0, &random) }
        #expect(try first.contents() == model.contents)
    }

    @Test("A lone writer leaves the lock file alone")
    func aLoneWriter() throws {
        let folder = try WritersFolder()
        let engine = try folder.open { $0.maintenance = .inline }
        _ = try engine.write {
            try $0.insert(Self.entity, ObjectID(9), row: row(1, "text"))
        }
        let lock = try PosixDirectory.open(path: folder.path)
            .openFile("test.varve-lock", mode: .read)
        func page() throws -> [UInt8] {
            try lock.read(at: FileOffset(0), count: SharedState.length)
        }
        let before = try page()
        for object in UInt64(1)...5 {
            _ = try engine.write {
                try $0.insert(Self.entity, ObjectID(object), row: row(1, "text"))
            }
        }
        #expect(try page() == before)
        let reader = try folder.open(.readOnly)
        _ = try engine.write {
            try $0.insert(Self.entity, ObjectID(6), row: row(1, "text"))
        }
        #expect(try page() != before)
        #expect(try reader.contents().count == 7)
    }

    @Test("A page of any bytes costs a look at the log, no commit", arguments: [UInt64(1), 2])
    func thePageIsNotTrusted(seed: UInt64) throws {
        let folder = try WritersFolder()
        // Nobody takes a turn between the commit and the look at its page.
        let engines = try (0..<2).map { _ in try folder.open { $0.maintenance = .inline } }
        let lock = try PosixDirectory.open(path: folder.path)
            .openFile("test.varve-lock", mode: .readWrite)
        var model = RowModel()
        var random = SeededRandom(seed: seed)
        var earlier: [UInt8] = []
        for _ in 0..<60 {
            let engine = engines[Int.random(in: 0..<2, using: &random)]
            _ = try engine.write { try model.change(engine, $0, &random) }
            // The page is complete.
            engine.queue.claimLead()
            engine.writer.withLock { engine.giveTurn(&$0) }
            engine.endLead([])
            let old = earlier
            let bytes = try lock.read(at: FileOffset(0), count: SharedState.length)
            var told = try #require(SharedState(decoding: bytes))
            #expect(told.isComplete)
            earlier = bytes
            switch Int.random(in: 0..<6, using: &random) {
            case 0: try lock.write([UInt8](repeating: 9, count: 128), at: FileOffset(0))
            case 1: try lock.write([UInt8](repeating: 0, count: 128), at: FileOffset(0))
            case 2:
                told.sequence &+= 1
                told.logEnd = FileOffset((told.frame.rawValue + 15) & ~7)
                told.durableEnd = told.logEnd
                try lock.write(told.encoded(), at: FileOffset(0))
            case 3:
                told.sequence &+= 1
                told.frame = FileOffset(8192)
                try lock.write(told.encoded(), at: FileOffset(0))
            case 4: if !old.isEmpty { try lock.write(old, at: FileOffset(0)) }
            default: break
            }
        }
        for engine in engines {
            try engine.exclusively { _ throws(EngineError) in }
            #expect(try engine.contents() == model.contents, "seed \(seed)")
        }
    }
}
