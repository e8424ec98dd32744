// A thin skin over RocksDB's C functions: an open database, errors as Swift errors.
//
// Invariant: handles of the C library live exactly as long as the object that made them.

import BenchmarkHarness

/// An open database with its settings. Use it from any thread.
final class RocksDBDatabase: @unchecked Sendable {
    typealias Handle = RocksDBLibrary.Handle

    let library: RocksDBLibrary
    let handle: Handle
    private let options: Handle
    private let readOptions: Handle
    private let syncedWrite: Handle
    private let cache: Handle
    private var isClosed = false

    init(
        path: String,
        cacheBytes: Int,
        recyclesLogs: Bool = false,
        blobFiles: Bool = false
    ) throws {
        library = try RocksDBLibrary.found.get()
        options = try Self.made(library.optionsCreate())
        readOptions = try Self.made(library.readOptionsCreate())
        syncedWrite = try Self.made(library.writeOptionsCreate())
        cache = try Self.made(library.cacheCreate(cacheBytes))
        let table = try Self.made(library.tableOptionsCreate())
        library.setBlockCache(table, cache)
        library.setFilterPolicy(table, try Self.made(library.bloomFilterCreate(10)))
        library.setTableOptions(options, table)
        library.tableOptionsDestroy(table)
        library.setCreateIfMissing(options, 1)
        // LZ4, as Varve; the size of the write buffer is the library's own default.
        library.setCompression(options, 4)
        library.setWriteBufferSize(options, 64 << 20)
        library.setMaxBackgroundJobs(options, 2)
        library.setDynamicLevelBytes(options, 1)
        // The log is written over space that an older log had: no growing file in a commit.
        if recyclesLogs { library.setRecycledLogs(options, 2) }
        library.setSync(syncedWrite, 1)
        if blobFiles {
            library.setBlobFiles(options, 1)
            library.setBlobBytesMin(options, 4096)
        }
        let (library, options) = (library, options)
        handle = try Self.made(
            Self.call(library, "open") { library.open(options, path, $0) }
        )
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        library.close(handle)
        library.writeOptionsDestroy(syncedWrite)
        library.readOptionsDestroy(readOptions)
        library.optionsDestroy(options)
        library.cacheDestroy(cache)
    }

    deinit { close() }

    // MARK: Writing

    /// Collects changes and makes them durable at once.
    func commit(_ body: (Batch) throws -> Void) throws {
        let batch = Batch(library, try Self.made(library.batchCreate()))
        defer { library.batchDestroy(batch.handle) }
        try body(batch)
        try call("write") { library.write(handle, syncedWrite, batch.handle, $0) }
    }

    /// Changes that happen together.
    struct Batch {
        private let library: RocksDBLibrary
        fileprivate let handle: Handle

        fileprivate init(_ library: RocksDBLibrary, _ handle: Handle) {
            self.library = library
            self.handle = handle
        }

        func put(_ key: [UInt8], _ value: UnsafeRawBufferPointer) {
            key.withUnsafeBytes { key in
                library.batchPut(handle, key.text, key.count, value.text, value.count)
            }
        }

        func put(_ key: [UInt8], _ value: [UInt8]) { value.withUnsafeBytes { put(key, $0) } }

        func remove(_ key: [UInt8]) {
            key.withUnsafeBytes { library.batchDelete(handle, $0.text, $0.count) }
        }
    }

    /// Makes one sorted file per sequence of ascending entries and takes all in at once; durable
    /// when this returns.
    func ingest(_ folder: String, _ files: [(FileWriter) throws -> Void]) throws {
        let environment = try Self.made(library.environmentOptionsCreate())
        defer { library.environmentOptionsDestroy(environment) }
        var paths: [String] = []
        for (index, fill) in files.enumerated() {
            let path = folder + "/load-\(index).sst"
            let writer = try Self.made(library.fileWriterCreate(environment, options))
            defer { library.fileWriterDestroy(writer) }
            try call("file") { library.fileWriterOpen(writer, path, $0) }
            try fill(FileWriter(database: self, handle: writer))
            try call("file") { library.fileWriterFinish(writer, $0) }
            paths.append(path)
        }
        let ingestion = try Self.made(library.ingestOptionsCreate())
        defer { library.ingestOptionsDestroy(ingestion) }
        library.setMoveFiles(ingestion, 1)
        try withCStrings(paths) { names in
            try call("ingest") { library.ingest(handle, names, paths.count, ingestion, $0) }
        }
    }

    /// A sorted file being made.
    struct FileWriter {
        fileprivate let database: RocksDBDatabase
        fileprivate let handle: Handle

        func put(_ key: [UInt8], _ value: [UInt8]) throws {
            try key.withUnsafeBytes { key in try value.withUnsafeBytes { try put(key, $0) } }
        }

        func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws {
            let put = database.library.fileWriterPut
            try database.call("file") {
                put(handle, key.text, key.count, value.text, value.count, $0)
            }
        }
    }

    /// Writes what is in memory to files and brings these into one level.
    func settle() throws {
        let flushing = try Self.made(library.flushOptionsCreate())
        defer { library.flushOptionsDestroy(flushing) }
        try call("flush") { library.flush(handle, flushing, $0) }
        library.compactRange(handle, nil, 0, nil, 0)
    }

    // MARK: Reading

    /// Runs `body` with a view of the database as it is now.
    func snapshot<R>(_ body: (RocksDBView) throws -> R) throws -> R {
        let snapshot = try Self.made(library.createSnapshot(handle))
        let options = try Self.made(library.readOptionsCreate())
        library.readOptionsSetSnapshot(options, snapshot)
        defer {
            library.readOptionsDestroy(options)
            library.releaseSnapshot(handle, snapshot)
        }
        return try body(RocksDBView(self, options))
    }

    /// Reads without a snapshot: each call sees the newest state.
    var newest: RocksDBView { RocksDBView(self, readOptions) }

    // MARK: Errors

    func call<R>(_ place: String, _ body: (RocksDBLibrary.Failure) -> R) throws -> R {
        try Self.call(library, place, body)
    }

    @inline(__always)
    private static func call<R>(
        _ library: RocksDBLibrary,
        _ place: String,
        _ body: (RocksDBLibrary.Failure) -> R
    ) throws -> R {
        var message: UnsafeMutablePointer<CChar>?
        let result = body(&message)
        guard let message else { return result }
        defer { library.free(message) }
        throw BenchmarkError("RocksDB: \(place): \(String(cString: message))")
    }

    static func made(_ handle: Handle?) throws -> Handle {
        guard let handle else { throw BenchmarkError("RocksDB: nothing was made") }
        return handle
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as C has them.
    var text: UnsafePointer<CChar>? { bindMemory(to: CChar.self).baseAddress }
}

/// Calls `body` with C copies of texts.
private func withCStrings<R>(
    _ texts: [String],
    _ body: (UnsafePointer<UnsafePointer<CChar>?>) throws -> R
) throws -> R {
    let copies = texts.map { Array($0.utf8CString) }
    func nest(_ index: Int, _ names: [UnsafePointer<CChar>?]) throws -> R {
        if index == copies.count {
            return try names.withUnsafeBufferPointer { buffer in
                guard let start = buffer.baseAddress else {
                    throw BenchmarkError("RocksDB: no files")
                }
                return try body(start)
            }
        }
        return try copies[index].withUnsafeBufferPointer { copy in
            try nest(index + 1, names + [copy.baseAddress])
        }
    }
    return try nest(0, [])
}
