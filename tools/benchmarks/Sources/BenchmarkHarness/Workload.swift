// What a workload is made of: contestants that do the same work, and what each run hands back.

/// Where a contestant takes part. Only contestants of one level are compared with each other.
public enum Level: String, Codable, Sendable {
    /// Below objects: the records layer against C libraries.
    case engine
    /// Objects against objects: the public API against GRDB's records.
    case object
    /// What the machine itself can do: the physical limit beside the results.
    case machine
}

/// How much work a run does.
public struct Scale: Codable, Equatable, Sendable {
    /// Rows of workloads a and c.
    public var rows: Int
    /// Rows in the store before workload b begins.
    public var rowsBeforeCommits: Int
    /// One-row durable commits of workload b.
    public var commits: Int
    /// Random reads of workload c inside one snapshot.
    public var reads: Int
    /// Random reads of workload c in a transaction of their own.
    public var isolatedReads: Int
    /// Rows of workload e.
    public var listRows: Int
    /// Repeated fetches of workload e.
    public var listRepeats: Int

    /// The sizes of the published results.
    public static let full = Scale(
        rows: 1_000_000,
        rowsBeforeCommits: 10_000,
        commits: 2_000,
        reads: 1_000_000,
        isolatedReads: 200_000,
        listRows: 40_000,
        listRepeats: 9
    )
    /// A few minutes.
    public static let quick = Scale(
        rows: 100_000,
        rowsBeforeCommits: 10_000,
        commits: 1_000,
        reads: 300_000,
        isolatedReads: 50_000,
        listRows: 40_000,
        listRepeats: 5
    )
    /// Seconds; only the checks of such a run mean anything.
    public static let smoke = Scale(
        rows: 600,
        rowsBeforeCommits: 100,
        commits: 20,
        reads: 500,
        isolatedReads: 50,
        listRows: 400,
        listRepeats: 2
    )
}

/// What one process of a measurement is told.
public struct Session: Codable, Sendable {
    /// A folder of the contestant's own; what `prepare` left there is there.
    public var directory: String
    /// How much to do.
    public var scale: Scale
    /// 0, 1, 2 … : which round this is.
    public var round: Int
    /// Seed of all random choices.
    public var seed: UInt64

    /// Joins the parts.
    public init(directory: String, scale: Scale, round: Int, seed: UInt64) {
        self.directory = directory
        self.scale = scale
        self.round = round
        self.seed = seed
    }
}

/// One measured number. Times are in seconds, sizes in bytes; the report chooses the prefix.
public struct Reading: Codable, Equatable, Sendable {
    /// The workload as the goals name it, for example "e, faults".
    public var metric: String
    /// "s", "bytes" or "1/s".
    public var unit: String
    /// The number.
    public var value: Double
    /// Which way is good.
    public var better: Preference

    /// A time in seconds.
    public static func time(_ metric: String, _ seconds: Double) -> Reading {
        Reading(metric: metric, unit: "s", value: seconds, better: .less)
    }

    /// A size in bytes.
    public static func size(_ metric: String, _ bytes: Double) -> Reading {
        Reading(metric: metric, unit: "bytes", value: bytes, better: .less)
    }
}

/// What one process of a measurement hands back.
public struct Outcome: Codable, Sendable {
    /// The numbers.
    public var readings: [Reading] = []
    /// Sum by name of what was done: equal between all contestants of a round, or the run fails.
    public var checks: [String: UInt64] = [:]

    /// Begins empty.
    public init() {}
}

/// One way of doing a workload's work.
public struct Contestant: Sendable {
    /// As it stands in the output: library and settings.
    public var name: String
    /// Whom it is compared with.
    public var level: Level
    /// Why it cannot take part on this machine; nil when it can.
    public var missing: String?
    /// Runs once before the rounds in a process of its own.
    public var prepare: (@Sendable (Session) throws -> Void)?
    /// Runs once per round in a process of its own.
    public var measure: @Sendable (Session) throws -> Outcome

    /// Joins the parts.
    public init(
        name: String,
        level: Level,
        missing: String? = nil,
        prepare: (@Sendable (Session) throws -> Void)? = nil,
        measure: @escaping @Sendable (Session) throws -> Outcome
    ) {
        self.name = name
        self.level = level
        self.missing = missing
        self.prepare = prepare
        self.measure = measure
    }

    /// Level and name: unique inside a workload.
    public var key: String { "\(level.rawValue)/\(name)" }
}

/// A piece of work and all who do it.
public struct Workload: Sendable {
    /// The letter of the workload.
    public var id: String
    /// One line for the table.
    public var title: String
    /// In the order in which they take turns.
    public var contestants: [Contestant]

    /// Joins the parts.
    public init(id: String, title: String, contestants: [Contestant]) {
        self.id = id
        self.title = title
        self.contestants = contestants
    }
}

/// Something that makes a measurement worthless.
public struct BenchmarkError: Error, CustomStringConvertible {
    /// What happened, for people.
    public var description: String

    /// Says what happened.
    public init(_ description: String) { self.description = description }
}
