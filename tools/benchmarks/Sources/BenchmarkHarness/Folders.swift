// Folders of a measurement.

internal import CFlushCount
import Foundation

/// Makes an empty folder inside another and returns its path.
public func makeFolder(_ parent: String, _ name: String) throws -> String {
    let path = parent + "/" + name
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
}

/// Removes a folder and what is in it.
public func removeFolder(_ path: String) throws {
    try FileManager.default.removeItem(atPath: path)
}

/// Bytes of the files of a folder as their lengths say, folders inside included.
public func bytesOnDisk(_ folder: String) throws -> UInt64 {
    var sum: UInt64 = 0
    try forEachFile(folder) { path in
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        sum += (attributes[.size] as? NSNumber)?.uint64Value ?? 0
    }
    return sum
}

/// Copies the files of a folder into another, and waits until they are on disk: what is measured
/// afterwards shall not pay for the copy.
public func copyFolder(_ source: String, to target: String) throws {
    try FileManager.default.copyItem(atPath: source, toPath: target)
    try forEachFile(target) { try syncFile($0) }
}

/// Drops the pages of a folder's files from the page cache.
///
/// - Returns: whether none is left there, as the kernel says.
public func dropFromPageCache(_ folder: String) throws -> Bool {
    var left: Int64 = 0
    try forEachFile(folder) { path in
        guard drop_cached_pages(path) == 0 else {
            left += 1
            return
        }
        left += abs(cached_pages(path))
    }
    return left == 0
}

private func syncFile(_ path: String) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.synchronize()
    try file.close()
}

private func forEachFile(_ folder: String, _ body: (String) throws -> Void) throws {
    let manager = FileManager.default
    for path in try manager.subpathsOfDirectory(atPath: folder) {
        let attributes = try manager.attributesOfItem(atPath: folder + "/" + path)
        guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
        try body(folder + "/" + path)
    }
}
