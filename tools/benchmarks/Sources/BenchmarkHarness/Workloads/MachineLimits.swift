// What the machine itself can do, measured in the same run: the physical limit beside the results.

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

extension Contestant {
    /// Beside a: all rows, packed, written to a new file in one go and synced.
    public static let sequentialWrite = Contestant(
        name: "limit: the packed rows written and synced",
        level: .machine
    ) { session in
        var bytes: [UInt8] = []
        for id in 1...Int64(session.scale.rows) {
            PackedRow.append(Item(id: id, seed: session.seed), to: &bytes)
        }
        let path = session.directory + "/sequential"
        let time = try timed {
            try withFile(path, O_WRONLY | O_CREAT | O_TRUNC) { file in
                try writeAll(file, bytes, at: 0)
                try sync(file)
            }
        }
        var outcome = Outcome()
        outcome.readings.append(.time(Workload.BulkInsert.plain, time.seconds))
        outcome.readings.append(.time(Workload.BulkInsert.indexed, time.seconds))
        outcome.readings.append(.time(Workload.BulkInsert.indexedAfter, time.seconds))
        outcome.readings.append(.time(Workload.BulkChanges.compaction, time.seconds))
        outcome.readings.append(.size(Workload.BulkInsert.size, Double(bytes.count)))
        return outcome
    }

    /// Beside b: one 4 KiB write over space written before, and one sync, per commit.
    public static let syncedOverwrite = Contestant(
        name: "limit: 4 KiB over written space, fdatasync",
        level: .machine
    ) { session in
        let page = [UInt8](repeating: 0x56, count: 4096)
        var times: [Double] = []
        try withFile(session.directory + "/overwrite", O_WRONLY | O_CREAT) { file in
            for index in 0..<session.scale.commits { try writeAll(file, page, at: index * 4096) }
            try sync(file)
            for index in 0..<session.scale.commits {
                let start = monotonicNanoseconds()
                try writeAll(file, page, at: index * 4096)
                try sync(file)
                times.append(Double(monotonicNanoseconds() &- start) / 1e9)
            }
        }
        return commitTimes(times)
    }

    /// Beside b: the same with a file that grows.
    public static let syncedAppend = Contestant(
        name: "limit: 4 KiB appended, fdatasync",
        level: .machine
    ) { session in
        let page = [UInt8](repeating: 0x56, count: 4096)
        var times: [Double] = []
        try withFile(session.directory + "/append", O_WRONLY | O_CREAT | O_TRUNC) { file in
            for index in 0..<session.scale.commits {
                let start = monotonicNanoseconds()
                try writeAll(file, page, at: index * 4096)
                try sync(file)
                times.append(Double(monotonicNanoseconds() &- start) / 1e9)
            }
        }
        return commitTimes(times)
    }

    /// Beside c: a packed row copied out of one array by its number.
    public static let rowCopy = Contestant(
        name: "limit: copy of a packed row in memory",
        level: .machine
    ) { session in
        let width = 170
        let rows = [UInt8](repeating: 7, count: session.scale.rows * width)
        var random = SeededRandom(seed: session.seed)
        let places = (0..<session.scale.reads).map { _ in
            Int(random.below(UInt64(session.scale.rows))) * width
        }
        var row = [UInt8](repeating: 0, count: width)
        var sum: UInt64 = 0
        let time = timed {
            rows.withUnsafeBytes { source in
                row.withUnsafeMutableBytes { target in
                    guard let from = source.baseAddress, let to = target.baseAddress else { return }
                    for place in places {
                        memcpy(to, from + place, width)
                        sum &+= UInt64(target[0])
                    }
                }
            }
        }
        guard sum == UInt64(places.count) * 7 else { throw BenchmarkError("the copies differ") }
        var outcome = Outcome()
        let each = time.seconds / Double(places.count)
        outcome.readings.append(.time(Workload.RandomReads.memory, each))
        outcome.readings.append(.time(Workload.RandomReads.snapshot, each))
        return outcome
    }

    /// Beside e: packed rows in memory to handles, and to class objects with two strings.
    public static let rowBuilding = Contestant(
        name: "limit: packed rows in memory to objects",
        level: .machine
    ) { session in
        var bytes: [UInt8] = []
        var places: [Int] = []
        for id in 1...Int64(session.scale.listRows) {
            places.append(bytes.count)
            PackedRow.append(Item(id: id, seed: session.seed), to: &bytes)
        }
        let handles = timed { places.map { LazyHandle(place: $0) } }
        var sum = handles.result.reduce(0) { $0 &+ $1.place }
        let objects = timed { bytes.withUnsafeBytes { all in places.map { BuiltObject(all, $0) } } }
        sum &+= objects.result.reduce(0) { $0 &+ $1.title.utf8.count &+ $1.note.utf8.count }
        guard sum > 0 else { throw BenchmarkError("no rows were built") }
        var outcome = Outcome()
        outcome.readings.append(.time(Workload.SortedFetch.faults, handles.seconds))
        outcome.readings.append(.time(Workload.SortedFetch.filled, objects.seconds))
        return outcome
    }

    private static func commitTimes(_ times: [Double]) -> Outcome {
        typealias Names = Workload.DurableCommits
        var outcome = Outcome()
        let sorted = times.sorted()
        outcome.readings.append(
            .time(Names.mean, times.reduce(0, +) / Double(max(times.count, 1)))
        )
        if let median = percentile(0.5, ofSorted: sorted),
            let slow = percentile(0.99, ofSorted: sorted)
        {
            outcome.readings.append(.time(Names.median, median))
            outcome.readings.append(.time(Names.slow, slow))
        }
        return outcome
    }
}

/// An object that knows where its row lies and reads nothing yet.
private final class LazyHandle {
    let place: Int
    init(place: Int) { self.place = place }
}

/// An object with its values.
private final class BuiltObject {
    let timestamp: Double
    let title: String
    let note: String
    let count: Int64

    init(_ all: UnsafeRawBufferPointer, _ place: Int) {
        let row = PackedRow(bytes: UnsafeRawBufferPointer(rebasing: all[place...]))
        timestamp = row.timestamp
        title = String(decoding: row.title, as: UTF8.self)
        note = String(decoding: row.note, as: UTF8.self)
        count = row.count
    }
}

func withFile(_ path: String, _ flags: Int32, _ body: (Int32) throws -> Void) throws {
    let file = open(path, flags, 0o600)
    guard file >= 0 else { throw BenchmarkError("cannot open \(path): errno \(errno)") }
    defer {
        close(file)
        unlink(path)
    }
    try body(file)
}

func writeAll(_ file: Int32, _ bytes: [UInt8], at offset: Int) throws {
    var done = 0
    while done < bytes.count {
        let count = bytes.withUnsafeBytes { buffer in
            pwrite(
                file,
                buffer.baseAddress.map { $0 + done },
                buffer.count - done,
                off_t(offset + done)
            )
        }
        guard count > 0 else { throw BenchmarkError("cannot write: errno \(errno)") }
        done += count
    }
}

func sync(_ file: Int32) throws {
    #if canImport(Darwin)
    let result = fcntl(file, F_FULLFSYNC)
    #else
    let result = fdatasync(file)
    #endif
    guard result == 0 else { throw BenchmarkError("cannot sync: errno \(errno)") }
}
