// Tests of the rows, the sums over them, and the order of a run.

import BenchmarkHarness
import Foundation
import Testing

@Suite struct WorkTests {
    @Test func `a row depends on nothing but its ID and the seed`() {
        let rows = Item.rows(1...50, seed: 42)
        #expect(rows[7] == Item(id: 8, seed: 42))
        #expect(rows[7] != Item(id: 8, seed: 43))
        #expect(rows == Item.rows(1...50, seed: 42))
    }

    @Test func `rows have the size that the goals were set for`() {
        var bytes: [UInt8] = []
        let rows = Item.rows(1...2000, seed: 1)
        for row in rows { PackedRow.append(row, to: &bytes) }
        let mean = Double(bytes.count) / Double(rows.count)
        #expect(mean > 130 && mean < 160)
        let note = rows.reduce(0) { $0 + $1.note.utf8.count } / rows.count
        #expect(note > 88 && note < 100)
        let title = rows.reduce(0) { $0 + $1.title.utf8.count } / rows.count
        #expect(title > 15 && title < 25)
    }

    @Test func `a packed row gives back the item`() {
        for item in Item.rows(1...200, seed: 9) {
            var bytes: [UInt8] = []
            PackedRow.append(item, to: &bytes)
            let (back, packed) = bytes.withUnsafeBytes { raw in
                var fold = RowFold()
                PackedRow(bytes: raw).fold(id: item.id, into: &fold)
                return (PackedRow(bytes: raw).item(id: item.id), fold.value)
            }
            #expect(back == item)
            var fold = RowFold()
            fold.add(item)
            #expect(fold.value == packed)
        }
    }

    @Test func `the sums see every column and the order of rows`() {
        let rows = Item.rows(1...3, seed: 5)
        func sums(_ rows: [Item]) -> [UInt64] {
            var fold = RowFold()
            var hash = ContentHash()
            for row in rows {
                fold.add(row)
                hash.add(row)
            }
            return [fold.value, hash.value]
        }
        let changes: [(inout Item) -> Void] = [
            { $0.id += 1 }, { $0.timestamp += 1 }, { $0.title += "x" }, { $0.note += "x" },
            { $0.count += 1 }, { $0.flag.toggle() }, { $0.pictureID += 1 },
        ]
        let expected = sums(rows)
        for change in changes {
            var other = rows
            change(&other[1])
            let found = sums(other)
            #expect(found[0] != expected[0])
            #expect(found[1] != expected[1])
        }
        let reversed = sums(rows.reversed())
        #expect(reversed[0] != expected[0])
        #expect(reversed[1] != expected[1])
    }

    @Test func `a contestant that did other work fails the round`() throws {
        var table = CheckTable()
        try table.add(["e": 1, "c": 2], from: "engine/A")
        try table.add(["e": 1], from: "engine/B")
        #expect(throws: BenchmarkError.self) { try table.add(["c": 3], from: "object/C") }
    }

    @Test func `rounds take turns and prepare runs once`() throws {
        let folder = NSTemporaryDirectory() + "/varve-bench-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func contestant(_ name: String, missing: String? = nil) -> Contestant {
            Contestant(
                name: name,
                level: .engine,
                missing: missing,
                prepare: { _ in },
                measure: { _ in Outcome() }
            )
        }
        let workload = Workload(
            id: "x",
            title: "turns",
            contestants: [
                contestant("A"), contestant("B"), contestant("C", missing: "not installed"),
            ]
        )
        final class Log { var lines: [String] = [] }
        let log = Log()
        let runner = Runner(
            workloads: [workload],
            scale: .smoke,
            rounds: 2,
            directory: folder,
            seed: 1,
            progress: { _ in },
            execute: { request in
                let name = request.contestant.suffix(1)
                log.lines.append(
                    request.preparing ? "prepare \(name)" : "\(name)\(request.session.round)"
                )
                var outcome = Outcome()
                outcome.readings = [.time("x", Double(request.session.round + 1))]
                outcome.checks = ["x": 7]
                return try JSONEncoder().encode(outcome)
            }
        )
        let report = try runner.run()
        #expect(log.lines == ["prepare A", "prepare B", "A0", "B0", "A1", "B1"])
        #expect(report.measurements.map(\.summary.median) == [1.5, 1.5])
        #expect(report.skipped.map(\.contestant) == ["C"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }

    @Test func `sums of 64 bits survive the way through JSON`() throws {
        var outcome = Outcome()
        outcome.checks = ["a": .max, "b": 1 << 63 | 1]
        let data = try JSONEncoder().encode(outcome)
        #expect(try JSONDecoder().decode(Outcome.self, from: data).checks == outcome.checks)
    }
}
