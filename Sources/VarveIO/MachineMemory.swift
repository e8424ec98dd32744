// Seam: how much memory the machine has, and how much of it is left.
//
// Invariants
// - Figures are advice: what is not known is nil, and nobody fails for want of it.
// - A control group's limit counts where it is lower than what the machine has, and what is left is
//   the least share of any level: whichever is full first is what the process meets. Files that the
//   system keeps in memory are left, as in its own figure for the whole machine.

internal import CVarve

/// Memory of the machine, or of the control group that this process runs in.
public struct MachineMemory: Hashable, Sendable {
    /// Bytes that this process and its neighbours may use together.
    public var bytes: UInt64
    /// The share of it, 0 to 1, that can be had now without swapping; nil where the system does not
    /// say.
    public var leftShare: Double?

    /// Figures as given.
    public init(bytes: UInt64, leftShare: Double?) {
        self.bytes = bytes
        self.leftShare = leftShare
    }

    fileprivate init(bytes: UInt64, leftBytes: UInt64?) {
        self.bytes = bytes
        leftShare = leftBytes.map { bytes == 0 ? 0 : Double(min($0, bytes)) / Double(bytes) }
    }

    /// What the system says now; nil: it says nothing. Some small files are read, which takes
    /// tens of microseconds.
    public static func now() -> MachineMemory? {
        #if canImport(Darwin)
        let bytes = varve_memory_bytes()
        if bytes == 0 { return nil }
        let percent = varve_memory_percent_left()
        return MachineMemory(bytes: bytes, leftShare: percent < 0 ? nil : Double(percent) / 100)
        #else
        return MachineMemory(reading: SystemCalls.beginning)
        #endif
    }

    /// Gives memory that was freed back to the system. The allocator keeps it otherwise, for what
    /// comes next: up to milliseconds of work.
    public static func giveFreedBack() { varve_give_free_memory_back() }

    // MARK: Linux

    /// What the files of a Linux system say: `/proc/meminfo`, and the control groups of both
    /// versions (cgroups(7)), each of which may limit those below it.
    package init?(reading text: (String) -> String?) {
        guard let meminfo = text("/proc/meminfo"),
            let total = Self.kilobytes("MemTotal:", in: meminfo)
        else { return nil }
        self.init(bytes: total, leftBytes: Self.kilobytes("MemAvailable:", in: meminfo))
        for group in Self.groups(text("/proc/self/cgroup") ?? "") {
            var path = group.path
            while true {
                let limit = group.version.memory(of: group.root + path, text)
                if let limit { lower(to: limit) }
                guard let slash = path.lastIndex(of: "/") else { break }
                path = String(path[..<slash])
            }
        }
    }

    private mutating func lower(to limit: MachineMemory) {
        bytes = min(bytes, limit.bytes)
        guard let left = limit.leftShare else { return }
        leftShare = min(leftShare ?? left, left)
    }

    private static func kilobytes(_ name: String, in text: String) -> UInt64? {
        number(name, in: text).flatMap { number in
            let (bytes, overflow) = number.multipliedReportingOverflow(by: 1024)
            return overflow ? nil : bytes
        }
    }

    /// The number behind a name at the beginning of a line.
    fileprivate static func number(_ name: String, in text: String) -> UInt64? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count >= 2, words[0] == name { return UInt64(words[1]) }
        }
        return nil
    }

    // MARK: Control groups

    private enum GroupVersion {
        case one, two

        /// What a group allows, if it sets a limit.
        func memory(of folder: String, _ text: (String) -> String?) -> MachineMemory? {
            let (limitName, usedName, prefix) =
                switch self {
                case .one: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
                case .two: ("memory.max", "memory.current", "")
                }
            // Version 2 says "max" where there is none, version 1 a number beyond any machine's.
            guard let limit = whole(text(folder + "/" + limitName)) else { return nil }
            guard let used = whole(text(folder + "/" + usedName)) else {
                return MachineMemory(bytes: limit, leftShare: nil)
            }
            let statistics = text(folder + "/memory.stat") ?? ""
            var busy = used
            for name in ["inactive_file", "active_file"] {
                busy -= min(busy, MachineMemory.number(prefix + name, in: statistics) ?? 0)
            }
            return MachineMemory(bytes: limit, leftBytes: limit - min(limit, busy))
        }

        private func whole(_ text: String?) -> UInt64? {
            text.flatMap { UInt64($0.prefix { $0.isASCII && $0.isNumber }) }
        }
    }

    private struct Group {
        var version: GroupVersion
        var root: String
        var path: String
    }

    /// The groups of the process that may limit memory: lines `number:controllers:path`.
    private static func groups(_ text: String) -> [Group] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            // The root group has no limit of its own.
            let path = parts[2] == "/" ? "" : String(parts[2])
            if parts[0] == "0", parts[1].isEmpty {
                return Group(version: .two, root: "/sys/fs/cgroup", path: path)
            }
            guard parts[1].split(separator: ",").contains("memory") else { return nil }
            return Group(version: .one, root: "/sys/fs/cgroup/memory", path: path)
        }
    }
}
