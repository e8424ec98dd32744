// Processes of the system that write to one store, and are killed.

#if os(Linux) || os(macOS)

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Processes of the system that write", .verified) struct RealProcessTests {
    private struct Row: Hashable {
        var id: UInt64
        var text: String
    }

    private static func insert(_ engine: Engine, _ text: String) throws -> Row {
        let id = engine.allocateObjectIDs(1)
        _ = try engine.write { try $0.insert(TestDelegate.entity, id, row: row(1, text)) }
        return Row(id: id.rawValue, text: text)
    }

    private static func acknowledgements(_ path: String, _ seed: UInt64) -> String {
        "\(path)/acknowledged-\(seed)"
    }

    /// What a child does: saves, says so, and kills itself at no particular moment.
    private static func saveUntilKilled(_ path: String, _ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let engine = try Engine.openTest(PosixDirectory.open(path: path)) {
            adjustSmall(&$0)
            $0.maintenance = .background
        }
        let name = acknowledgements(path, seed)
        _ = FileManager.default.createFile(atPath: name, contents: nil)
        let output = try #require(FileHandle(forWritingAtPath: name))
        let last = Int.random(in: 3..<25, using: &random)
        let milliseconds = Int.random(in: 0..<4, using: &random)
        var killer: TestThread?
        // Long enough for a killer that has to wait for a processor.
        for step in 0..<100_000 {
            if step == last {
                killer = TestThread {
                    _ = Parker().park(milliseconds: milliseconds)
                    kill(getpid(), SIGKILL)
                }
            }
            let row = try insert(engine, "\(seed).\(step)")
            try output.write(contentsOf: Data("\(row.id) \(row.text)\n".utf8))
        }
        killer?.join()
    }

    private static func child(_ path: String, _ seed: UInt64) async {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, seed = seed as UInt64] in
            try RealProcessTests.saveUntilKilled(path, seed)
        }
    }

    @Test(
        "What killed processes acknowledged is there, beside one that lives",
        arguments: [UInt64(10), 20]
    )
    func killed(seed: UInt64) async throws {
        let folder = try WritersFolder()
        let path = folder.path
        let engine = try folder.open { $0.maintenance = .background }
        let own = Mutex<Set<Row>>([])
        let failures = Mutex<[String]>([])
        let isOver = Mutex(false)
        let saver = TestThread {
            var step = 0
            while !isOver.withLock({ $0 }) {
                do {
                    let row = try Self.insert(engine, "own.\(step)")
                    own.withLock { _ = $0.insert(row) }
                } catch {
                    failures.withLock { $0.append("\(error)") }
                    return
                }
                step += 1
                _ = Parker().park(milliseconds: 2)
            }
        }
        async let first: Void = Self.child(path, seed)
        async let second: Void = Self.child(path, seed + 1)
        _ = await (first, second)
        isOver.withLock { $0 = true }
        saver.join()
        #expect(failures.withLock { $0 } == [])
        // The dead hold nobody up.
        let row = try Self.insert(engine, "later")
        own.withLock { _ = $0.insert(row) }
        var acknowledged = own.withLock { $0 }
        for child in [seed, seed + 1] {
            let name = Self.acknowledgements(path, child)
            let lines = try String(contentsOfFile: name, encoding: .utf8).split(separator: "\n")
            #expect(lines.count >= 3)
            for line in lines {
                let words = line.split(separator: " ")
                acknowledged.insert(Row(id: UInt64(words[0]) ?? 0, text: String(words[1])))
            }
        }
        func check(_ engine: Engine) throws {
            let contents = try engine.contents()
            for row in acknowledged {
                let values: [StoredValue?] = [.int(1), .text(row.text)]
                #expect(contents[row.id] == "\(values)", "seed \(seed)")
            }
            // Each of the killed may have saved one more without saying so.
            #expect(contents.count - acknowledged.count <= 2, "seed \(seed)")
        }
        try check(engine)
        try engine.close()
        try check(folder.open())
    }
}

#endif
