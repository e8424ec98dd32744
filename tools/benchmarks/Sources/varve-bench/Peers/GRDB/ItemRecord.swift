// The benchmark's row as a GRDB record, decoded by position.

import BenchmarkHarness
import GRDB

struct ItemRecord: FetchableRecord, PersistableRecord {
    static let databaseTableName = "item"
    var id: Int64
    var timestamp: Double
    var title: String
    var note: String
    var count: Int
    var flag: Bool
    var pictureID: Int64

    enum Columns {
        static let id = Column("id")
        static let timestamp = Column("timestamp")
        static let count = Column("count")
        static let note = Column("note")
    }

    init(_ item: Item) {
        id = item.id
        timestamp = item.timestamp
        title = item.title
        note = item.note
        count = item.count
        flag = item.flag
        pictureID = item.pictureID
    }

    // By position: the fastest way that the documentation offers. Decoding through Codable is
    // about twice as slow, and would flatter us.
    init(row: Row) {
        id = row[0]
        timestamp = row[1]
        title = row[2]
        note = row[3]
        count = row[4]
        flag = row[5]
        pictureID = row[6]
    }

    func encode(to container: inout PersistenceContainer) {
        container["id"] = id
        container["timestamp"] = timestamp
        container["title"] = title
        container["note"] = note
        container["count"] = count
        container["flag"] = flag
        container["pictureID"] = pictureID
    }

    var item: Item {
        Item(
            id: id,
            timestamp: timestamp,
            title: title,
            note: note,
            count: count,
            flag: flag,
            pictureID: pictureID
        )
    }

    @inline(__always)
    func fold(as name: Int64? = nil, into fold: inout RowFold) {
        fold.add(
            id: name ?? id,
            timestamp: timestamp,
            title: title,
            note: note,
            count: count,
            flag: flag,
            pictureID: pictureID
        )
    }
}
