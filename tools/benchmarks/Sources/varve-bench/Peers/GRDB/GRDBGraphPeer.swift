// GRDB in the workload of objects with relationships: records with foreign keys.
//
// Usual: records with the query interface. Best: cached statements in their place, where there are
// any. SQLite deletes by cascade itself.

import BenchmarkHarness
import GRDB

private struct GroupRecord: FetchableRecord, PersistableRecord {
    static let databaseTableName = "album"
    var id: Int64
    var name: String

    init(id: Int64, name: String) { (self.id, self.name) = (id, name) }
    init(row: Row) { (id, name) = (row[0], row[1]) }
    func encode(to container: inout PersistenceContainer) {
        container["id"] = id
        container["name"] = name
    }
}

struct PhotoRecord: FetchableRecord, PersistableRecord {
    static let databaseTableName = "photo"
    var id: Int64
    var title: String
    var stars: Int
    var albumID: Int64?
    var authorID: Int64?

    init(_ photo: GraphPhoto) {
        id = photo.number
        title = photo.title
        stars = photo.stars
        albumID = Int64(photo.album)
        authorID = Int64(photo.author)
    }

    init(row: Row) {
        id = row[0]
        title = row[1]
        stars = row[2]
        albumID = row[3]
        authorID = row[4]
    }

    func encode(to container: inout PersistenceContainer) {
        container["id"] = id
        container["title"] = title
        container["stars"] = stars
        container["albumID"] = albumID
        container["authorID"] = authorID
    }
}

final class GRDBGraphPeer: GraphPeer {
    let pool: DatabasePool
    let tuning: Tuning

    init(graphDirectory: String, options: PeerOptions) throws {
        tuning = options.tuning
        pool = try DatabasePool.durable(path: graphDirectory + "/graph.sqlite", options)
        try pool.write { database in
            for name in ["album", "person"] {
                try database.create(table: name, options: .ifNotExists) { table in
                    table.primaryKey("id", .integer)
                    table.column("name", .text).notNull()
                }
            }
            try database.create(table: "photo", options: .ifNotExists) { table in
                table.primaryKey("id", .integer)
                table.column("title", .text).notNull()
                table.column("stars", .integer).notNull()
                table.column("albumID", .integer).indexed()
                    .references("album", onDelete: .cascade)
                table.column("authorID", .integer).indexed()
                    .references("person", onDelete: .setNull)
            }
        }
    }

    func insertGroups(albums: Int, people: Int) throws {
        try pool.write { database in
            for number in 0..<albums {
                try GroupRecord(id: Int64(number), name: "album \(number)").insert(database)
            }
            for number in 0..<people {
                try database.execute(
                    sql: "INSERT INTO person VALUES (?, ?)",
                    arguments: [number, "person \(number)"]
                )
            }
        }
    }

    func insert(_ photos: [GraphPhoto]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for photo in photos { try PhotoRecord(photo).insert(database) }
            case .best:
                let sql = "INSERT INTO photo VALUES (?, ?, ?, ?, ?)"
                let statement = try database.cachedStatement(sql: sql)
                for photo in photos {
                    try statement.execute(
                        arguments: [
                            photo.number, photo.title, photo.stars, photo.album, photo.author,
                        ]
                    )
                }
            }
        }
    }

    func prepareToFind(photos: Int) throws {}

    func rate(_ changes: [RowChange<Int>]) throws {
        try pool.write { database in
            switch tuning {
            case .usual:
                for change in changes {
                    guard var photo = try PhotoRecord.fetchOne(database, key: change.id) else {
                        throw BenchmarkError("no photo \(change.id)")
                    }
                    try photo.updateChanges(database) { $0.stars = change.value }
                }
            case .best:
                let sql = "UPDATE photo SET stars = ? WHERE id = ?"
                let statement = try database.cachedStatement(sql: sql)
                for change in changes {
                    try statement.execute(arguments: [change.value, change.id])
                }
            }
        }
    }

    func deleteAlbums() throws {
        try pool.write { database in
            for album in try GroupRecord.fetchAll(database) { try album.delete(database) }
        }
    }

    func photoSum() throws -> (photos: Int, sum: UInt64) {
        let sql = """
            SELECT title, stars, album.name, person.name FROM photo
            LEFT JOIN album ON album.id = albumID LEFT JOIN person ON person.id = authorID
            """
        return try pool.read { database in
            let rows = try Row.fetchCursor(database, sql: sql)
            var (photos, sum) = (0, UInt64(0))
            while let row = try rows.next() {
                photos += 1
                sum = sum &+ GraphPhoto.sum(row[0], row[1], row[2] ?? "", row[3] ?? "")
            }
            return (photos, sum)
        }
    }

    func photosOfPeople() throws -> Int {
        let sql = "SELECT COUNT(*) FROM photo JOIN person ON person.id = authorID"
        return try pool.read { try Int.fetchOne($0, sql: sql) ?? 0 }
    }

    /// Leaves no log behind, as SQLite itself does when the last connection goes.
    func close() throws {
        _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        try pool.close()
    }
}
