// The fuzz targets: each takes any bytes, and neither traps nor finds a promise broken.
//
// The same code runs in two ways: under libFuzzer with sanitizers (tools/fuzz/run), and over the
// corpus without them in the ordinary tests (Tests/FuzzTests).

/// One target.
public struct FuzzTarget: Sendable {
    /// Libfuzzer's own mutation of some bytes, of which there may be so many.
    public typealias Mutation = (_ bytes: [UInt8], _ most: Int) -> [UInt8]

    /// What it is called on the command line, and its folder in the corpus.
    public let name: String
    /// Runs one input. Throws `Violation` when a promise is broken.
    public let run: @Sendable (_ bytes: [UInt8]) throws -> Void
    /// The inputs that fuzzing begins with, by name.
    public let seeds: @Sendable () -> [(name: String, bytes: [UInt8])]
    /// Prepares what all runs share.
    public let prepare: @Sendable () -> Void
    /// Makes another input of one, from a number; nil for targets that need no help.
    public let mutate: (@Sendable ([UInt8], UInt64, Mutation) -> [UInt8])?

    init(
        _ name: String,
        seeds: @escaping @Sendable () -> [(name: String, bytes: [UInt8])],
        prepare: @escaping @Sendable () -> Void = {},
        mutate: (@Sendable ([UInt8], UInt64, Mutation) -> [UInt8])? = nil,
        run: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.name = name
        self.seeds = seeds
        self.prepare = prepare
        self.run = run
        self.mutate = mutate
    }

    /// All of them.
    public static let all: [FuzzTarget] = [
        FuzzTarget("open", seeds: stores) { try StoreChecks.run(on: $0) },
        FuzzTarget(
            "open-fixed",
            seeds: stores,
            mutate: { LogMutation.mutate($0, seed: $1, bytes: $2) },
            run: { try StoreChecks.run(on: $0) }
        ),
        FuzzTarget("tail", seeds: SmallSeeds.tail, prepare: { _ = SeedStore.all }) {
            try TailTarget.run($0)
        },
        FuzzTarget("record", seeds: SmallSeeds.record) { try CodingTargets.record($0) },
        FuzzTarget("key", seeds: SmallSeeds.key) { try CodingTargets.key($0) },
        FuzzTarget("names", seeds: SmallSeeds.names) { try NamesTarget.run($0) },
        FuzzTarget("model", seeds: SmallSeeds.model) { try ModelTarget.run($0) },
        FuzzTarget("predicate", seeds: SmallSeeds.predicate, prepare: PredicateTarget.prepare) {
            try PredicateTarget.run($0)
        },
        FuzzTarget("graph", seeds: GraphFuzz.seeds) { try GraphFuzz.run(on: $0) },
    ]

    @Sendable private static func stores() -> [(name: String, bytes: [UInt8])] {
        SeedStore.all.map { ($0.name, $0.bytes) }
    }
}

/// A promise that was broken.
public struct Violation: Error, CustomStringConvertible {
    /// What was seen.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// Reads an input piece by piece: zeros when it has ended.
struct InputReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number16() -> Int { Int(byte()) | Int(byte()) << 8 }

    mutating func number64() -> UInt64 {
        (0..<8).reduce(0) { number, index in number | UInt64(byte()) << UInt64(index * 8) }
    }

    mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, position + max(0, count))
        defer { position = end }
        return Array(bytes[position..<end])
    }

    mutating func rest() -> [UInt8] { take(bytes.count - position) }
}
