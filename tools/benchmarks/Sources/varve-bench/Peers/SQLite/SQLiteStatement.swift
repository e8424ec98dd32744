// A thin skin over SQLite's C functions: errors become Swift errors, nothing else is added.

import BenchmarkHarness
import CSQLite

/// Bytes that are lent for the time of a step. The C header writes it as a cast, which Swift does
/// not import.
let sqliteStatic: sqlite3_destructor_type? = nil

/// A connection.
final class SQLiteConnection {
    let handle: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]
    fileprivate let life = Life()

    /// What statements must know when they go.
    fileprivate final class Life { var isOpen = true }

    init(path: String) throws {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK, let handle else {
            throw BenchmarkError("SQLite cannot open \(path)")
        }
        self.handle = handle
    }

    /// Durable commits in a write-ahead log, with usual or best settings. The cache is as large as
    /// everybody's: SQLite's own 2 MB would compare caches, not stores.
    func configure(_ options: PeerOptions) throws {
        try execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
        try execute("PRAGMA cache_size=-\(options.cacheBytes / 1024)")
        guard options.tuning == .best else { return }
        try execute(
            """
            PRAGMA mmap_size=8589934592;
            PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=16384;
            """
        )
    }

    func execute(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
    }

    func statement(_ sql: String) throws -> SQLiteStatement {
        try SQLiteStatement(self, sql)
    }

    /// A statement that is prepared at its first use.
    func cachedStatement(_ sql: String) throws -> SQLiteStatement {
        if let known = statements[sql] { return known }
        let statement = try statement(sql)
        statements[sql] = statement
        return statement
    }

    func failure(_ place: String) -> BenchmarkError {
        BenchmarkError("SQLite: \(place): \(String(cString: sqlite3_errmsg(handle)))")
    }

    /// Ends every statement first: with one left SQLite would keep its log.
    func close() throws {
        statements = [:]
        while let statement = sqlite3_next_stmt(handle, nil) { sqlite3_finalize(statement) }
        life.isOpen = false
        guard sqlite3_close(handle) == SQLITE_OK else { throw failure("close") }
    }
}

/// A prepared statement.
final class SQLiteStatement {
    let handle: OpaquePointer
    private let connection: Connection
    private let life: SQLiteConnection.Life

    /// Not the connection itself, which caches statements and would never go.
    private struct Connection {
        unowned let object: SQLiteConnection
        func failure(_ place: String) -> BenchmarkError { object.failure(place) }
    }

    init(_ connection: SQLiteConnection, _ sql: String) throws {
        var handle: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let result = sqlite3_prepare_v3(connection.handle, sql, -1, flags, &handle, nil)
        guard result == SQLITE_OK, let handle else { throw connection.failure(sql) }
        self.handle = handle
        self.connection = Connection(object: connection)
        life = connection.life
    }

    deinit { if life.isOpen { sqlite3_finalize(handle) } }

    /// Whether there is a row.
    @inline(__always)
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw connection.failure("step")
        }
    }

    @inline(__always)
    func reset() { sqlite3_reset(handle) }

    /// Runs the statement that inserts an item.
    func insert(_ item: Item) throws {
        var title = item.title
        var note = item.note
        sqlite3_bind_int64(handle, 1, item.id)
        sqlite3_bind_double(handle, 2, item.timestamp)
        sqlite3_bind_int64(handle, 5, Int64(item.count))
        sqlite3_bind_int(handle, 6, item.flag ? 1 : 0)
        sqlite3_bind_int64(handle, 7, item.pictureID)
        // The texts' bytes are lent for the time of the step: no copy.
        try title.withUTF8 { title in
            try note.withUTF8 { note in
                bind(title, at: 3)
                bind(note, at: 4)
                guard sqlite3_step(handle) == SQLITE_DONE else {
                    throw connection.failure("insert")
                }
            }
        }
        sqlite3_reset(handle)
    }

    func run() throws {
        _ = try step()
        reset()
    }

    private func bind(_ text: UnsafeBufferPointer<UInt8>, at index: Int32) {
        text.withMemoryRebound(to: CChar.self) { bytes in
            _ = sqlite3_bind_text(
                handle,
                index,
                bytes.baseAddress,
                Int32(bytes.count),
                sqliteStatic
            )
        }
    }

    /// Decodes every column of the row and adds it to a sum, under another ID if one is given.
    @inline(__always)
    func fold(as id: Int64? = nil, into fold: inout RowFold) {
        let own = sqlite3_column_int64(handle, 0)
        fold.add(
            id: id ?? own,
            timestamp: sqlite3_column_double(handle, 1),
            title: RowFold.digest(bytes(2)),
            note: RowFold.digest(bytes(3)),
            count: Int(sqlite3_column_int64(handle, 4)),
            flag: sqlite3_column_int(handle, 5) != 0,
            pictureID: sqlite3_column_int64(handle, 6)
        )
    }

    /// The row as an item.
    func item() -> Item {
        Item(
            id: sqlite3_column_int64(handle, 0),
            timestamp: sqlite3_column_double(handle, 1),
            title: text(2),
            note: text(3),
            count: Int(sqlite3_column_int64(handle, 4)),
            flag: sqlite3_column_int(handle, 5) != 0,
            pictureID: sqlite3_column_int64(handle, 6)
        )
    }

    /// A text of the row; empty for NULL.
    func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

    @inline(__always)
    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let text = sqlite3_column_text(handle, column)
        return UnsafeRawBufferPointer(
            start: text,
            count: Int(sqlite3_column_bytes(handle, column))
        )
    }
}
