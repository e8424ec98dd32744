// Tests of what a run says: comparisons, goals, JSON lines, the table.

import BenchmarkHarness
import Foundation
import Testing

@Suite struct ReportTests {
    private func outcome(_ metric: String, _ seconds: Double) -> Outcome {
        var outcome = Outcome()
        outcome.readings = [.time(metric, seconds)]
        return outcome
    }

    private func exampleReport() -> Report {
        var report = Report()
        for (varve, records) in [(2.0, 50.0), (1.0, 30.0), (9.0, 40.0)] {
            report.add(outcome("e, faults", varve), level: .object, engine: Report.varve)
            report.add(outcome("e, faults", records), level: .object, engine: "GRDB records")
            report.add(outcome("e, faults", 1), level: .engine, engine: "SQLite usual")
        }
        return report
    }

    @Test func `comparisons are made from medians and inside one level`() throws {
        let comparisons = exampleReport().comparisons
        let only = try #require(comparisons.first)
        #expect(comparisons.count == 1)
        #expect(only.peer == "GRDB records")
        #expect(only.ratio == 20)
        #expect(only.goal == 9)
        #expect(only.met == true)
    }

    @Test func `every JSON line has exactly the fields that are promised`() throws {
        let lines = exampleReport().jsonLines
        #expect(lines.count == 4)
        for line in lines {
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            )
            let fields = Set(object.keys)
            #expect(
                fields == ["workload", "level", "engine", "unit", "median", "min", "max"]
                    || fields == ["workload", "level", "peer", "ratio", "goal", "met"]
            )
        }
        #expect(
            lines[0]
                == #"{"workload":"e, faults","level":"object","engine":"Varve","unit":"s","#
                + #""median":2.0,"min":1.0,"max":9.0}"#
        )
        #expect(
            lines[3]
                == #"{"workload":"e, faults","level":"object","peer":"GRDB records","ratio":20.0,"#
                + #""goal":9.0,"met":true}"#
        )
    }

    @Test func `a comparison without a goal says null`() {
        var report = Report()
        report.add(outcome("unknown \"quoted\"", 1), level: .engine, engine: Report.varve)
        report.add(outcome("unknown \"quoted\"", 2), level: .engine, engine: "SQLite best")
        #expect(report.jsonLines.last?.hasSuffix(#""ratio":2.0,"goal":null,"met":null}"#) == true)
        #expect(report.jsonLines.allSatisfy { $0.contains(#"unknown \"quoted\""#) })
    }

    @Test func `a missing peer is named once with its reason`() {
        var report = exampleReport()
        report.skip("LMDB", reason: "liblmdb.so.0 is not installed")
        report.skip("LMDB", reason: "liblmdb.so.0 is not installed")
        let named = report.table.components(separatedBy: "skipped: LMDB: liblmdb.so.0 is not")
        #expect(named.count == 2)
    }

    @Test func `a goal that is not met says by how much it falls short`() {
        func verdict(_ ratio: Double, _ goal: Double?) -> String {
            Comparison(metric: "x", level: .engine, peer: "y", ratio: ratio, goal: goal).verdict
        }
        #expect(verdict(3, 2) == "met")
        #expect(verdict(2, 2) == "met")
        #expect(verdict(1.5, 2) == "short by 25 %")
        #expect(verdict(1, nil).isEmpty)
    }

    @Test func `Varve's other ways of doing the work are shown and not compared`() {
        var report = exampleReport()
        report.add(outcome("e, faults", 3), level: .object, engine: "Varve, another way")
        #expect(report.measurements.count == 4)
        #expect(report.comparisons.map(\.peer) == ["GRDB records"])
    }

    @Test func `reads beside a writer are compared with Varve's own reads alone`() throws {
        typealias Names = Workload.MixedWork
        var report = Report()
        for (engine, share) in [(Report.varve, 0.95), ("LMDB", 0.7)] {
            var outcome = Outcome()
            outcome.readings = [.number(Names.share, share, unit: "share", better: .more)]
            report.add(outcome, level: .engine, engine: engine)
        }
        let only = try #require(report.comparisons.first)
        #expect(report.comparisons.count == 1)
        #expect((only.peer, only.ratio, only.goal) == (Goal.Peers.itselfAlone, 0.95, 0.85))
    }

    @Test func `a file of results gives back the report`() throws {
        var report = exampleReport()
        report.machine = ["machine: \"one\""]
        report.skip("LMDB", reason: "not installed")
        var incomplete = Outcome()
        incomplete.missing = ["j, time to compact": "not yet"]
        incomplete.readings = [.rate("i, 100-row commits", 12)]
        report.add(incomplete, level: .engine, engine: Report.varve)
        let again = try Report(lines: report.fileLines)
        #expect(again.fileLines == report.fileLines)
        #expect(again.table == report.table)
        #expect(again.measurements.last?.better == .more)
        #expect(throws: (any Error).self) { try Report(lines: ["no JSON"]) }
    }

    @Test func `the table names the physical limit beside a goal`() {
        var report = exampleReport()
        report.add(outcome("e, faults", 0.5), level: .machine, engine: "limit: memory")
        let line = report.table.split(separator: "\n").last { $0.hasPrefix("e, faults") }
        #expect(line?.contains("met") == true)
        #expect(line?.hasSuffix("500 ms") == true)
        #expect(report.table.contains("1 of 1 goals met"))
    }

    @Test func `quantities carry three digits and a unit`() {
        #expect(Format.quantity(0.000_117_3, unit: "s") == "117 µs")
        #expect(Format.quantity(0.000_000_69, unit: "s") == "690 ns")
        #expect(Format.quantity(2.5, unit: "s") == "2.50 s")
        #expect(Format.quantity(14_300, unit: "bytes") == "14.3 kB")
        #expect(Format.quantity(0, unit: "bytes") == "0.00 B")
        #expect(Format.short(-0.051) == "-0.05")
        #expect(Format.short(9.999) == "10.00")
    }

    @Test func `every goal names a number that a workload measures, once`() {
        let keys = Goal.all.map { "\($0.metric)|\($0.level)|\($0.peer)" }
        #expect(Set(keys).count == keys.count)
        #expect(Goal.all.allSatisfy { $0.ratio > 0 && $0.level != .machine })
    }
}
