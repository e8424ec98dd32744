// What the machine itself can do with rows in memory: limits beside d, f, h, i and k.

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

extension Contestant {
    /// Beside d: packed rows of one array in random order, every column decoded.
    public static let rowWalk = Contestant(
        name: "limit: packed rows in memory, in random order",
        level: .machine
    ) { session in
        let rows = PackedRows(session)
        let order = session.differentIDs(count: session.scale.rows, purpose: 6)
        func walk(_ ids: some Sequence<Int64>) -> RowFold {
            var fold = RowFold()
            rows.bytes.withUnsafeBytes { all in
                for id in ids {
                    let place = all[rows.places[Int(id) - 1]...]
                    PackedRow(bytes: UnsafeRawBufferPointer(rebasing: place))
                        .fold(id: 0, into: &fold)
                }
            }
            return fold
        }
        let all = timed { walk(order) }
        let page = timed { (0..<100).map { _ in walk(order.prefix(50)).value } }
        guard all.result.rows == UInt64(order.count), Set(page.result).count == 1 else {
            throw BenchmarkError("rows are missing")
        }
        var outcome = Outcome()
        outcome.readings.append(.time(Workload.OrderedScan.all, all.seconds))
        outcome.readings.append(.time(Workload.OrderedScan.first, page.seconds / 100))
        outcome.readings.append(.time(Workload.OrderedScan.middle, page.seconds / 100))
        return outcome
    }

    /// Beside k: packed rows of one array, one after another, one column looked at.
    public static let rowFilter = Contestant(
        name: "limit: packed rows in memory, filtered",
        level: .machine
    ) { session in
        let rows = PackedRows(session)
        func count(_ wanted: Int64) -> Int {
            rows.bytes.withUnsafeBytes { all in
                rows.places.reduce(0) { sum, place in
                    let row = PackedRow(bytes: UnsafeRawBufferPointer(rebasing: all[place...]))
                    return row.count == wanted ? sum + 1 : sum
                }
            }
        }
        _ = count(0)
        let time = timed { count(Int64(Item(id: 1, seed: session.seed).count)) }
        guard time.result > 0 else { throw BenchmarkError("no row passed") }
        var outcome = Outcome()
        outcome.readings.append(.time(Workload.Queries.predicateScan, time.seconds))
        outcome.readings.append(.time(Workload.Queries.distinct, time.seconds))
        return outcome
    }

    /// Beside f: the changed rows, packed, written to a new file and synced.
    public static let changedRows = Contestant(
        name: "limit: the changed rows written and synced",
        level: .machine
    ) { session in
        var bytes: [UInt8] = []
        for id in session.differentIDs(count: session.scale.changes, purpose: 1) {
            PackedRow.append(Item(id: id, seed: session.seed), to: &bytes)
        }
        let time = try timed {
            try withFile(session.directory + "/changes", O_WRONLY | O_CREAT | O_TRUNC) { file in
                try writeAll(file, bytes, at: 0)
                try sync(file)
            }
        }
        var outcome = Outcome()
        typealias Names = Workload.BulkChanges
        for metric in [Names.plain, Names.indexed, Names.delete] {
            outcome.readings.append(.time(metric, time.seconds))
        }
        return outcome
    }

    /// Beside i: 100 packed rows over written space and one sync per commit.
    public static let syncedRows = Contestant(
        name: "limit: 16 KiB over written space, fdatasync",
        level: .machine
    ) { session in
        let page = [UInt8](repeating: 0x56, count: 16_384)
        let count = max(20, session.scale.commits / 4)
        var seconds = 0.0
        try withFile(session.directory + "/rows", O_WRONLY | O_CREAT) { file in
            for index in 0..<count { try writeAll(file, page, at: index * page.count) }
            try sync(file)
            seconds = try timed {
                for index in 0..<count {
                    try writeAll(file, page, at: index * page.count)
                    try sync(file)
                }
            }.seconds
        }
        var outcome = Outcome()
        outcome.readings.append(.rate(Workload.MixedWork.commits, Double(count) / seconds))
        return outcome
    }

    /// Beside h: a file opened and 4 KiB of it read, from the disk and from the page cache.
    public static let coldRead = Contestant(
        name: "limit: open and one 4 KiB read",
        level: .machine
    ) { session in
        typealias Names = Workload.Opening
        let path = session.directory + "/cold/file"
        _ = try makeFolder(session.directory, "cold")
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        guard file >= 0 else { throw BenchmarkError("cannot open \(path): errno \(errno)") }
        try writeAll(file, [UInt8](repeating: 0x56, count: 64 << 20), at: 0)
        try sync(file)
        close(file)
        var outcome = Outcome()
        for (metric, isCold) in [(Names.cold, true), (Names.warm, false)] {
            var times: [Double] = []
            for index in 0..<session.scale.openings {
                if isCold {
                    guard try dropFromPageCache(session.directory + "/cold") else {
                        return outcome
                    }
                }
                var page = [UInt8](repeating: 0, count: 4096)
                let time = timed {
                    let file = open(path, O_RDONLY)
                    defer { close(file) }
                    return pread(file, &page, 4096, off_t((index * 7 + 3) << 20 & 0x3F0_0000))
                }
                guard time.result == 4096 else { throw BenchmarkError("cannot read") }
                times.append(time.seconds)
            }
            if let median = Summary(times)?.median {
                outcome.readings.append(.time(metric, median))
            }
        }
        return outcome
    }

    /// Beside g: 1 MB into a file of its own and synced, with its folder; a copy in memory.
    public static let largeValues = Contestant(
        name: "limit: a file of its own, synced; a copy in memory",
        level: .machine
    ) { session in
        typealias Names = Workload.Blobs
        let bytes = blobBytes(1, Names.largeBytes, seed: session.seed)
        let folder = try makeFolder(session.directory, "values")
        var sum = BlobSum()
        let write = try timed {
            for index in 0..<session.scale.largeBlobs {
                let path = folder + "/\(index)"
                let file = open(path, O_WRONLY | O_CREAT, 0o600)
                guard file >= 0 else { throw BenchmarkError("cannot open \(path)") }
                defer { close(file) }
                try writeAll(file, bytes, at: 0)
                try sync(file)
                let directory = open(folder, O_RDONLY)
                defer { close(directory) }
                guard fsync(directory) == 0 else { throw BenchmarkError("cannot sync") }
            }
        }
        let read = timed {
            for _ in 0..<20 {
                let copy = [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
                    bytes.withUnsafeBytes {
                        UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0)
                    }
                    count = bytes.count
                }
                copy.withUnsafeBytes { sum.add($0) }
            }
        }
        guard sum.bytes == 20 * bytes.count else { throw BenchmarkError("the copies differ") }
        var outcome = Outcome()
        let each = write.seconds / Double(session.scale.largeBlobs)
        outcome.readings.append(.time(Names.writeLarge, each))
        outcome.readings.append(.time(Names.readLarge, read.seconds / 20))
        return outcome
    }
}

/// All rows of a run in one array.
private struct PackedRows {
    var bytes: [UInt8] = []
    var places: [Int] = []

    init(_ session: Session) {
        for id in 1...Int64(session.scale.rows) {
            places.append(bytes.count)
            PackedRow.append(Item(id: id, seed: session.seed), to: &bytes)
        }
    }
}
