// Tests of the order of a run: turns, stocks, folders, threads.

import BenchmarkHarness
import Foundation
import Testing

@Suite struct RunnerTests {
    private final class Log {
        var lines: [String] = []
        var stocks: Set<String> = []
    }

    private func inFolder<R>(_ body: (String) throws -> R) throws -> R {
        let folder = NSTemporaryDirectory() + "/varve-bench-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try body(folder)
    }

    private func contestant(
        _ name: String,
        stock: String? = "items",
        missing: String? = nil
    ) -> Contestant {
        Contestant(
            name: name,
            level: .engine,
            missing: missing,
            stock: stock.map { Stock($0) { _ in } },
            measure: { _ in Outcome() }
        )
    }

    private func run(_ workloads: [Workload], in folder: String, _ log: Log) throws -> Report {
        try Runner(
            workloads: workloads,
            scale: .smoke,
            rounds: 2,
            directory: folder,
            seed: 1,
            progress: { _ in },
            execute: { request in
                let name = request.contestant.suffix(1)
                let session = request.session
                if request.preparing {
                    log.lines.append("fill \(name)")
                    return Data()
                }
                log.lines.append("\(name)\(session.round)")
                if !session.stock.isEmpty {
                    log.stocks.insert(session.stock)
                    #expect(FileManager.default.fileExists(atPath: session.stock))
                }
                var outcome = Outcome()
                outcome.readings = [.time("x", Double(session.round + 1))]
                outcome.checks = ["x": 7]
                return try JSONEncoder().encode(outcome)
            }
        ).run()
    }

    @Test func `rounds take turns, and a store is filled once for all workloads`() throws {
        try inFolder { folder in
            let log = Log()
            let contestants = [
                contestant("A"), contestant("B"), contestant("C", missing: "not installed"),
                contestant("D", stock: nil),
            ]
            let report = try run(
                [
                    Workload(id: "x", title: "one", contestants: contestants),
                    Workload(id: "y", title: "two", contestants: [contestants[0]]),
                ],
                in: folder,
                log
            )
            #expect(
                log.lines == ["fill A", "fill B", "A0", "B0", "D0", "A1", "B1", "D1", "A0", "A1"]
            )
            #expect(log.stocks.count == 2)
            #expect(report.measurements.map(\.summary.median) == [1.5, 1.5, 1.5])
            #expect(report.skipped.map(\.contestant) == ["C"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    @Test func `stores of other names are others`() throws {
        try inFolder { folder in
            let log = Log()
            _ = try run(
                [
                    Workload(id: "x", title: "one", contestants: [contestant("A")]),
                    Workload(id: "y", title: "two", contestants: [contestant("A", stock: "list")]),
                ],
                in: folder,
                log
            )
            #expect(log.lines == ["fill A", "A0", "A1", "fill A", "A0", "A1"])
        }
    }

    @Test func `a copied folder has the same bytes, and can leave the page cache`() throws {
        try inFolder { folder in
            let source = try makeFolder(folder, "source")
            let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
            try bytes.write(to: URL(fileURLWithPath: source + "/file"))
            try copyFolder(source, to: folder + "/copy")
            let copy = try Data(contentsOf: URL(fileURLWithPath: folder + "/copy/file"))
            #expect(copy == bytes)
            #expect(try bytesOnDisk(folder) == 200_000)
            // Whether it works is the machine's affair; that it tells the truth is ours.
            _ = try dropFromPageCache(folder + "/copy")
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/copy/file")) == bytes)
        }
    }

    @Test func `threads of a team begin together and all are waited for`() throws {
        let lock = NSLock()
        nonisolated(unsafe) var events: [String] = []
        @Sendable func note(_ event: String) { lock.withLock { events.append(event) } }
        let seconds = try ThreadTeam(count: 5).run { index in
            note("ready")
            return { note("work") }
        }
        #expect(seconds >= 0)
        #expect(events == Array(repeating: "ready", count: 5) + Array(repeating: "work", count: 5))
    }

    @Test func `what fails on a thread fails the team, ready or not`() {
        for failsEarly in [true, false] {
            #expect(throws: BenchmarkError.self) {
                try ThreadTeam(count: 3).run { index in
                    if failsEarly, index == 1 { throw BenchmarkError("not ready") }
                    return { if index == 1 { throw BenchmarkError("not done") } }
                }
            }
        }
    }

    #if os(Linux)
    @Test func `flushes are counted, whichever call makes them`() throws {
        try inFolder { folder in
            let path = folder + "/file"
            let (_, flushes) = ProcessCounters.flushes {
                let file = open(path, O_RDWR | O_CREAT, 0o600)
                defer { close(file) }
                #expect(fdatasync(file) == 0)
                #expect(fsync(file) == 0)
                let synced = open(path, O_RDWR | O_DSYNC)
                defer { close(synced) }
                #expect(pwrite(synced, "x", 1, 0) == 1)
                #expect(pwrite(file, "y", 1, 1) == 1)
            }
            // Other tests of this process may sync files meanwhile.
            #expect(flushes.map { $0 >= 3 } == true)
        }
    }
    #endif
}
