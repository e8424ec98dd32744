// The fuzzer of the object layer: runs of random steps, and the shortest run that still fails.

import Foundation
import VarveObjects
import VarveTesting

/// What runs of random steps happen in.
protocol FuzzedWorld: AnyObject {
    /// - Parameter observes: whether somebody observes.
    init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws
    /// Whether it looks at commits before the newest one.
    static var looksBack: Bool { get }
    /// The store, as it was opened last.
    var container: PersistentContainer { get }
    /// What was done, to be read.
    var script: [String] { get }
    func step(_ number: UInt64) throws
    func finish() throws
    func end()
}

extension FuzzedWorld {
    static var looksBack: Bool { false }
}

/// Random edits in random contexts, held against a plain model.
enum GraphFuzz {
    /// A run that broke a promise.
    struct Finding: Error, CustomStringConvertible {
        let seed: UInt64
        let setup: UInt64
        let steps: [UInt64]
        let message: String
        let script: [String]

        var description: String {
            "seed \(seed): \(message)\n  " + script.joined(separator: "\n  ")
        }
    }

    /// Something keeps a container that nobody holds.
    private struct Kept: Error, CustomStringConvertible {
        let contexts: Int
        var description: String { "a closed container stays, with \(contexts) contexts" }
    }

    /// One run; its steps follow from the seed.
    /// - Throws: `Finding`, shrunk.
    ///
    /// - Parameters:
    ///   - observes: whether the contexts tell observers (`options` say so), and there are some.
    ///   - between: done to the store after every eighth step, so that nobody notices.
    static func run(
        _ world: any FuzzedWorld.Type = GraphWorld.self,
        seed: UInt64,
        options: ContainerOptions = ContainerOptions(),
        observes: Bool = false,
        between: Between? = nil
    ) throws {
        let found = finding(
            world,
            seed: seed,
            options: options,
            observes: observes,
            between: between
        )
        guard let found else { return }
        throw shrink(world, seed, found.setup, found.steps, options, observes, between)
    }

    typealias Between = (PersistentContainer) throws -> Void

    /// What the run of a seed finds, as long as it is; nil: nothing.
    static func finding(
        _ world: any FuzzedWorld.Type = GraphWorld.self,
        seed: UInt64,
        options: ContainerOptions,
        observes: Bool = false,
        between: Between? = nil
    ) -> Finding? {
        var random = SeededRandom(seed: seed)
        let setup = random.next()
        let steps = (0..<(16 + Int(random.next() % 90))).map { _ in random.next() }
        return attempt(world, seed, setup, steps, options, observes, between)
    }

    /// A run of an input: 8 bytes choose the relationships, each 3 bytes are a step.
    static func run(on input: [UInt8]) throws {
        guard input.count <= 512 else { return }
        var reader = InputReader(input)
        let setup = reader.number64()
        var steps: [UInt64] = []
        while !reader.isAtEnd {
            steps.append(reader.take(3).reduce(0) { $0 << 8 | UInt64($1) })
        }
        if let found = attempt(GraphWorld.self, 0, setup, steps, ContainerOptions(), false) {
            throw found
        }
    }

    /// Random inputs to begin with.
    @Sendable static func seeds() -> [(name: String, bytes: [UInt8])] {
        (0..<24).map { number in
            var random = SeededRandom(seed: UInt64(number))
            return ("run-\(number)", random.bytes(8 + 3 * (8 + 2 * number)))
        }
    }

    /// The steps as they are; nil: nothing was found.
    static func attempt(
        _ type: any FuzzedWorld.Type,
        _ seed: UInt64,
        _ setup: UInt64,
        _ steps: [UInt64],
        _ options: ContainerOptions,
        _ observes: Bool,
        _ between: Between? = nil
    ) -> Finding? {
        var script: [String] = []
        weak var container: PersistentContainer?
        func run() throws {
            var options = options
            // Nothing of the past is packed then.
            if type.looksBack { options.retention = .all }
            let world = try type.init(setup, options, observes: observes)
            defer {
                container = world.container
                script = world.script
                world.end()
            }
            for (place, step) in steps.enumerated() {
                try world.step(step)
                if place % 8 == 7 { try between?(world.container) }
            }
            try world.finish()
        }
        do {
            try run()
            // A container is kept by its contexts, and these by their objects, until they end.
            try waitUntilGone { container }
            return nil
        } catch {
            return Finding(
                seed: seed,
                setup: setup,
                steps: steps,
                message: "\(error)",
                script: script
            )
        }
    }

    /// Nothing keeps what nobody holds. Tasks of the main actor may, for a moment.
    private static func waitUntilGone(_ container: () -> PersistentContainer?) throws {
        for _ in 0..<200 {
            if container() == nil { return }
            usleep(10_000)
        }
        let contexts = container()?.statistics.contexts ?? 0
        throw Kept(contexts: contexts)
    }

    /// Takes steps out, many at once and then fewer, as long as something fails.
    static func shrink(
        _ world: any FuzzedWorld.Type,
        _ seed: UInt64,
        _ setup: UInt64,
        _ steps: [UInt64],
        _ options: ContainerOptions,
        _ observes: Bool,
        _ between: Between?
    ) -> Finding {
        guard var best = attempt(world, seed, setup, steps, options, observes, between) else {
            return Finding(
                seed: seed,
                setup: setup,
                steps: steps,
                message: "it failed once and not again",
                script: []
            )
        }
        var size = max(1, steps.count / 2)
        while size > 0 {
            var start = 0
            var isSmaller = false
            while start < best.steps.count {
                var fewer = best.steps
                fewer.removeSubrange(start..<min(fewer.count, start + size))
                if let found = attempt(world, seed, setup, fewer, options, observes, between) {
                    best = found
                    isSmaller = true
                } else {
                    start += size
                }
            }
            if !isSmaller || size > 1 { size /= 2 }
        }
        return best
    }
}
