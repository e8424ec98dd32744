// One kind of read, again and again and nothing else, for a profiler that counts calls
// (`tools/benchmarks/count-calls`).

import ArgumentParser
import BenchmarkHarness
import VarveTesting

struct Calls: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "calls",
        abstract: "Repeats one kind of read, for a profiler that counts calls."
    )

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case point, list, scan, count, page, offset
    }

    /// A quarter of the rows have such a timestamp.
    private static let range = 78_840_000.25...157_680_000.75

    @Option(help: "Where the store is, or is made.")
    var directory: String
    @Option(help: "Rows of the store.")
    var rows = 20_000
    @Option(help: "What is read, or asked; left out, the store is made.")
    var read: Kind?
    @Flag(help: "Packs the rows of a store that is made, as a compaction does.")
    var packed = false
    @Flag(help: "Asks through the public API: count, page and offset only.")
    var objects = false
    @Option(help: "How often each row is read.")
    var passes = 1

    func validate() throws {
        if read != nil, packed { throw ValidationError("--packed is for making a store.") }
        if objects, let read, read != .count, read != .page, read != .offset {
            throw ValidationError("--objects reads count, page and offset.")
        }
    }

    func run() throws {
        if objects { return try runObjects() }
        var options = PeerOptions()
        options.rowCacheBytes = 0
        let peer = try VarveRecordPeer(directory: directory, options: options)
        guard let read else {
            try peer.insert(Item.rows(1...Int64(rows), seed: 1))
            if packed { try peer.compact() }
            return try peer.close()
        }
        let snapshot = try peer.store.snapshot()
        let ids = try snapshot.fetchIDs(RecordQuery(entity: peer.entity))
        // Every page is in memory from here on.
        var sum = try pass(.scan, snapshot, peer.record, ids)
        let times = try (0..<passes).map { _ in
            try timed {
                switch read {
                case .point, .list, .scan:
                    sum &+= try pass(read, snapshot, peer.record, ids)
                case .count:
                    sum &+= try peer.countRows(timestamps: Self.range)
                case .page: sum &+= Int(try peer.page(offset: 0, limit: 50).rows)
                case .offset: sum &+= Int(try peer.page(offset: rows / 2, limit: 50).rows)
                }
            }.seconds
        }
        if let summary = Summary(times) { print("median \(summary.median * 1e6) us") }
        print("\(ids.count) rows, \(passes) passes, sum \(sum)")
    }

    private func runObjects() throws {
        let peer = try VarveObjectPeer(directory: directory, options: PeerOptions())
        guard let read else {
            try peer.insert(Item.rows(1...Int64(rows), seed: 1))
            if packed { try peer.compact() }
            return try peer.close()
        }
        _ = try peer.scanSorted()
        var sum = 0
        let times = try (0..<passes).map { _ in
            try timed {
                switch read {
                case .count: sum &+= try peer.countRows(timestamps: Self.range)
                case .page: sum &+= Int(try peer.page(offset: 0, limit: 50).rows)
                case .offset: sum &+= Int(try peer.page(offset: rows / 2, limit: 50).rows)
                case .point, .list, .scan: break
                }
            }.seconds
        }
        if let summary = Summary(times) { print("median \(summary.median * 1e6) us") }
        print("\(passes) passes, sum \(sum)")
    }

    /// Reads every row once; the sum of their lengths.
    @inline(never)
    private func pass(
        _ kind: Kind,
        _ snapshot: RecordSnapshot,
        _ record: RecordEntity,
        _ ids: [ObjectID]
    ) throws -> Int {
        var sum = 0
        switch kind {
        case .point:
            // In an order of no page; a prime that divides no number of rows asked for here.
            for place in ids.indices {
                let id = ids[place &* 7_919 % ids.count]
                _ = try snapshot.withRow(record, id) { _, _, row in sum &+= row.count }
            }
        case .list:
            try snapshot.withRows(record, ids) { _, _, _, row in
                sum &+= row.count
                return true
            }
        case .scan:
            try snapshot.forEachRow(record) { _, _, _, row in
                sum &+= row.count
                return true
            }
        case .count, .page, .offset: break
        }
        return sum
    }
}
