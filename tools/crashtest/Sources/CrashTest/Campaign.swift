// The campaign: seeds one after the other, each through all parts, on several threads.

import Synchronization
import VarveTesting

/// Which case of a seed: "images/12/3", "errors/40", "flips/0/8192".
struct CaseName: Equatable, CustomStringConvertible {
    var part: Part
    var numbers: [Int]

    init(_ part: Part, _ numbers: [Int]) {
        self.part = part
        self.numbers = numbers
    }

    init?(_ text: String) {
        let pieces = text.split(separator: "/").map(String.init)
        guard let first = pieces.first, let part = Part(rawValue: first) else { return nil }
        self.part = part
        numbers = pieces.dropFirst().compactMap { Int($0) }
        guard numbers.count == pieces.count - 1 else { return nil }
    }

    var description: String {
        ([part.rawValue] + numbers.map { "\($0)" }).joined(separator: "/")
    }

    /// Whether a case begins with these numbers, or they with it.
    func matches(_ part: Part, _ numbers: [Int]) -> Bool {
        part == self.part && zip(self.numbers, numbers).allSatisfy { $0 == $1 }
    }
}

/// What is done with a seed.
enum Part: String, CaseIterable, Sendable {
    /// Whole workloads of a sound disk.
    case work
    /// Power cuts at every call.
    case images
    /// Calls and reads that go wrong.
    case errors
    /// A flipped bit at every byte.
    case flips
}

/// What is wanted of a campaign.
struct Orders: Sendable {
    var seconds = 60.0
    /// Goes on until there are so many cases, ten times as long at most: machines differ.
    var casesMin = 0
    var seed: UInt64 = 1
    var seeds: Int?
    var jobs = 2
    var parts: Set<Part> = Set(Part.allCases)
    var plant: PlantedBug?
    var without: Set<Kind> = []
    var only: CaseName?
    /// One call in so many of a workload is crashed; every one if nil and the seed divides by 4.
    var sampling: UInt64?
    /// After so many violations the campaign ends.
    var violationsMax = 1
    var steps: Int?
}

/// One violation and how to see it again.
struct Finding: Sendable {
    var seed: UInt64
    var name: String
    var message: String
    var details: [String]
    /// Calls before it: fewer are easier to read.
    var size: Int
    var without: Set<Kind> = []
}

/// The counters that all threads share.
final class Tally: Sendable {
    private let values = Mutex((cases: 0, findings: [Finding]()))
    private let stopped = Atomic(false)
    let parts = Mutex<[Part: Int]>([:])
    let outcomes = Mutex<[String: Int]>([:])
    private let start = ContinuousClock.now
    private let nextSeed: Atomic<UInt64>
    let orders: Orders

    init(_ orders: Orders) {
        self.orders = orders
        nextSeed = Atomic(orders.seed)
    }

    /// The seed for whoever has nothing to do; nil when there are no more.
    func takeSeed() -> UInt64? {
        if isOver { return nil }
        let seed = nextSeed.wrappingAdd(1, ordering: .relaxed).oldValue
        let seeds = orders.only != nil ? 1 : orders.seeds
        return seeds.map { seed >= orders.seed + UInt64($0) } ?? false ? nil : seed
    }

    var cases: Int { values.withLock { $0.cases } }
    var findings: [Finding] { values.withLock { $0.findings } }
    var seconds: Double {
        let elapsed = ContinuousClock.now - start
        return Double(elapsed.components.seconds)
            + Double(elapsed.components.attoseconds) / 1e18
    }
    var isOver: Bool {
        if stopped.load(ordering: .relaxed) { return true }
        if orders.only != nil { return false }
        let seconds = seconds
        return seconds > orders.seconds
            && (cases >= orders.casesMin || seconds > 10 * orders.seconds)
    }

    func count(_ part: Part, _ cases: Int = 1) {
        values.withLock { $0.cases += cases }
        parts.withLock { $0[part, default: 0] += cases }
    }

    func note(_ outcome: String, _ count: Int = 1) {
        outcomes.withLock { $0[outcome, default: 0] += count }
    }

    func add(_ finding: Finding) {
        values.withLock { values in
            values.findings.append(finding)
            if values.findings.count >= orders.violationsMax {
                stopped.store(true, ordering: .relaxed)
            }
        }
    }
}

/// The cases of one seed.
struct SeedRun {
    let seed: UInt64
    let orders: Orders
    let tally: Tally
    let mix: Mix
    let random: SeededRandom

    init(_ seed: UInt64, _ tally: Tally) {
        self.seed = seed
        self.tally = tally
        orders = tally.orders
        random = SeededRandom(seed: seed)
        var chance = random.branch(1)
        var mix = Mix(&chance, without: orders.without)
        if let steps = orders.steps { mix.steps = steps }
        self.mix = mix
    }

    func run() {
        do {
            if orders.parts.contains(.flips) {
                try runFlips(
                    isComplete: orders.only != nil
                        || seed == orders.seed && orders.parts == [.flips]
                )
            }
            if orders.parts == [.flips] || tally.isOver { return }
            if orders.parts.contains(.work) { runWork() }
            if orders.parts.isDisjoint(with: [.errors, .images]) || tally.isOver { return }
            let recorded = try record()
            if orders.parts.contains(.errors) { try runErrors(recorded) }
            if orders.parts.contains(.images) { try runImages(recorded) }
        } catch {
            report(CaseName(.images, []), error, size: 0)
        }
    }

    func wants(_ part: Part, _ numbers: [Int]) -> Bool {
        orders.only?.matches(part, numbers) ?? true
    }

    func report(
        _ name: CaseName,
        _ error: any Error,
        details: [String] = [],
        size: Int
    ) {
        let message = (error as? Violation)?.message ?? "an error that must not be: \(error)"
        tally.add(
            Finding(
                seed: seed,
                name: name.description,
                message: message,
                details: details,
                size: size,
                without: orders.without
            )
        )
    }

    /// The workload, recorded. The same seed twice must make the same calls.
    func record() throws -> Recorded {
        let first = try recordOnce()
        if seed % 8 == 0 || orders.only != nil {
            let second = try recordOnce()
            if first.recording.digest != second.recording.digest {
                throw Violation("the same seed twice gave another sequence of calls")
            }
        }
        return first
    }

    private func recordOnce() throws -> Recorded {
        let disk = SimulatedDisk()
        disk.record()
        let work = try Workload(disk, mix, random.branch(2), plant: orders.plant)
        for _ in 0..<mix.steps { try work.step() }
        let recording = disk.takeRecording()
        work.countWork()
        for (name, count) in work.work { tally.note(name, count) }
        disk.kill()
        if let violation = disk.violations.first { throw Violation(violation) }
        return Recorded(
            recording: recording,
            states: work.states,
            contents: work.contents
        )
    }
}

/// What one seed's workload did.
struct Recorded {
    let recording: DiskRecording
    let states: [UInt64: Model]
    let contents: [BlobReference: [UInt8]]
}

/// Runs seeds until the time is over, or as many as are wanted.
func runCampaign(_ orders: Orders) async -> Tally {
    let tally = Tally(orders)
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<(orders.only == nil ? orders.jobs : 1) {
            group.addTask {
                while let seed = tally.takeSeed() { SeedRun(seed, tally).run() }
            }
        }
    }
    return tally
}
