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
        #expect(only.goal == 12)
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
                + #""goal":12.0,"met":true}"#
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
