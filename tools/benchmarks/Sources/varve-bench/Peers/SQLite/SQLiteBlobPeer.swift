// SQLite with large values: a table of blobs, bound without a copy and read in place.

import BenchmarkHarness
import CSQLite

final class SQLiteBlobPeer: BlobPeer {
    private let connection: SQLiteConnection
    private let insertion: SQLiteStatement
    private let byID: SQLiteStatement

    init(blobDirectory: String, options: PeerOptions) throws {
        connection = try SQLiteConnection(path: blobDirectory + "/blobs.sqlite")
        try connection.configure(options)
        try connection.execute(
            "CREATE TABLE IF NOT EXISTS blob(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
        )
        insertion = try connection.statement("INSERT INTO blob VALUES (?, ?)")
        byID = try connection.statement("SELECT bytes FROM blob WHERE id = ?")
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        try connection.execute("BEGIN IMMEDIATE")
        for (id, bytes) in blobs {
            try bytes.withUnsafeBytes { bytes in
                sqlite3_bind_int64(insertion.handle, 1, id)
                let count = Int32(bytes.count)
                sqlite3_bind_blob(insertion.handle, 2, bytes.baseAddress, count, sqliteStatic)
                try insertion.run()
            }
        }
        try connection.execute("COMMIT")
    }

    func prepareToReadBlobs(count: Int) throws {}

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        sqlite3_bind_int64(byID.handle, 1, id)
        guard try byID.step() else { throw BenchmarkError("SQLite: no blob \(id)") }
        defer { byID.reset() }
        let bytes = sqlite3_column_blob(byID.handle, 0)
        let count = Int(sqlite3_column_bytes(byID.handle, 0))
        body(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    func close() throws { try connection.close() }
}
