// What VarveLogging logs: a line for each event, at its level, and nothing personal unless asked.

import Foundation
import Logging
import Testing
import VarveLogging
import VarveObjects

@Suite("Log lines") struct LoggingTests {
    private func lines(
        _ change: (inout TraceLogging) -> Void = { _ in },
        level: Logger.Level = .trace
    ) async throws -> [LoggedLine] {
        let log = LineLog()
        var logging = TraceLogging()
        // No machine is so slow that a test of levels may fail.
        logging.slowAfter = nil
        change(&logging)
        var options = ContainerOptions(compactsAutomatically: false)
        options.trace = .logging(to: log.logger(level), logging)
        try await work(try TemporaryFolder(), options)
        return log.take()
    }

    @Test("Each kind of event has its line and its level") func eachEventHasItsLine() async throws {
        let lines = try await lines()
        let levels: [String: Logger.Level] = [
            "saved": .debug, "save failed": .error, "batch": .debug, "batch failed": .error,
            "request": .trace, "merged": .trace, "checkpoint": .trace,
            "relationship read object by object": .notice, "compacted": .info,
            "object used after its context ended with edits": .warning, "backed up": .info,
            "restored": .info, "restore failed": .error, "migrated": .info,
        ]
        #expect(Set(lines.map(\.message)) == Set(levels.keys))
        for line in lines {
            #expect(line.level == levels[line.message], "\(line.text)")
            #expect(line.metadata.keys.allSatisfy { $0.hasPrefix("varve.") }, "\(line.text)")
            if line.level != .notice && line.level != .warning {
                #expect(line.value("duration_ms").flatMap { Double($0) } ?? -1 >= 0)
            }
            #expect((line.value("failure") != nil) == line.message.hasSuffix("failed"))
        }
        // In the order of the work.
        let order = lines.map(\.message)
            .filter { ["saved", "save failed", "batch", "batch failed"].contains($0) }
        #expect(
            order == [
                "saved", "saved", "save failed", "batch", "batch", "batch", "batch failed",
                "saved", "saved", "batch",
            ]
        )
    }

    @Test("The figures are those of the work") func figures() async throws {
        let lines = try await lines()
        func all(_ message: String) -> [LoggedLine] { lines.filter { $0.message == message } }
        let saves = all("saved")
        #expect(saves[0].number("inserted") == 4 && saves[0].number("updated") == 0)
        #expect(saves[1].number("updated") ?? 0 >= 2 && saves[1].number("deleted") == 1)
        #expect(saves.allSatisfy { $0.number("bytes_written") ?? 0 > 0 })
        #expect(saves.allSatisfy { $0.number("commit") ?? 0 > 0 })
        #expect(all("save failed").map { $0.value("failure") } == ["invalid"])
        #expect(all("save failed").allSatisfy { $0.value("commit") == nil })
        let batches = all("batch")
        #expect(batches.map { $0.value("kind") } == ["insert", "update", "delete", "delete"])
        #expect(batches.allSatisfy { $0.value("entity") == "Note" })
        #expect(batches[0].number("inserted") == 100 && batches[1].number("updated") == 10)
        #expect(batches.map { $0.number("deleted") } == [0, 0, 10, 1])
        #expect(batches.allSatisfy { $0.number("commits") == 1 })
        let requests = all("request")
        #expect(requests.contains { $0.value("kind") == "count" && $0.number("found") == 20 })
        #expect(requests.contains { $0.value("kind") == "objects" && $0.number("found") == 1 })
        let hop = try #require(all("relationship read object by object").first)
        #expect(hop.value("entity") == "Note" && hop.value("relationship") == "folder")
        #expect(hop.value("target") == "Folder" && hop.number("reads") ?? 0 > 5)
        let ended = all("object used after its context ended with edits")
        #expect(ended.map { $0.value("use") } == ["edit"])
        #expect(all("backed up").map { $0.value("kind") } == ["backup", "increment"])
        #expect(all("restore failed").map { $0.value("failure") } == ["storeExists"])
        let migrated = try #require(all("migrated").first)
        #expect(migrated.number("from") == 1 && migrated.number("to") == 2)
        let compacted = try #require(all("compacted").first)
        #expect(compacted.number("bytes_after") ?? 0 > 0)
    }

    @Test("Nothing personal is in a line, unless it was asked for")
    func nothingPersonal() async throws {
        let plain = try await lines().map(\.text).joined(separator: "\n")
        for secret in ["secret", "Lovelace", "5000", "diary", "folder 1"] {
            #expect(!plain.contains(secret), "\(secret)")
        }
        // As far as the test can see it: the same words are there when they are asked for.
        let all = try await lines {
            $0.showsRequests = true
            $0.showsAuthors = true
        }.map(\.text).joined(separator: "\n")
        for shown in ["Note.where { title == \"secret 7\" }", "Ada Lovelace", "5000", "prefetch"] {
            #expect(all.contains(shown), "\(shown)")
        }
        let authors = try await lines { $0.showsAuthors = true }.map(\.text).joined()
        #expect(authors.contains("Ada Lovelace") && !authors.contains("secret"))
    }

    @Test("What is slow is told at a level of its own; nil calls nothing slow")
    func slow() async throws {
        let all = try await lines { $0.slowAfter = .zero }
        let slow = all.filter { $0.message.hasPrefix("slow ") }
        #expect(Set(slow.map(\.message)) == ["slow request", "slow save", "slow merge"])
        #expect(slow.allSatisfy { $0.level == .notice })
        // A failure is one, however slow it was.
        #expect(all.contains { $0.message == "save failed" && $0.level == .error })
        let none = try await lines { $0.slowAfter = .seconds(600) }
        #expect(!none.contains { $0.message.hasPrefix("slow ") })
    }

    @Test("Levels are the app's, and the logger's level leaves out what is below")
    func levels() async throws {
        let own = try await lines {
            $0.failure = .critical
            $0.writing = .warning
            $0.maintenance = .error
        }
        #expect(own.filter { $0.message == "save failed" }.allSatisfy { $0.level == .critical })
        #expect(own.filter { $0.message == "saved" }.allSatisfy { $0.level == .warning })
        #expect(own.filter { $0.message == "backed up" }.allSatisfy { $0.level == .error })
        let few = try await lines(level: .info)
        #expect(!few.isEmpty && few.allSatisfy { $0.level >= .info })
    }

    @Test("What a cancelled task ended is no error") func cancelled() async throws {
        let log = LineLog()
        var options = ContainerOptions()
        options.trace = .logging(to: log.logger())
        let container = try PersistentContainer.inMemory(schema: NoteSchema.self, options: options)
        let task = Task {
            let (numbers, feed) = AsyncStream.makeStream(of: Int.self)
            feed.yield(1)
            try await container.newContext().batchInsert(Note.self, numbers) { row, number in
                row.number = number
            }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let line = try #require(log.take().first { $0.message == "batch failed" })
        #expect(line.level == .notice && line.value("failure") == "cancelled")
    }
}
