// SQLite in the workload of objects that are read with what they lead to: joins, and structs that
// are made by hand.

import BenchmarkHarness
import CSQLite

final class SQLiteGraphPeer: PrefetchPeer {
    private let connection: SQLiteConnection

    private struct Person {
        var id: Int64
        var name: String
        var photos: [Photo] = []
    }

    private struct Photo {
        var id: Int64
        var title: String
        var stars: Int
        var albumID: Int64
        var authorID: Int64
        var author: String?
    }

    init(graphDirectory: String, options: PeerOptions) throws {
        connection = try SQLiteConnection(path: graphDirectory + "/graph.sqlite")
        try connection.configure(options)
        try connection.execute(
            """
            PRAGMA foreign_keys=ON;
            CREATE TABLE IF NOT EXISTS album(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE IF NOT EXISTS person(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE IF NOT EXISTS photo(
              id INTEGER PRIMARY KEY, title TEXT NOT NULL, stars INTEGER NOT NULL,
              albumID INTEGER REFERENCES album ON DELETE CASCADE,
              authorID INTEGER REFERENCES person ON DELETE SET NULL);
            CREATE INDEX IF NOT EXISTS photo_albumID ON photo(albumID);
            CREATE INDEX IF NOT EXISTS photo_authorID ON photo(authorID);
            """
        )
    }

    func insertGroups(albums: Int, people: Int) throws {
        try connection.execute("BEGIN IMMEDIATE")
        for (table, word, count) in [("album", "album", albums), ("person", "person", people)] {
            let insertion = try connection.statement(
                "INSERT INTO \(table) VALUES (?, '\(word) ' || ?)"
            )
            for number in 0..<count {
                sqlite3_bind_int64(insertion.handle, 1, Int64(number))
                sqlite3_bind_int64(insertion.handle, 2, Int64(number))
                try insertion.run()
            }
        }
        try connection.execute("COMMIT")
    }

    func insert(_ photos: [GraphPhoto]) throws {
        try connection.execute("BEGIN IMMEDIATE")
        let insertion = try connection.statement("INSERT INTO photo VALUES (?, ?, ?, ?, ?)")
        for photo in photos {
            sqlite3_bind_int64(insertion.handle, 1, photo.number)
            sqlite3_bind_int64(insertion.handle, 3, Int64(photo.stars))
            sqlite3_bind_int64(insertion.handle, 4, Int64(photo.album))
            sqlite3_bind_int64(insertion.handle, 5, Int64(photo.author))
            try photo.title.withCString { title in
                sqlite3_bind_text(insertion.handle, 2, title, -1, sqliteStatic)
                try insertion.run()
            }
        }
        try connection.execute("COMMIT")
    }

    func photosWithAuthors(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        let sql = """
            SELECT photo.*, person.name FROM photo
            LEFT JOIN person ON person.id = authorID ORDER BY photo.id LIMIT ?
            """
        let photos = try rows(sql, limit) { rows in
            var photo = Self.photo(rows)
            photo.author = rows.text(5)
            return photo
        }
        let sum = photos.reduce(UInt64(0)) {
            $0 &+ GraphPhoto.readingSum($1.title, $1.stars, $1.author ?? "")
        }
        return (photos.count, sum)
    }

    /// One pass over the people, one over their photos.
    func peopleWithPhotos(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        var people = try rows("SELECT * FROM person ORDER BY id LIMIT ?", limit) {
            Person(id: sqlite3_column_int64($0.handle, 0), name: $0.text(1))
        }
        let sql = """
            SELECT * FROM photo
            WHERE authorID IN (SELECT id FROM person ORDER BY id LIMIT ?)
            """
        let groups = Dictionary(grouping: try rows(sql, limit, Self.photo), by: \.authorID)
        for index in people.indices { people[index].photos = groups[people[index].id] ?? [] }
        var (count, sum) = (0, UInt64(0))
        for person in people {
            count += person.photos.count
            for photo in person.photos {
                sum &+= GraphPhoto.readingSum(photo.title, photo.stars, person.name)
            }
        }
        return (count, sum)
    }

    private static func photo(_ rows: SQLiteStatement) -> Photo {
        Photo(
            id: sqlite3_column_int64(rows.handle, 0),
            title: rows.text(1),
            stars: Int(sqlite3_column_int64(rows.handle, 2)),
            albumID: sqlite3_column_int64(rows.handle, 3),
            authorID: sqlite3_column_int64(rows.handle, 4)
        )
    }

    private func rows<Record>(
        _ sql: String,
        _ limit: Int,
        _ record: (SQLiteStatement) -> Record
    ) throws -> [Record] {
        let rows = try connection.cachedStatement(sql)
        sqlite3_bind_int64(rows.handle, 1, Int64(limit))
        var found: [Record] = []
        while try rows.step() { found.append(record(rows)) }
        rows.reset()
        return found
    }

    func close() throws { try connection.close() }
}
