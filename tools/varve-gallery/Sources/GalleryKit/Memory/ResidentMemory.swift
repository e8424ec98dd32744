// How much memory of this process is resident, now and at most.

import CMalloc
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Resident memory of this process, in bytes, as Linux counts it.
///
/// `current` is the second number of `/proc/self/statm` times the page size: heap, stacks and the
/// touched pages of program and libraries. The page cache of files that were read is not part of
/// it.
final class ResidentMemory {
    private let counts: FileHandle
    private let pageSize: Int
    private let highWaterMarkIsOurs: Bool

    /// The highest value that `sample()` has seen.
    private(set) var sampledPeak = 0

    /// Gives freed heap pages back to the system, then starts the high-water mark of the kernel
    /// anew, so that what happened before does not count. Where the kernel refuses that (some
    /// containers), only samples count.
    init() throws {
        guard let counts = FileHandle(forReadingAtPath: "/proc/self/statm") else {
            throw GalleryError(
                "resident memory cannot be measured here: /proc/self/statm is missing"
            )
        }
        self.counts = counts
        pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
        Self.giveFreedMemoryBack()
        do {
            let control = try FileHandle(forWritingTo: URL(filePath: "/proc/self/clear_refs"))
            try control.write(contentsOf: Data("5".utf8))
            try control.close()
            highWaterMarkIsOurs = true
        } catch {
            highWaterMarkIsOurs = false
        }
    }

    deinit { try? counts.close() }

    /// Asks the C library to return the free pages of its heap.
    static func giveFreedMemoryBack() {
        gallery_give_freed_memory_back()
    }

    /// Resident bytes now; remembered for `sampledPeak`.
    func sample() throws -> Int {
        try counts.seek(toOffset: 0)
        let text = String(decoding: try counts.read(upToCount: 256) ?? Data(), as: UTF8.self)
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else {
            throw GalleryError("/proc/self/statm is not as expected")
        }
        sampledPeak = max(sampledPeak, pages * pageSize)
        return pages * pageSize
    }

    /// The most that was resident since this value was made: the kernel's high-water mark
    /// (`VmHWM`), which misses nothing between two samples, or the highest sample if that is more
    /// or the mark could not be started anew.
    func peak() throws -> Int {
        guard highWaterMarkIsOurs,
            let status = FileManager.default.contents(atPath: "/proc/self/status"),
            let line = String(decoding: status, as: UTF8.self)
                .split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let kibibytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
        else { return sampledPeak }
        return max(sampledPeak, kibibytes * 1_024)
    }
}
