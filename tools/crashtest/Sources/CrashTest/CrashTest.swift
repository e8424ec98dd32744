// The program `crash-test`: its arguments, and what it prints.

import Foundation
import Synchronization
import VarveTesting

@main
struct CrashTest {
    static let help = """
        usage: tools/crashtest/simulated [--seconds N] [--seed S] [--seeds N] [--jobs N] [--json]
                                [--part work|images|errors|flips] [--without KIND]
                                [--steps N] [--case NAME] [--plant BUG] [--list-plants]
                                [--cases-min N]

        Crashes stores on a simulated disk and looks at what is left. Exit 0: no violation, 1: one.
        --seconds N    how long; 60 without it. --seeds N: so many seeds instead, at most that long
        --seed S       the first seed; 1 without it. Each seed is a workload of its own
        --part P       only this part, may come several times
        --without KIND a kind of operation that no workload has, may come several times:
                       \(Kind.allCases.map(\.rawValue).joined(separator: ", "))
        --case NAME    only this case of the seed, as a violation names it
        --plant BUG    breaks one step of the store: a violation must be found. --list-plants names
                       them, one a line
        --cases-min N  goes on until there are so many, ten times as long at most; with
                       fewer it fails
        """

    static func main() async {
        var arguments = Arguments(Array(CommandLine.arguments.dropFirst()))
        if arguments.wantsHelp { return print(help) }
        if arguments.listsPlants {
            for bug in PlantedBug.allCases { print(bug.rawValue) }
            return
        }
        if let complaint = arguments.complaint {
            FileHandle.standardError.write(Data("\(complaint)\n\(help)\n".utf8))
            exit(64)
        }
        if arguments.orders.only != nil { arguments.orders.violationsMax = .max }
        let tally = await runCampaign(arguments.orders)
        var findings = tally.findings.sorted { $0.size < $1.size }
        if let first = findings.first, arguments.orders.plant == nil, arguments.orders.only == nil {
            findings[0] = await shortened(first, arguments.orders)
        }
        Report(arguments, tally, findings).print()
        let isShort = tally.cases < arguments.orders.casesMin
        exit(findings.isEmpty && !isShort ? 0 : 1)
    }

    /// The same violation with fewer kinds of operation, as far as it shows itself without them.
    static func shortened(_ finding: Finding, _ orders: Orders) async -> Finding {
        var best = finding
        let start = ContinuousClock.now
        for kind in Kind.allCases where !best.without.contains(kind) {
            var orders = orders
            orders.without = best.without.union([kind])
            orders.seed = finding.seed
            orders.seeds = 1
            orders.jobs = 1
            orders.seconds = 3
            orders.casesMin = 0
            if ContinuousClock.now - start > .seconds(20) { break }
            orders.parts =
                Part(rawValue: String(finding.name.prefix { $0 != "/" })).map { [$0] }
                ?? orders.parts
            let found = await runCampaign(orders).findings.min { $0.size < $1.size }
            if let found, found.size <= best.size { best = found }
        }
        return best
    }
}

/// The command line.
struct Arguments {
    var orders = Orders()
    var isJSON = false
    var wantsHelp = false
    var listsPlants = false
    var complaint: String?

    init(_ words: [String]) {
        orders.jobs = max(1, ProcessInfo.processInfo.activeProcessorCount)
        var parts: Set<Part> = []
        var rest = words[...]
        func value<T>(_ convert: (String) -> T?) -> T? { rest.popFirst().flatMap(convert) }
        while let word = rest.popFirst() {
            var isFine = true
            switch word {
            case "--help", "-h": wantsHelp = true
            case "--list-plants": listsPlants = true
            case "--json": isJSON = true
            case "--seconds":
                let number = value { Double($0) }
                isFine = number != nil
                orders.seconds = number ?? 0
            case "--seed":
                let number = value { UInt64($0) }
                isFine = number != nil
                orders.seed = number ?? 1
            case "--seeds":
                orders.seeds = value { Int($0) }
                isFine = orders.seeds != nil
            case "--jobs":
                let number = value { Int($0) }
                isFine = number.map { $0 > 0 } ?? false
                orders.jobs = number ?? 1
            case "--steps":
                orders.steps = value { Int($0) }
                isFine = orders.steps != nil
            case "--cases-min":
                let number = value { Int($0) }
                isFine = number != nil
                orders.casesMin = number ?? 0
            case "--part":
                let part = value { Part(rawValue: $0) }
                isFine = part != nil
                if let part { parts.insert(part) }
            case "--without":
                let kind = value { Kind(rawValue: $0) }
                isFine = kind != nil
                if let kind { orders.without.insert(kind) }
            case "--case":
                orders.only = value { CaseName($0) }
                isFine = orders.only != nil
            case "--plant":
                orders.plant = value { PlantedBug(rawValue: $0) }
                isFine = orders.plant != nil
            default: isFine = false
            }
            if !isFine { complaint = complaint ?? "\(word) is not understood" }
        }
        if !parts.isEmpty { orders.parts = parts }
        if let only = orders.only { orders.parts = [only.part] }
    }
}

/// What is printed at the end.
struct Report {
    let arguments: Arguments
    let tally: Tally
    let findings: [Finding]

    init(_ arguments: Arguments, _ tally: Tally, _ findings: [Finding]) {
        self.arguments = arguments
        self.tally = tally
        self.findings = findings
    }

    private var rate: Int { Int(Double(tally.cases) / max(tally.seconds, 0.001)) }

    func print() {
        arguments.isJSON ? printJSON() : printText()
    }

    private func printText() {
        let parts = tally.parts.withLock { $0 }
        let text = Part.allCases.compactMap { part in parts[part].map { "\(part.rawValue) \($0)" } }
        Swift.print("cases: \(tally.cases) (\(text.joined(separator: ", ")))")
        Swift.print("cases per second: \(rate)")
        Swift.print("first seed: \(arguments.orders.seed)")
        let outcomes = tally.outcomes.withLock { $0 }.sorted { $0.key < $1.key }
        for (outcome, count) in outcomes { Swift.print("  \(outcome): \(count)") }
        if let plant = arguments.orders.plant {
            Swift.print("planted: \(plant.rawValue): \(findings.isEmpty ? "NOT FOUND" : "found")")
        }
        Swift.print("violations: \(findings.count)")
        for finding in findings.prefix(5) {
            Swift.print("seed \(finding.seed), case \(finding.name): \(finding.message)")
            for line in finding.details { Swift.print("    \(line)") }
            Swift.print("    again: \(command(finding))")
        }
        if tally.cases < arguments.orders.casesMin {
            Swift.print("FAILED: fewer than \(arguments.orders.casesMin) cases")
        }
    }

    private func command(_ finding: Finding) -> String {
        let script = "tools/crashtest/simulated"
        var words = [script, "--seed", "\(finding.seed)", "--case", finding.name]
        for kind in Kind.allCases where finding.without.contains(kind) {
            words += ["--without", kind.rawValue]
        }
        if let steps = arguments.orders.steps { words += ["--steps", "\(steps)"] }
        if let plant = arguments.orders.plant { words += ["--plant", plant.rawValue] }
        return words.joined(separator: " ")
    }

    private func printJSON() {
        let planted = arguments.orders.plant.map { "\"\($0.rawValue)\"" } ?? "null"
        let caught = arguments.orders.plant == nil ? "null" : findings.isEmpty ? "false" : "true"
        let seed = findings.first?.seed ?? arguments.orders.seed
        let again = findings.first.map { ",\"reproduce\":\"\(command($0))\"" } ?? ""
        Swift.print(
            "{\"cases\":\(tally.cases),\"casesPerSecond\":\(rate),"
                + "\"violations\":\(findings.count),\"seed\":\(seed),\"planted\":\(planted),"
                + "\"caught\":\(caught)\(again)}"
        )
    }
}
