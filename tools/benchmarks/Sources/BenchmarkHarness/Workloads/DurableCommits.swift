// Workload b: one-row durable commits with both indexes, one after another.

extension Workload {
    /// Names of workload b's numbers.
    public enum DurableCommits {
        /// Mean time of a commit.
        public static let mean = "b, durable, mean of one saver"
        /// Median time of a commit.
        public static let median = "b, durable, median of one saver"
        /// Time that 99 of 100 commits stay under.
        public static let slow = "b, durable, p99 of one saver"
        /// Bytes handed to write calls per commit.
        public static let bytes = "b, bytes to the kernel"
    }
}

extension Contestant {
    /// A peer in workload b.
    public static func durableCommits<Peer: DurableCommitPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        Contestant(
            name: name,
            level: level,
            missing: missing,
            prepare: { session in
                let peer = try Peer(directory: session.directory, options: options)
                let count = Int64(session.scale.rowsBeforeCommits)
                try peer.insert(Item.rows(1...count, seed: session.seed))
                try peer.close()
            },
            measure: { session in
                try measureCommits(
                    Peer(directory: session.directory, options: options),
                    name,
                    session
                )
            }
        )
    }

    private static func measureCommits<Peer: DurableCommitPeer>(
        _ peer: Peer,
        _ name: String,
        _ session: Session
    ) throws -> Outcome {
        typealias Names = Workload.DurableCommits
        let count = session.scale.commits
        let first = Int64(session.scale.rowsBeforeCommits + session.round * count + 1)
        let items = Item.rows(first...first + Int64(count) - 1, seed: session.seed)
        var times: [Double] = []
        times.reserveCapacity(count)
        let bytesBefore = ProcessCounters.bytesWritten
        for item in items {
            let start = monotonicNanoseconds()
            try peer.commit(item)
            times.append(Double(monotonicNanoseconds() &- start) / 1e9)
        }
        let bytesAfter = ProcessCounters.bytesWritten
        var outcome = Outcome()
        let sum = times.reduce(0, +)
        times.sort()
        outcome.readings.append(.time(Names.mean, sum / Double(count)))
        if let median = percentile(0.5, ofSorted: times),
            let slow = percentile(0.99, ofSorted: times)
        {
            outcome.readings.append(.time(Names.median, median))
            outcome.readings.append(.time(Names.slow, slow))
        }
        if let bytesBefore, let bytesAfter {
            let bytes = Double(bytesAfter - bytesBefore) / Double(count)
            outcome.readings.append(.size(Names.bytes, bytes))
        }
        try peer.close()
        // What a new connection finds is what was saved.
        outcome.checks[Names.mean] = try reopenedHash(Peer.self, name, session)
        return outcome
    }

    private static func reopenedHash<Peer: DurableCommitPeer>(
        _ type: Peer.Type,
        _ name: String,
        _ session: Session
    ) throws -> UInt64 {
        let scale = session.scale
        let expected = scale.rowsBeforeCommits + (session.round + 1) * scale.commits
        let peer = try Peer(directory: session.directory, options: PeerOptions())
        let hash = try peer.contentHash()
        try peer.close()
        guard hash.rows == UInt64(expected) else {
            throw BenchmarkError("\(name): \(hash.rows) of \(expected) rows are there")
        }
        return hash.value
    }
}
