// Folders of a measurement.

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
    let manager = FileManager.default
    var sum: UInt64 = 0
    for path in try manager.subpathsOfDirectory(atPath: folder) {
        let attributes = try manager.attributesOfItem(atPath: folder + "/" + path)
        guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
        sum += (attributes[.size] as? NSNumber)?.uint64Value ?? 0
    }
    return sum
}
