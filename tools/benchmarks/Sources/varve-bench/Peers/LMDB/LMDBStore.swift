// A thin skin over LMDB's C functions: an open environment and its transactions.
//
// Invariant: a transaction is committed or aborted before the call that began it returns.

import BenchmarkHarness

/// An open environment. Use it from any thread, each transaction from one.
final class LMDBStore: @unchecked Sendable {
    private let library: LMDBLibrary
    private let environment: LMDBLibrary.Handle
    private var isClosed = false

    init(path: String) throws {
        library = try LMDBLibrary.found.get()
        var handle: LMDBLibrary.Handle?
        try Self.check(library.environmentCreate(&handle), "create")
        guard let handle else { throw BenchmarkError("LMDB: no environment") }
        environment = handle
        try Self.check(library.setMapSize(handle, 32 << 30), "map size")
        try Self.check(library.setMaxDatabases(handle, 4), "databases")
        let flags = LMDBLibrary.noSubdirectory | LMDBLibrary.noReadAhead
        try Self.check(library.environmentOpen(handle, path, flags, 0o600), "open")
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        library.environmentClose(environment)
    }

    func read<R>(_ body: (LMDBTransaction) throws -> R) throws -> R {
        let transaction = try begin(LMDBLibrary.readOnly)
        defer { library.abort(transaction.handle) }
        return try body(transaction)
    }

    func write(_ body: (LMDBTransaction) throws -> Void) throws {
        let transaction = try begin(0)
        do {
            try body(transaction)
        } catch {
            library.abort(transaction.handle)
            throw error
        }
        try Self.check(library.commit(transaction.handle), "commit")
    }

    /// Copies what is in use into a new file.
    func copyCompacted(to path: String) throws {
        try Self.check(library.copy(environment, path, LMDBLibrary.copyCompact), "copy")
    }

    private func begin(_ flags: UInt32) throws -> LMDBTransaction {
        var handle: LMDBLibrary.Handle?
        try Self.check(library.begin(environment, nil, flags, &handle), "begin")
        guard let handle else { throw BenchmarkError("LMDB: no transaction") }
        return LMDBTransaction(library: library, handle: handle)
    }

    @inline(__always)
    static func check(_ result: Int32, _ place: StaticString) throws {
        guard result == 0 else { throw BenchmarkError("LMDB: \(place): error \(result)") }
    }
}

/// A transaction of an environment.
struct LMDBTransaction {
    fileprivate let library: LMDBLibrary
    fileprivate let handle: LMDBLibrary.Handle

    /// No bytes.
    static var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// Moves a read transaction to the newest state. The reader's slot is kept, as LMDB's
    /// documentation advises.
    func renew() throws {
        library.reset(handle)
        try LMDBStore.check(library.renew(handle), "renew")
    }

    /// Opens a database of the environment, and makes it when there is none.
    func database(_ name: String, _ flags: UInt32 = 0) throws -> UInt32 {
        var number: UInt32 = 0
        let flags = flags | LMDBLibrary.create
        try LMDBStore.check(library.openDatabase(handle, name, flags, &number), "database")
        return number
    }

    /// The value of a key in place, nil when there is none.
    @inline(__always)
    func get(_ database: UInt32, _ key: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        var key = LMDBValue(key)
        var value = LMDBValue()
        let result = library.get(handle, database, &key, &value)
        if result == LMDBLibrary.notFound { return nil }
        try LMDBStore.check(result, "get")
        return value.bytes
    }

    func put(
        _ database: UInt32,
        _ key: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        _ flags: UInt32 = 0
    ) throws {
        var key = LMDBValue(key)
        var value = LMDBValue(value)
        try LMDBStore.check(library.put(handle, database, &key, &value, flags), "put")
    }

    func delete(_ database: UInt32, _ key: UnsafeRawBufferPointer) throws {
        var key = LMDBValue(key)
        try LMDBStore.check(library.delete(handle, database, &key, nil), "delete")
    }

    /// Calls `body` with keys and values in order, from the first that is not under `start`, until
    /// it returns false.
    func scan(
        _ database: UInt32,
        from start: [UInt8]? = nil,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        try cursor(database) { cursor in
            var key = LMDBValue()
            var value = LMDBValue()
            var result: Int32
            if let start {
                result = start.withUnsafeBytes { bytes in
                    key = LMDBValue(bytes)
                    return library.cursorGet(cursor, &key, &value, LMDBLibrary.cursorSetRange)
                }
            } else {
                result = library.cursorGet(cursor, &key, &value, LMDBLibrary.cursorFirst)
            }
            while result != LMDBLibrary.notFound {
                try LMDBStore.check(result, "scan")
                guard try body(key.bytes, value.bytes) else { return }
                result = library.cursorGet(cursor, &key, &value, LMDBLibrary.cursorNext)
            }
        }
    }

    /// The first and the last key, nil when there is none.
    func ends(_ database: UInt32) throws -> (first: [UInt8], last: [UInt8])? {
        try cursor(database) { cursor in
            func key(_ operation: UInt32) throws -> [UInt8]? {
                var key = LMDBValue()
                var value = LMDBValue()
                let result = library.cursorGet(cursor, &key, &value, operation)
                if result == LMDBLibrary.notFound { return nil }
                try LMDBStore.check(result, "ends")
                return Array(key.bytes)
            }
            guard let first = try key(LMDBLibrary.cursorFirst),
                let last = try key(LMDBLibrary.cursorLast)
            else { return nil }
            return (first, last)
        }
    }

    private func cursor<R>(
        _ database: UInt32,
        _ body: (LMDBLibrary.Handle) throws -> R
    ) throws -> R {
        var cursor: LMDBLibrary.Handle?
        try LMDBStore.check(library.cursorOpen(handle, database, &cursor), "cursor")
        guard let cursor else { throw BenchmarkError("LMDB: no cursor") }
        defer { library.cursorClose(cursor) }
        return try body(cursor)
    }
}

extension LMDBValue {
    /// Lends bytes to the library, which does not change them.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(size: bytes.count, data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
}
