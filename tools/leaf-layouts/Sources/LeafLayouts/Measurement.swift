// Measuring layouts on one dataset: alternating rounds, medians, processor time, equal sums.

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// What one layout came to.
public struct Measurement: Sendable {
    /// The layout.
    public let layout: String
    /// Bytes a row in the file.
    public internal(set) var bytesPerRow = 0.0
    /// Rows in a leaf.
    public internal(set) var rowsPerLeaf = 0.0
    /// Millions of raw bytes that are encoded in a second.
    public internal(set) var encodedMegabytes = 0.0
    /// Nanoseconds for a random row with all columns, from a leaf that is not prepared.
    public internal(set) var rowNanoseconds = 0.0
    /// Nanoseconds for a random row as a packed row; 0 for layouts that have no such way.
    public internal(set) var packedRowNanoseconds = 0.0
    /// Nanoseconds for counting the rows of a leaf by a column, for each row.
    public internal(set) var filterNanoseconds = 0.0
    /// Nanoseconds for each row of a pass that decodes everything.
    public internal(set) var scanNanoseconds = 0.0
    /// Milliseconds for learning tables.
    public internal(set) var learningMilliseconds = 0.0
}

/// Two layouts did not give the same values.
public struct DifferentValues: Error {
    /// Which, and what was read.
    public let message: String
}

/// The rounds over one dataset.
public struct Measuring {
    private static let rounds = 5
    private let data: Dataset
    private let probes: [UInt64]

    /// Random rows of a dataset are read in an order from a seed.
    public init(_ data: Dataset, seed: UInt64, probes: Int = 20_000) {
        self.data = data
        var chance = SeededGenerator(seed: seed)
        self.probes = (0..<probes).map { _ in data.keys[chance.below(data.count)] }
    }

    /// Measures layouts in alternating rounds.
    public func run(_ layouts: [any LeafLayout]) throws -> [Measurement] {
        var results: [Measurement] = []
        var leaves: [Leaves] = []
        for layout in layouts {
            var result = Measurement(layout: layout.name)
            result.learningMilliseconds = Self.timed { layout.prepare(data) } * 1e3
            let made = try layout.encode(data)
            result.bytesPerRow = Double(made.storedBytes) / Double(data.count)
            result.rowsPerLeaf = Double(data.count) / Double(made.ranges.count)
            results.append(result)
            leaves.append(made)
        }
        try compare(layouts, leaves)
        var times = layouts.map { _ in [[Double]](repeating: [], count: 5) }
        for _ in 0..<Self.rounds {
            for index in layouts.indices {
                let round = try self.round(layouts[index], leaves[index])
                for (kind, seconds) in round.enumerated() { times[index][kind].append(seconds) }
            }
        }
        for index in layouts.indices {
            let medians = times[index].map { $0.sorted()[Self.rounds / 2] }
            results[index].encodedMegabytes = Double(data.rows.count) / medians[0] / 1e6
            results[index].rowNanoseconds = medians[1] * 1e9 / Double(probes.count)
            results[index].filterNanoseconds = medians[2] * 1e9 / Double(data.count)
            results[index].scanNanoseconds = medians[3] * 1e9 / Double(data.count)
            results[index].packedRowNanoseconds = medians[4] * 1e9 / Double(probes.count)
        }
        return results
    }

    /// That all layouts give the same values.
    public func compare(_ layouts: [any LeafLayout], _ leaves: [Leaves]) throws {
        var first: (Digest, Digest, Int)?
        for (layout, made) in zip(layouts, leaves) {
            let found = (
                try scan(layout, made), try rows(layout, made), try filter(layout, made)
            )
            if let first, first != found {
                throw DifferentValues(
                    message: "\(data.name), \(layout.name): \(found) instead of \(first)"
                )
            }
            first = found
        }
    }

    /// Seconds for encoding, random rows, a filter and a pass.
    private func round(_ layout: any LeafLayout, _ leaves: Leaves) throws -> [Double] {
        let encoding = try Self.timed { _ = try layout.encode(data) }
        // Finding the leaf is the inner nodes' work, and the same for all layouts.
        let places = probes.map { (key: $0, leaf: leaves.leaf(of: $0)) }
        let reading = try Self.timed { _ = try Self.rows(layout, leaves, places) }
        // A filter over all leaves may take a millisecond only.
        let repeats = 5
        let filtering = try Self.timed {
            for _ in 0..<repeats { _ = try filter(layout, leaves) }
        }
        let passing = try Self.timed { _ = try scan(layout, leaves) }
        var packing = 0.0
        if let tuples = layout as? TupleLeaves {
            var bytes = 0
            packing = try Self.timed {
                try tuples.unpack(leaves, places) { _, row in bytes += row.count }
            }
            precondition(bytes > 0)
        }
        return [encoding, reading, filtering / Double(repeats), passing, packing]
    }

    private func rows(_ layout: any LeafLayout, _ leaves: Leaves) throws -> Digest {
        let places = probes.map { (key: $0, leaf: leaves.leaf(of: $0)) }
        return try Self.rows(layout, leaves, places)
    }

    @inline(never)
    private static func rows(
        _ layout: any LeafLayout,
        _ leaves: Leaves,
        _ places: [(key: UInt64, leaf: Int)]
    ) throws -> Digest {
        var digest = Digest()
        try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
            for (key, leaf) in places {
                try layout.row(
                    view.part(leaves.ranges[leaf]),
                    firstKey: leaves.firstKeys[leaf],
                    key,
                    &digest
                )
            }
        }
        return digest
    }

    @inline(never)
    private func filter(_ layout: any LeafLayout, _ leaves: Leaves) throws -> Int {
        var sum = 0
        try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
            for range in leaves.ranges {
                sum += try layout.count(
                    view.part(range),
                    column: data.filterColumn,
                    above: data.threshold
                )
            }
        }
        return sum
    }

    @inline(never)
    private func scan(_ layout: any LeafLayout, _ leaves: Leaves) throws -> Digest {
        var digest = Digest()
        try ByteView.lend(leaves.bytes) { (view) throws(LeafError) in
            for range in leaves.ranges { try layout.scan(view.part(range), &digest) }
        }
        return digest
    }

    /// Seconds of processor time that a body takes.
    private static func timed(_ body: () throws -> Void) rethrows -> Double {
        let start = processorSeconds
        try body()
        return processorSeconds - start
    }

    private static var processorSeconds: Double {
        var time = timespec()
        // The system fills the structure.
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
