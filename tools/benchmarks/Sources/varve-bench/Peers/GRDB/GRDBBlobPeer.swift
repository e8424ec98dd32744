// GRDB with large values: records with `Data`, or cached statements and bytes read in place.

import BenchmarkHarness
import Foundation
import GRDB

private struct BlobRecord: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "blob"
    var id: Int64
    var bytes: Data
}

final class GRDBBlobPeer: BlobPeer {
    private let pool: DatabasePool
    private let tuning: Tuning

    init(blobDirectory: String, options: PeerOptions) throws {
        tuning = options.tuning
        pool = try DatabasePool.durable(path: blobDirectory + "/blobs.sqlite", options)
        try pool.write { database in
            try database.create(table: "blob", options: .ifNotExists) { table in
                table.primaryKey("id", .integer)
                table.column("bytes", .blob).notNull()
            }
        }
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for (id, bytes) in blobs {
                    try BlobRecord(id: id, bytes: Data(bytes)).insert(database)
                }
            case .best:
                let sql = "INSERT INTO blob VALUES (?, ?)"
                let statement = try database.cachedStatement(sql: sql)
                for (id, bytes) in blobs {
                    try statement.execute(arguments: [id, Data(bytes)])
                }
            }
        }
    }

    func prepareToReadBlobs(count: Int) throws {}

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        try pool.read { database in
            switch tuning {
            case .usual: try BlobRecord.find(database, key: id).bytes.withUnsafeBytes(body)
            case .best:
                let sql = "SELECT bytes FROM blob WHERE id = ?"
                let statement = try database.cachedStatement(sql: sql)
                let rows = try Row.fetchCursor(statement, arguments: [id])
                guard let row = try rows.next() else { throw BenchmarkError("no blob \(id)") }
                try row.withUnsafeData(atIndex: 0) { $0?.withUnsafeBytes(body) }
            }
        }
    }

    func close() throws { try pool.close() }
}
