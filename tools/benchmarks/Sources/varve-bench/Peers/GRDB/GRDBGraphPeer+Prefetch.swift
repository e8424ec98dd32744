// GRDB in the workload of objects that are read with what they lead to: associations, or joins with
// cached statements.

import BenchmarkHarness
import GRDB

private struct PersonRecord: FetchableRecord, TableRecord {
    static let databaseTableName = "person"
    static let photos = hasMany(
        PhotoRecord.self,
        key: "photos",
        using: ForeignKey(["authorID"])
    )
    var id: Int64
    var name: String

    init(row: Row) { (id, name) = (row[0], row[1]) }
    init(id: Int64, name: String) { (self.id, self.name) = (id, name) }
}

/// A photo and who took it.
private struct AuthoredPhoto: FetchableRecord {
    static let author = PhotoRecord.belongsTo(
        PersonRecord.self,
        key: "author",
        using: ForeignKey(["authorID"])
    )
    var photo: PhotoRecord
    var author: PersonRecord?

    init(row: Row) {
        photo = PhotoRecord(row: row)
        author = row["author"]
    }

    init(_ photo: PhotoRecord, _ author: PersonRecord?) {
        (self.photo, self.author) = (photo, author)
    }
}

/// A person and their photos.
private struct Portfolio: FetchableRecord {
    var person: PersonRecord
    var photos: [PhotoRecord]

    init(row: Row) {
        person = PersonRecord(row: row)
        photos = row["photos"]
    }

    init(_ person: PersonRecord, _ photos: [PhotoRecord]) {
        (self.person, self.photos) = (person, photos)
    }
}

// Workload s
extension GRDBGraphPeer: PrefetchPeer {
    func photosWithAuthors(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        let found = try pool.read { database in
            switch tuning {
            case .usual:
                let request = PhotoRecord.including(optional: AuthoredPhoto.author)
                return try request.order(Column("id")).limit(limit)
                    .asRequest(of: AuthoredPhoto.self).fetchAll(database)
            case .best: return try Self.joined(database, limit)
            }
        }
        let sum = found.reduce(UInt64(0)) { sum, item in
            let name = item.author?.name ?? ""
            return sum &+ GraphPhoto.readingSum(item.photo.title, item.photo.stars, name)
        }
        return (found.count, sum)
    }

    func peopleWithPhotos(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        let found = try pool.read { database in
            switch tuning {
            case .usual:
                let request = PersonRecord.including(all: PersonRecord.photos)
                return try request.order(Column("id")).limit(limit)
                    .asRequest(of: Portfolio.self).fetchAll(database)
            case .best: return try Self.grouped(database, limit)
            }
        }
        var (count, sum) = (0, UInt64(0))
        for item in found {
            count += item.photos.count
            for photo in item.photos {
                sum &+= GraphPhoto.readingSum(photo.title, photo.stars, item.person.name)
            }
        }
        return (count, sum)
    }

    private static func joined(_ database: Database, _ limit: Int) throws -> [AuthoredPhoto] {
        let sql = """
            SELECT photo.*, person.id, person.name FROM photo
            LEFT JOIN person ON person.id = authorID ORDER BY photo.id LIMIT ?
            """
        let rows = try Row.fetchCursor(database.cachedStatement(sql: sql), arguments: [limit])
        var found: [AuthoredPhoto] = []
        while let row = try rows.next() {
            let id: Int64? = row[5]
            let author = id.map { PersonRecord(id: $0, name: row[6]) }
            found.append(AuthoredPhoto(PhotoRecord(row: row), author))
        }
        return found
    }

    /// One pass over the people, one over their photos.
    private static func grouped(_ database: Database, _ limit: Int) throws -> [Portfolio] {
        let people = try PersonRecord.fetchAll(
            database.cachedStatement(sql: "SELECT * FROM person ORDER BY id LIMIT ?"),
            arguments: [limit]
        )
        let sql = """
            SELECT * FROM photo
            WHERE authorID IN (SELECT id FROM person ORDER BY id LIMIT ?)
            """
        let photos = try PhotoRecord.fetchAll(
            database.cachedStatement(sql: sql),
            arguments: [limit]
        )
        let groups = Dictionary(grouping: photos) { $0.authorID ?? 0 }
        return people.map { Portfolio($0, groups[$0.id] ?? []) }
    }
}
