// Time, and what the kernel counts for this process.

internal import CFlushCount

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// Nanoseconds of a clock that never goes back.
public func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Runs a body and returns its result and the seconds it took.
@inline(never)
public func timed<R>(_ body: () throws -> R) rethrows -> (result: R, seconds: Double) {
    let start = monotonicNanoseconds()
    let result = try body()
    let end = monotonicNanoseconds()
    return (result, Double(end &- start) / 1e9)
}

/// Counters of this process from the kernel; nil where the system has none.
public enum ProcessCounters {
    /// Bytes this process handed to write calls so far.
    public static var bytesWritten: UInt64? { number("wchar:", in: "/proc/self/io", scale: 1) }

    /// Bytes of memory that are resident now.
    public static var residentBytes: UInt64? {
        number("VmRSS:", in: "/proc/self/status", scale: 1024)
    }

    /// Bytes that were allocated and are not free; mapped files and stacks do not count.
    public static var allocatedBytes: UInt64? { UInt64(exactly: allocated_bytes()) }

    /// Seconds that all threads of this process spent on processors so far, the system's included.
    public static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The most bytes of memory that were resident since `resetPeak()`.
    public static var peakResidentBytes: UInt64? {
        number("VmHWM:", in: "/proc/self/status", scale: 1024)
    }

    /// Begins the peak anew at what is resident now.
    public static func resetPeak() {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return }
        fputs("5", file)
        fclose(file)
    }

    /// Flushes of the disk that this process asked for while `body` ran; nil where nothing counts
    /// them.
    public static func flushes<R>(during body: () throws -> R) rethrows -> (R, UInt64?) {
        let before = flush_count()
        flush_count_enable(1)
        defer { flush_count_enable(0) }
        let result = try body()
        let after = flush_count()
        return (result, before < 0 || after == before ? nil : UInt64(after - before))
    }

    private static func number(_ label: String, in path: String, scale: UInt64) -> UInt64? {
        for line in fileText(path).split(separator: "\n") where line.hasPrefix(label) {
            let digits = line.dropFirst(label.count).drop { $0 == " " || $0 == "\t" }
                .prefix { $0.isNumber }
            return UInt64(digits).map { $0 * scale }
        }
        return nil
    }
}

/// The text of a small file, empty when it cannot be read. Works for files without a size (/proc).
public func fileText(_ path: String) -> String {
    guard let file = fopen(path, "r") else { return "" }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 8192)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { break }
        bytes.append(contentsOf: buffer[0..<count])
    }
    return String(decoding: bytes, as: UTF8.self)
}
