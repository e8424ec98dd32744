// Which machine the numbers are from.

import Foundation

/// What can be told about the machine that measures.
public struct Machine: Sendable {
    /// Lines for people.
    public var lines: [String]

    /// The machine of this process; the folder is where the stores will be.
    public static func current(directory: String) -> Machine {
        let info = ProcessInfo.processInfo
        var lines = [
            "machine: \(processorName()), \(info.activeProcessorCount) processors, "
                + "\(info.physicalMemory >> 30) GiB, \(info.operatingSystemVersionString)"
        ]
        if let system = fileSystem(directory) { lines.append("stores on: \(system)") }
        let load = fileText("/proc/loadavg").split(separator: " ").prefix(3).joined(separator: " ")
        if !load.isEmpty { lines.append("load before: \(load)") }
        return Machine(lines: lines)
    }

    private static func processorName() -> String {
        for line in fileText("/proc/cpuinfo").split(separator: "\n")
        where line.hasPrefix("model name") {
            return line.split(separator: ":").dropFirst().joined(separator: ":")
                .trimmingCharacters(in: .whitespaces)
        }
        return "unknown processor"
    }

    /// Kind of the file system that holds a folder: the longest mount point that is its prefix.
    private static func fileSystem(_ directory: String) -> String? {
        var best: (point: String, kind: String)?
        for line in fileText("/proc/mounts").split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 3 else { continue }
            let point = String(fields[1])
            let prefix = point == "/" ? "/" : point + "/"
            guard (directory + "/").hasPrefix(prefix) else { continue }
            if point.count >= (best?.point.count ?? 0) { best = (point, String(fields[2])) }
        }
        guard let best else { return nil }
        let warning = best.kind == "tmpfs" ? " (memory: commits cost nothing here)" : ""
        return best.kind + warning
    }
}
