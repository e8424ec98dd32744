// What a layer is asked for, what it counts, and what is printed of it.

import Foundation
import VarveTesting

/// A layer of the campaign.
protocol Layer {
    /// Throws `Skip` when the machine does not allow it.
    func run() throws
}

/// What the command line asks for.
struct Orders {
    var layer = ""
    var cycles = 200
    var seed: UInt64 = 1
    var only: Int?
    var fileSystem = "ext4"
    /// Where stores are made.
    var parent: String?
    /// The library for LD_PRELOAD.
    var shim: String?
    /// This program.
    var program = ""
}

/// A violation, with how to see it again.
struct Finding {
    var message: String
    var details: [String] = []
    var again: String
    var folder: String
}

/// What came of it.
final class Tally {
    private(set) var cases = 0
    private(set) var findings: [Finding] = []
    private(set) var notes: [String: Int] = [:]
    /// Parts that the machine does not allow: they are no cases.
    private(set) var skips: [String] = []
    private let start = ContinuousClock.now

    func count(_ more: Int = 1) { cases += more }
    func skip(_ line: String) { skips.append(line) }
    func report(_ finding: Finding) { findings.append(finding) }
    func note(_ text: String, _ count: Int) { notes[text, default: 0] += count }
    var hasViolations: Bool { !findings.isEmpty }

    var seconds: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    private var rate: String { String(format: "%.1f", Double(cases) / max(seconds, 0.001)) }

    func printText(_ orders: Orders, _ layer: String) {
        print("layer: \(layer)")
        print("cases: \(cases)")
        print("cases per second: \(rate)")
        print("seed: \(orders.seed)")
        for (text, count) in notes.sorted(by: { $0.key < $1.key }) { print("  \(text): \(count)") }
        for line in skips { print(line) }
        print("violations: \(findings.count)")
        for finding in findings {
            print(finding.message)
            for line in finding.details { print("    \(line)") }
            print("    again: tools/crashtest/processes \(finding.again)")
            print("    the store is in \(finding.folder)")
        }
        if cases < orders.cycles { print("FAILED: fewer than \(orders.cycles) cases") }
    }

    func printJSON(_ orders: Orders, _ layer: String) {
        let again =
            findings.first.map { ",\"reproduce\":\"tools/crashtest/processes \($0.again)\"" } ?? ""
        print(
            "{\"layer\":\"\(layer)\",\"cases\":\(cases),\"casesPerSecond\":\(rate),"
                + "\"violations\":\(findings.count),\"seed\":\(orders.seed),"
                + "\"skipped\":\(skips.count)\(again)}"
        )
    }
}

/// A fresh folder for one store; it goes when its owner does, unless it is kept.
final class Folder {
    let path: String
    private let orders: Orders
    private var isKept = false

    init(_ orders: Orders, copying other: Folder? = nil) throws {
        self.orders = orders
        let parent = orders.parent ?? FileManager.default.temporaryDirectory.path
        path = "\(parent)/varve-crash-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        if let other {
            try FileManager.default.copyItem(atPath: other.path, toPath: path)
            return
        }
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    deinit {
        try? FileManager.default.removeItem(atPath: errors)
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
    }

    private var errors: String { "\(path).errors" }

    /// The last lines on its processes' standard error.
    var errorLines: [String] {
        let text = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(6).map(String.init)
    }

    func keep() -> String {
        isKept = true
        return path
    }

    /// What starts a process on the store in this folder.
    func role(
        _ role: String,
        _ seed: UInt64,
        _ more: [String] = [],
        under: [String] = [],
        environment: [String: String] = [:]
    ) -> () throws -> Child {
        let words =
            under + [orders.program, "--role", role, "--folder", path, "--seed", "\(seed)"] + more
        let errors = errors
        return {
            try Child(
                ([role] + more).joined(separator: " "),
                words,
                environment: environment,
                errors: errors
            )
        }
    }
}
