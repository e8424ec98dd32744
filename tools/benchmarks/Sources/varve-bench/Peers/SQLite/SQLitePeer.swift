// SQLite through its C interface.
//
// Usual: write-ahead log and synchronous=FULL, everything else as it comes.
// Best: also a mapped file, a large cache, memory for temporary data, a large log that is kept.

import BenchmarkHarness
import CSQLite
import Foundation

final class SQLitePeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    let connection: SQLiteConnection
    private let insertion: SQLiteStatement
    private let byID: SQLiteStatement
    private let begin: SQLiteStatement
    private let commitIt: SQLiteStatement
    /// One connection writes at a time; savers queue here instead of retrying.
    private let lock = NSLock()
    let directory: String
    let options: PeerOptions

    static let columns = "id, timestamp, title, note, count, flag, pictureID"

    init(directory: String, options: PeerOptions) throws {
        self.directory = directory
        self.options = options
        connection = try SQLiteConnection(path: directory + "/items.sqlite")
        try connection.configure(options)
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS item(
              id INTEGER PRIMARY KEY, timestamp REAL NOT NULL, title TEXT NOT NULL,
              note TEXT NOT NULL, count INTEGER NOT NULL, flag INTEGER NOT NULL,
              pictureID INTEGER NOT NULL);
            """
        )
        if options.indexed { try connection.execute(Self.indexes) }
        insertion = try connection.statement("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?)")
        byID = try connection.statement("SELECT \(Self.columns) FROM item WHERE id = ?")
        begin = try connection.statement("BEGIN")
        commitIt = try connection.statement("COMMIT")
    }

    static let indexes = """
        CREATE INDEX IF NOT EXISTS item_timestamp ON item(timestamp);
        CREATE INDEX IF NOT EXISTS item_title ON item(title);
        """

    func insert(_ items: [Item]) throws {
        try connection.execute("BEGIN IMMEDIATE")
        for item in items { try insertion.insert(item) }
        try connection.execute("COMMIT")
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        let rows = try connection.statement("SELECT \(Self.columns) FROM item ORDER BY id")
        while try rows.step() { try body(rows.item()) }
    }

    func close() throws { try connection.close() }

    // Workload b
    func commit(_ item: Item) throws { try insertion.insert(item) }

    func makeSaver() throws -> (Item) throws -> Void {
        { [self] item in try lock.withLock { try commit(item) } }
    }

    // Workload c
    func prepareToRead(rows: Int) throws {}

    func read(ids: [Int64]) throws -> RowFold {
        try run(begin)
        var fold = RowFold()
        for id in ids { try read(id, into: &fold) }
        try run(commitIt)
        return fold
    }

    func readIsolated(ids: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for id in ids { try read(id, into: &fold) }
        return fold
    }

    @inline(__always)
    private func read(_ id: Int64, as name: Int64? = nil, into fold: inout RowFold) throws {
        sqlite3_bind_int64(byID.handle, 1, id)
        if try byID.step() { byID.fold(as: name, into: &fold) }
        byID.reset()
    }

    private func run(_ statement: SQLiteStatement) throws {
        _ = try statement.step()
        statement.reset()
    }

    // Workload e. C has no objects: the cheap list is the IDs, the full one decodes every row.
    enum List {
        case ids([Int64])
        case folded(RowFold)
    }

    func fetchFaults() throws -> List {
        let rows = try connection.statement("SELECT id FROM item ORDER BY timestamp")
        var ids: [Int64] = []
        while try rows.step() { ids.append(sqlite3_column_int64(rows.handle, 0)) }
        return .ids(ids)
    }

    func fetchFilled() throws -> List {
        let rows = try connection.statement(
            "SELECT \(Self.columns) FROM item ORDER BY timestamp"
        )
        var fold = RowFold()
        while try rows.step() { rows.fold(as: 0, into: &fold) }
        return .folded(fold)
    }

    func readEveryProperty(_ list: List) throws -> RowFold {
        switch list {
        case .ids(let ids):
            var fold = RowFold()
            for id in ids { try read(id, as: 0, into: &fold) }
            return fold
        case .folded(let fold): return fold
        }
    }
}
