// Reads of a RocksDB database: a value by key without copying it, and ranges.

import BenchmarkHarness

/// The database as a snapshot shows it, or as it is at each call.
struct RocksDBView {
    typealias Handle = RocksDBLibrary.Handle

    private let database: RocksDBDatabase
    private let options: Handle

    init(_ database: RocksDBDatabase, _ options: Handle) {
        self.database = database
        self.options = options
    }

    /// Calls `body` with the value of a key, in place. False when there is none.
    @inline(__always)
    func value(
        _ key: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Bool {
        let library = database.library
        let found = try database.call("get") {
            library.getPinned(database.handle, options, key.text, key.count, $0)
        }
        guard let found else { return false }
        defer { library.pinnedDestroy(found) }
        var count = 0
        let bytes = library.pinnedValue(found, &count)
        try body(UnsafeRawBufferPointer(start: bytes, count: count))
        return true
    }

    /// Calls `body` with each key and value from a key on, until it returns false.
    func scan(
        from key: [UInt8],
        _ body: (UnsafeRawBufferPointer, () -> UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        let library = database.library
        let iterator = try RocksDBDatabase.made(library.iteratorCreate(database.handle, options))
        defer { library.iteratorDestroy(iterator) }
        key.withUnsafeBytes { library.iteratorSeek(iterator, $0.text, $0.count) }
        func bytes(_ view: RocksDBLibrary.View) -> UnsafeRawBufferPointer {
            var count = 0
            let start = view(iterator, &count)
            return UnsafeRawBufferPointer(start: start, count: count)
        }
        while library.iteratorValid(iterator) != 0 {
            guard try body(bytes(library.iteratorKey), { bytes(library.iteratorValue) }) else {
                return
            }
            library.iteratorNext(iterator)
        }
        try database.call("iterator") { library.iteratorError(iterator, $0) }
    }

    /// The last key before another one, nil when there is none.
    func keyBefore(_ key: [UInt8]) throws -> [UInt8]? {
        let library = database.library
        let iterator = try RocksDBDatabase.made(library.iteratorCreate(database.handle, options))
        defer { library.iteratorDestroy(iterator) }
        key.withUnsafeBytes { library.iteratorSeekBack(iterator, $0.text, $0.count) }
        guard library.iteratorValid(iterator) != 0 else { return nil }
        var count = 0
        let start = library.iteratorKey(iterator, &count)
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
