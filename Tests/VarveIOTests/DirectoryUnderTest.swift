// Both implementations of the seam, so that every test of behaviour runs over each.

import Testing
import VarveBase
import VarveIO

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

enum Implementation: CaseIterable, CustomTestStringConvertible {
    case posix, memory

    var testDescription: String { self == .posix ? "POSIX" : "memory" }

    /// Runs a body in a fresh directory; on disk it is removed afterwards.
    func withDirectory(_ body: (any StoreDirectory) throws -> Void) throws {
        switch self {
        case .memory: try body(MemoryDirectory())
        case .posix: try withTemporaryPath { try body(try PosixDirectory.open(path: $0)) }
        }
    }
}

/// Runs a body with the path of a fresh directory, which is removed afterwards.
func withTemporaryPath(_ body: (String) throws -> Void) throws {
    let random = SystemEnvironment().randomNumber()
    let path = "/tmp/varve-io-\(String(random, radix: 16))"
    _ = try PosixDirectory.open(path: path, create: true)
    defer { removeTree(path) }
    try body(path)
}

#if os(Linux)
/// From here on this process makes no file longer: for processes of a test's own.
func limitFileSizes(to bytes: UInt64) throws {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    // The structure lives for the length of the calls.
    unsafe getrlimit(resource, &limit)
    limit.rlim_cur = rlim_t(bytes)
    let code = unsafe setrlimit(resource, &limit)
    try #require(code == 0)
}
#endif

private func removeTree(_ path: String) {
    if let directory = try? PosixDirectory.open(path: path) {
        for name in (try? directory.list()) ?? [] {
            if (try? directory.remove(name)) == nil { removeTree("\(path)/\(name)") }
        }
    }
    unsafe _ = rmdir(path)
}

extension StoreDirectory {
    func create(_ name: String, _ bytes: [UInt8] = []) throws(IOError) -> any StoreFile {
        let file = try openFile(name, mode: .createExclusive)
        try file.write(bytes, at: FileOffset(0))
        return file
    }

    func contents(_ name: String) throws(IOError) -> [UInt8] {
        let file = try openFile(name, mode: .read)
        return try file.read(at: FileOffset(0), count: Int(try file.size()))
    }
}
