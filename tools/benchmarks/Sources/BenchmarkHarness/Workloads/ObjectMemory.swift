// Workload r: what 10,000 objects with all their values take of memory.

extension Workload {
    /// Names of workload r's numbers.
    public enum ObjectMemory {
        /// Bytes from the allocator for each object, values included, once everything was read
        /// before: caches have what they keep.
        public static let object = "r, memory of an object, 10,000 filled"
        /// What the process grows by, from the opened store to the first 10,000 objects, with the
        /// caches that are filled on the way.
        public static let resident = "r, resident growth to 10,000 filled objects"
    }
}

extension Contestant {
    /// A peer in workload r.
    public static func objectMemory<Peer: FilledObjectsPeer>(
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
            stock: .items(type, options),
            measure: { session in
                typealias Names = Workload.ObjectMemory
                var outcome = Outcome()
                let count = min(session.scale.registered, session.scale.rows)
                let peer = try Peer(directory: session.stock, options: options)
                /// What `memory` says more once the objects are there.
                func growth(_ memory: () -> UInt64?) throws -> Double? {
                    guard let before = memory() else { return nil }
                    let objects = try peer.firstObjects(count)
                    let fold = peer.readEveryProperty(of: objects)
                    guard fold.rows == UInt64(count) else {
                        throw BenchmarkError("\(name): \(fold.rows) of \(count) objects")
                    }
                    outcome.checks[Names.object] = fold.value
                    return withExtendedLifetime(objects) {
                        memory().map { Double($0) - Double(before) }
                    }
                }
                if let bytes = try growth({ ProcessCounters.residentBytes }) {
                    outcome.readings.append(.size(Names.resident, bytes))
                }
                // Twice: what the first time left behind is there before the second.
                peer.trimRows()
                _ = try growth { ProcessCounters.allocatedBytes }
                peer.trimRows()
                if let bytes = try growth({ ProcessCounters.allocatedBytes }) {
                    outcome.readings.append(.size(Names.object, bytes / Double(count)))
                } else {
                    outcome.missing[Names.object] = "the C library does not say what is allocated"
                }
                try peer.close()
                return outcome
            }
        )
    }
}
