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

/// What one process of a measurement is told.
public struct Session: Codable, Sendable {
    /// A folder of this process alone; it is removed afterwards.
    public var directory: String
    /// The contestant's store of the workload's stock, which nobody may change. Empty without one.
    public var stock: String
    /// How much to do.
    public var scale: Scale
    /// 0, 1, 2 … : which round this is.
    public var round: Int
    /// Seed of all random choices.
    public var seed: UInt64

    /// Joins the parts.
    public init(
        directory: String,
        stock: String = "",
        scale: Scale,
        round: Int,
        seed: UInt64
    ) {
        self.directory = directory
        self.stock = stock
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

    /// How often something happens per second.
    public static func rate(_ metric: String, _ perSecond: Double) -> Reading {
        Reading(metric: metric, unit: "1/s", value: perSecond, better: .more)
    }

    /// A number of things that cost something, or a share of something good.
    public static func number(
        _ metric: String,
        _ value: Double,
        unit: String,
        better: Preference = .less
    ) -> Reading {
        Reading(metric: metric, unit: unit, value: value, better: better)
    }
}

/// What one process of a measurement hands back.
public struct Outcome: Codable, Sendable {
    /// The numbers.
    public var readings: [Reading] = []
    /// What could not be measured, with the reason: shown, never a number.
    public var missing: [String: String] = [:]
    /// Sum by name of what was done: equal between all contestants of a round, or the run fails.
    public var checks: [String: UInt64] = [:]

    /// Begins empty.
    public init() {}
}

/// A store that is filled once, in a process of its own, and used by all rounds of every workload
/// that names it.
public struct Stock: Sendable {
    /// Equal names of one contestant mean the same store.
    public var name: String
    /// Fills the store in the session's directory.
    public var fill: @Sendable (Session) throws -> Void

    /// Joins the parts.
    public init(_ name: String, fill: @escaping @Sendable (Session) throws -> Void) {
        self.name = name
        self.fill = fill
    }
}

/// One way of doing a workload's work.
public struct Contestant: Sendable {
    /// As it stands in the output: library and settings.
    public var name: String
    /// Whom it is compared with.
    public var level: Level
    /// Why it cannot take part on this machine; nil when it can.
    public var missing: String?
    /// The store that must be there before it measures; nil when it makes its own.
    public var stock: Stock?
    /// Runs once per round in a process of its own.
    public var measure: @Sendable (Session) throws -> Outcome

    /// Joins the parts.
    public init(
        name: String,
        level: Level,
        missing: String? = nil,
        stock: Stock? = nil,
        measure: @escaping @Sendable (Session) throws -> Outcome
    ) {
        self.name = name
        self.level = level
        self.missing = missing
        self.stock = stock
        self.measure = measure
    }

    /// Level and name: unique inside a workload.
    public var key: String { "\(level.rawValue)/\(name)" }
}

/// A piece of work and all who do it.
public struct Workload: Sendable {
    /// The letter of the workload.
    public var id: String
    /// Further letters whose numbers come out of this work: j out of a and f.
    public var alsoMeasures: [String]
    /// One line for the table.
    public var title: String
    /// In the order in which they take turns.
    public var contestants: [Contestant]
    /// The most rounds that it gets: one where a round takes minutes.
    public var roundsMax: Int

    /// Joins the parts.
    public init(
        id: String,
        title: String,
        alsoMeasures: [String] = [],
        roundsMax: Int = .max,
        contestants: [Contestant]
    ) {
        self.id = id
        self.alsoMeasures = alsoMeasures
        self.roundsMax = roundsMax
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
