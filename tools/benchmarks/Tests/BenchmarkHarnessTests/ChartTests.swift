// Tests of the charts and of the page of results.

import BenchmarkHarness
import Foundation
import Testing

@Suite struct ChartTests {
    private func report() -> Report {
        var report = Report()
        report.machine = ["machine: <one> & only"]
        func add(_ engine: String, _ level: Level, _ readings: [Reading]) {
            var outcome = Outcome()
            outcome.readings = readings
            report.add(outcome, level: level, engine: engine)
        }
        typealias B = Workload.DurableCommits
        typealias Chart = Workload.ScaleChart
        for (factor, engine) in [(1.0, Report.varve), (2.0, "SQLite usual"), (4.0, "LMDB")] {
            var readings: [Reading] = [.time(B.mean, factor * 1e-4)]
            readings += B.savers.map { .rate(B.throughput($0), 1e4 * Double($0) / factor) }
            for rows in Chart.sizes.prefix(3) {
                for figure in Chart.Figure.allCases {
                    readings.append(.time(Chart.metric(figure, rows: rows), factor * 1e-6))
                }
            }
            add(engine, .engine, readings)
        }
        add("limit: disk", .machine, [.time(B.mean, 5e-5)])
        add(Report.varve, .object, [.time(B.mean, 2e-4)])
        add("GRDB records", .object, [.time(B.mean, 3e-4)])
        report.skip("RocksDB", reason: "librocksdb is not installed")
        return report
    }

    /// The names of the elements that a parser finds; fails when the text is no XML.
    private func elements(_ text: String) throws -> [String] {
        var open: [String] = []
        var found: [String] = []
        var rest = Substring(text)
        while let start = rest.firstIndex(of: "<") {
            guard let end = rest[start...].firstIndex(of: ">") else {
                throw BenchmarkError("a tag is not closed")
            }
            let tag = rest[rest.index(after: start)..<end]
            rest = rest[rest.index(after: end)...]
            if tag.hasPrefix("/") {
                #expect(open.popLast() == String(tag.dropFirst()))
            } else {
                let name = String(tag.prefix { $0.isLetter })
                found.append(name)
                if !tag.hasSuffix("/") { open.append(name) }
            }
        }
        #expect(open.isEmpty)
        return found
    }

    @Test func `every chart that has numbers is drawn, and is well-formed`() throws {
        let files = Charts.files(report())
        #expect(
            files.map(\.name) == [
                "ratios-engine.svg", "ratios-object.svg", "savers.svg", "scale-engine.svg",
            ]
        )
        for file in files {
            let names = try elements(file.text)
            #expect(names.first == "svg")
            #expect(names.contains("circle"))
            #expect(file.text.contains("prefers-color-scheme:dark"))
            #expect(!file.text.contains("nan") && !file.text.contains("inf"))
        }
    }

    @Test func `a report without numbers has no charts`() {
        #expect(Charts.files(Report()).isEmpty)
    }

    @Test func `ratios out of the ordinary stay on the page`() throws {
        var report = Report()
        for (engine, seconds) in [(Report.varve, 1e-9), ("LMDB", 1e3), ("RocksDB", 1e-12)] {
            var outcome = Outcome()
            outcome.readings = [.time("x < y", seconds)]
            report.add(outcome, level: .engine, engine: engine)
        }
        let file = try #require(Charts.files(report).first)
        #expect(file.text.contains("x &lt; y"))
        _ = try elements(file.text)
    }

    @Test func `the page has the machine, both levels, limits, charts and who is missing`() {
        let page = ResultsPage(report(), charts: "charts").text
        for part in [
            "- machine: <one> & only", "## Engine level", "## Object level",
            "| b, durable, mean of one saver | 100 µs | **2.00** (200 µs), goal 1.20 met |",
            "short by", "50.0 µs", "![", "(charts/savers.svg)", "RocksDB was skipped",
            "| point read | engine | LMDB |",
        ] {
            #expect(page.contains(part), "\(part)")
        }
        let widths = page.split(separator: "\n").filter { $0.hasPrefix("| b, ") }.map {
            $0.split(separator: "|", omittingEmptySubsequences: false).count
        }
        #expect(Set(widths.prefix(4)).count == 1)
    }
}
