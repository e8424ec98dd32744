// What the same work costs in stores of different sizes, up to 10 million rows.

extension Workload {
    /// Names of the numbers of the chart over size.
    public enum ScaleChart {
        /// What is measured at each size.
        public enum Figure: String, CaseIterable, Sendable {
            case insert = "rows inserted per second"
            case open = "open and first read"
            case read = "point read"
            case range = "range of 50"
            case commit = "durable commit"
        }

        /// Sizes of the chart; the last one only when it is asked for.
        public static let sizes = [10_000, 100_000, 1_000_000, 10_000_000]

        /// Name of a figure at a size.
        public static func metric(_ figure: Figure, rows: Int) -> String {
            "scale, \(figure.rawValue), \(rows) rows"
        }

        /// Rows of one transaction: loads of any size take bounded memory.
        public static let transactionRows = 100_000
    }
}

extension Contestant {
    /// A peer in the chart over size, at one size.
    public static func scaleChart<Peer: OrderedScanPeer & OpeningPeer & DurableCommitPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        rows: Int,
        missing: String? = nil
    ) -> Contestant {
        Contestant(name: name, level: level, missing: missing) { session in
            typealias Chart = Workload.ScaleChart
            var outcome = Outcome()
            let folder = try makeFolder(session.directory, "store")
            var peer = try Peer(directory: folder, options: options)
            let insert = try fill(peer, rows: rows, seed: session.seed)
            outcome.readings.append(.rate(Chart.metric(.insert, rows: rows), insert))
            try peer.settle()
            let saved = try peer.savedName(of: Int64(rows / 2), rows: rows)
            try peer.close()

            var times: [Double] = []
            for _ in 0...session.scale.openings {
                let opened = try timed {
                    let peer = try Peer(directory: folder, options: options)
                    guard try peer.read(savedName: saved).rows == 1 else {
                        throw BenchmarkError("\(name): the row is not there")
                    }
                    return peer
                }
                times.append(opened.seconds)
                try opened.result.close()
            }
            // The first one warms the code.
            if let median = Summary(Array(times.dropFirst()))?.median {
                outcome.readings.append(.time(Chart.metric(.open, rows: rows), median))
            }

            peer = try Peer(directory: folder, options: options)
            try peer.prepareToRead(rows: rows)
            var random = session.random(8)
            let ids = (0..<session.scale.isolatedReads).map { _ in
                1 + Int64(random.below(UInt64(rows)))
            }
            _ = try peer.read(ids: ids)
            let read = try timed { try peer.read(ids: ids) }
            outcome.readings.append(
                .time(Chart.metric(.read, rows: rows), read.seconds / Double(ids.count))
            )
            outcome.checks["read, \(rows)"] = read.result.value

            let starts = (0..<session.scale.pages).map { _ in
                Double(random.below(300_000_000_000)) / 1000
            }
            for start in starts { _ = try peer.range(from: start, limit: 50) }
            var sum: UInt64 = 0
            let range = try timed {
                for start in starts { sum &+= try peer.range(from: start, limit: 50).value }
            }
            outcome.readings.append(
                .time(Chart.metric(.range, rows: rows), range.seconds / Double(starts.count))
            )
            outcome.checks["range, \(rows)"] = sum

            let first = Int64(rows) + 1
            let count = max(10, session.scale.commits / 4)
            let items = Item.rows(first...first + Int64(count) - 1, seed: session.seed)
            let commits = try timed { for item in items { try peer.commit(item) } }
            outcome.readings.append(
                .time(Chart.metric(.commit, rows: rows), commits.seconds / Double(count))
            )
            try peer.close()
            return outcome
        }
    }

    /// Inserts rows in transactions of bounded size; making the rows is not timed.
    ///
    /// - Returns: rows per second.
    private static func fill(_ peer: some ItemPeer, rows: Int, seed: UInt64) throws -> Double {
        var seconds = 0.0
        var next = 1
        while next <= rows {
            let last = min(rows, next + Workload.ScaleChart.transactionRows - 1)
            let items = Item.rows(Int64(next)...Int64(last), seed: seed)
            seconds += try timed { try peer.insert(items) }.seconds
            next = last + 1
        }
        return Double(rows) / seconds
    }
}
