// Runs workloads: contestants take turns, each measurement in a process of its own.
//
// Invariants
// - Rounds go A B C A B C, so that what the machine's neighbours do falls on all alike.
// - Equal names of checks have equal sums over all contestants of a round, or the run fails.

public import Foundation

/// How a measurement's process is told what to do: the arguments of `varve-bench measure`.
public struct ProcessRequest: Codable, Sendable {
    /// Letter of the workload.
    public var workload: String
    /// Level and name of the contestant.
    public var contestant: String
    /// Whether to prepare or to measure.
    public var preparing: Bool
    /// Where, how much, which round.
    public var session: Session
}

/// Runs workloads and gathers their results.
public struct Runner {
    /// What to run.
    public var workloads: [Workload]
    /// How much work.
    public var scale: Scale
    /// Rounds per workload.
    public var rounds: Int
    /// Folder for the stores; must exist.
    public var directory: String
    /// Seed of all random choices.
    public var seed: UInt64
    /// Told what is going on.
    public var progress: (String) -> Void
    /// Runs one request in a process of its own and returns what it printed.
    public var execute: (ProcessRequest) throws -> Data

    /// Joins the parts.
    public init(
        workloads: [Workload],
        scale: Scale,
        rounds: Int,
        directory: String,
        seed: UInt64,
        progress: @escaping (String) -> Void,
        execute: @escaping (ProcessRequest) throws -> Data
    ) {
        self.workloads = workloads
        self.scale = scale
        self.rounds = rounds
        self.directory = directory
        self.seed = seed
        self.progress = progress
        self.execute = execute
    }

    /// Runs everything. Throws at the first wrong sum or failed process.
    public func run() throws -> Report {
        var report = Report()
        for workload in workloads { try run(workload, into: &report) }
        return report
    }

    private func run(_ workload: Workload, into report: inout Report) throws {
        for contestant in workload.contestants {
            guard let reason = contestant.missing else { continue }
            report.skip(contestant.name, reason: reason)
        }
        let present = workload.contestants.filter { $0.missing == nil }
        var folders: [String: String] = [:]
        for (index, contestant) in present.enumerated() {
            let folder = try makeFolder(directory, "\(workload.id)-\(index)")
            folders[contestant.key] = folder
            guard contestant.prepare != nil else { continue }
            progress("\(workload.id): \(contestant.name) (\(contestant.level.rawValue)): prepare")
            _ = try execute(request(workload, contestant, folder, preparing: true, round: 0))
        }
        for round in 0..<rounds {
            var checks = CheckTable()
            for contestant in present {
                guard let folder = folders[contestant.key] else { continue }
                progress(
                    "\(workload.id): round \(round + 1) of \(rounds): \(contestant.name) "
                        + "(\(contestant.level.rawValue))"
                )
                let data = try execute(
                    request(workload, contestant, folder, preparing: false, round: round)
                )
                let outcome = try JSONDecoder().decode(Outcome.self, from: data)
                try checks.add(outcome.checks, from: contestant.key)
                report.add(outcome, level: contestant.level, engine: contestant.name)
            }
        }
        for folder in folders.values { try removeFolder(folder) }
    }

    private func request(
        _ workload: Workload,
        _ contestant: Contestant,
        _ folder: String,
        preparing: Bool,
        round: Int
    ) -> ProcessRequest {
        ProcessRequest(
            workload: workload.id,
            contestant: contestant.key,
            preparing: preparing,
            session: Session(directory: folder, scale: scale, round: round, seed: seed)
        )
    }
}

/// The sums of one round: the first contestant sets them, the others must agree.
public struct CheckTable: Sendable {
    private var sums: [String: (value: UInt64, contestant: String)] = [:]

    /// Begins empty.
    public init() {}

    /// Adds a contestant's sums; throws when one differs from what another found.
    public mutating func add(_ checks: [String: UInt64], from contestant: String) throws {
        for (name, value) in checks.sorted(by: { $0.key < $1.key }) {
            if let first = sums[name] {
                guard first.value == value else {
                    throw BenchmarkError(
                        "\(name): \(contestant) did other work than \(first.contestant): "
                            + "sums \(value) and \(first.value)"
                    )
                }
            } else {
                sums[name] = (value, contestant)
            }
        }
    }
}

/// Runs requests by starting this very program again.
public enum ChildProcess {
    /// Starts `program measure REQUEST` and returns what it printed.
    public static func execute(_ request: ProcessRequest, program: String) throws -> Data {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        let text = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
        process.arguments = ["measure", text]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw BenchmarkError(
                "\(request.workload): \(request.contestant) failed "
                    + "(status \(process.terminationStatus))"
            )
        }
        return data
    }

    /// Does what a request asks for; the other side of `execute`.
    public static func answer(_ text: String, workloads: [Workload]) throws -> Data {
        let request = try JSONDecoder().decode(ProcessRequest.self, from: Data(text.utf8))
        guard let workload = workloads.first(where: { $0.id == request.workload }),
            let contestant = workload.contestants.first(where: { $0.key == request.contestant })
        else { throw BenchmarkError("no contestant \(request.contestant)") }
        if request.preparing {
            try contestant.prepare?(request.session)
            return Data()
        }
        return try JSONEncoder().encode(contestant.measure(request.session))
    }
}
