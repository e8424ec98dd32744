// Workload g: large values, each written durably and read whole.

extension Workload {
    /// Names of workload g's numbers.
    public enum Blobs {
        /// Bytes of a large blob.
        public static let largeBytes = 1_000_000
        /// Bytes of a small one.
        public static let smallBytes = 10_000
        /// Time to keep one large blob in a commit of its own.
        public static let writeLarge = "g, write 1 MB durable"
        /// Time to read one.
        public static let readLarge = "g, read 1 MB"
        /// Time to keep all small blobs in one commit.
        public static let writeSmall = "g, write 10 KB blobs in one commit"
        /// Time to read one.
        public static let readSmall = "g, read 10 KB"
    }
}

/// Bytes of a blob: a function of its number and the seed; compression gains nothing.
func blobBytes(_ id: Int64, _ count: Int, seed: UInt64) -> [UInt8] {
    var random = SeededRandom(seed: seed ^ (UInt64(bitPattern: id) &* 0xA24B_AED4_963E_E407))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        let bytes = UnsafeMutableRawBufferPointer(buffer)
        var offset = 0
        while offset < count {
            let width = min(8, count - offset)
            withUnsafeBytes(of: random.next()) { word in
                UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + width])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: word[..<width]))
            }
            offset += width
        }
        filled = count
    }
}

/// A sum over every 8 bytes, so that whoever reads a blob has really had all of it. Pieces have a
/// multiple of 8 bytes, but for the last.
struct BlobSum {
    private(set) var value: UInt64 = 0
    private(set) var bytes = 0

    mutating func add(_ piece: UnsafeRawBufferPointer) {
        var sum = value
        let words = piece.count / 8
        for index in 0..<words {
            sum &+= piece.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)
        }
        for index in words * 8..<piece.count { sum &+= UInt64(piece[index]) }
        value = sum
        bytes += piece.count
    }
}

extension Contestant {
    /// A peer in workload g.
    public static func blobs<Peer: BlobPeer>(
        _ name: String,
        _ level: Level,
        _ type: Peer.Type,
        _ options: PeerOptions = PeerOptions(),
        missing: String? = nil
    ) -> Contestant {
        Contestant(name: name, level: level, missing: missing) { session in
            typealias Names = Workload.Blobs
            var outcome = Outcome()
            for isLarge in [true, false] {
                let folder = try makeFolder(session.directory, "blobs")
                let peer = try Peer(blobDirectory: folder, options: options)
                let count = isLarge ? session.scale.largeBlobs : session.scale.smallBlobs
                let size = isLarge ? Names.largeBytes : Names.smallBytes
                let blobs = (1...Int64(count)).map {
                    (id: $0, bytes: blobBytes($0, size, seed: session.seed))
                }
                let write = try timed {
                    if isLarge {
                        for blob in blobs { try peer.store([blob]) }
                    } else {
                        try peer.store(blobs)
                    }
                }
                outcome.readings.append(
                    isLarge
                        ? .time(Names.writeLarge, write.seconds / Double(count))
                        : .time(Names.writeSmall, write.seconds)
                )
                let metric = isLarge ? Names.readLarge : Names.readSmall
                try peer.prepareToReadBlobs(count: count)
                var random = session.random(5)
                let ids = (0..<max(count, 2 * count)).map { _ in
                    1 + Int64(random.below(UInt64(count)))
                }
                var sum = BlobSum()
                for id in ids.prefix(count) { try peer.readBlob(id) { sum.add($0) } }
                sum = BlobSum()
                let read = try timed {
                    for id in ids { try peer.readBlob(id) { sum.add($0) } }
                }
                guard sum.bytes == ids.count * size else {
                    throw BenchmarkError("\(name): \(metric): \(sum.bytes) bytes")
                }
                outcome.checks[metric] = sum.value
                outcome.readings.append(.time(metric, read.seconds / Double(ids.count)))
                try peer.close()
                try removeFolder(folder)
            }
            return outcome
        }
    }
}
