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
    ///
    /// - Parameter soFar: called after each workload with all results until then.
    public func run(soFar: (Report) throws -> Void = { _ in }) throws -> Report {
        var report = Report()
        var stocks = Stocks()
        for (index, workload) in workloads.enumerated() {
            try run(workload, &stocks, into: &report)
            try soFar(report)
            let needed = workloads[(index + 1)...].flatMap(\.contestants).compactMap(Self.stockKey)
            try stocks.removeAll(but: Set(needed))
        }
        return report
    }

    /// Folders of filled stores by contestant and name.
    private struct Stocks {
        var folders: [String: String] = [:]

        mutating func removeAll(but needed: Set<String>) throws {
            for (key, folder) in folders where !needed.contains(key) {
                try removeFolder(folder)
                folders[key] = nil
            }
        }
    }

    private static func stockKey(_ contestant: Contestant) -> String? {
        guard contestant.missing == nil, let stock = contestant.stock else { return nil }
        return "\(contestant.key)/\(stock.name)"
    }

    /// Fills the contestant's store if it is not there yet, and returns its folder.
    private func stock(
        _ workload: Workload,
        _ contestant: Contestant,
        _ stocks: inout Stocks
    ) throws -> String {
        guard let key = Self.stockKey(contestant) else { return "" }
        if let folder = stocks.folders[key] { return folder }
        let folder = try makeFolder(directory, "stock-\(stocks.folders.count)-\(workload.id)")
        progress("\(workload.id): \(contestant.name) (\(contestant.level.rawValue)): fill")
        let session = Session(directory: folder, scale: scale, round: 0, seed: seed)
        _ = try execute(request(workload, contestant, session, preparing: true))
        stocks.folders[key] = folder
        return folder
    }

    private func run(
        _ workload: Workload,
        _ stocks: inout Stocks,
        into report: inout Report
    ) throws {
        for contestant in workload.contestants {
            guard let reason = contestant.missing else { continue }
            report.skip(contestant.name, reason: reason)
        }
        let present = workload.contestants.filter { $0.missing == nil }
        for contestant in present { _ = try stock(workload, contestant, &stocks) }
        let rounds = min(rounds, workload.roundsMax)
        for round in 0..<rounds {
            var checks = CheckTable()
            for contestant in present {
                progress(
                    "\(workload.id): round \(round + 1) of \(rounds): \(contestant.name) "
                        + "(\(contestant.level.rawValue))"
                )
                let folder = try makeFolder(directory, "work")
                let session = Session(
                    directory: folder,
                    stock: try stock(workload, contestant, &stocks),
                    scale: scale,
                    round: round,
                    seed: seed
                )
                let data = try execute(request(workload, contestant, session, preparing: false))
                try removeFolder(folder)
                let outcome = try JSONDecoder().decode(Outcome.self, from: data)
                try checks.add(outcome.checks, from: contestant.key)
                report.add(outcome, level: contestant.level, engine: contestant.name)
            }
        }
    }

    private func request(
        _ workload: Workload,
        _ contestant: Contestant,
        _ session: Session,
        preparing: Bool
    ) -> ProcessRequest {
        ProcessRequest(
            workload: workload.id,
            contestant: contestant.key,
            preparing: preparing,
            session: session
        )
    }
}
