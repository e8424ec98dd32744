// The benchmark's entity, written by hand: no macros, so no swift-syntax in the build.

import BenchmarkHarness
import VarveObjects

/// A row of the workloads. The item's ID is the object's own and no property.
protocol ItemObject: ManagedObject {
    var timestamp: Double { get set }
    var title: String { get set }
    var note: String { get set }
    var count: Int { get set }
    var flag: Bool { get set }
    var pictureID: Int64 { get set }
}

extension ItemObject {
    /// Sets every property.
    func take(_ item: Item) {
        timestamp = item.timestamp
        title = item.title
        note = item.note
        count = item.count
        flag = item.flag
        pictureID = item.pictureID
    }

    /// Every property, as an item with the given ID.
    func item(id: Int64) -> Item {
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

    /// Reads every property into a sum.
    @inline(__always)
    func fold(id: Int64, into fold: inout RowFold) {
        fold.add(
            id: id,
            timestamp: timestamp,
            title: title,
            note: note,
            count: count,
            flag: flag,
            pictureID: pictureID
        )
    }
}

/// With the indexes on timestamp and title.
final class StoredItem: ItemObject {
    static let entityName = "Item"

    struct Columns: Sendable {
        let timestamp = Column<StoredItem, Double>("timestamp", default: 0)
        let title = Column<StoredItem, String>("title", default: "")
        let note = Column<StoredItem, String>("note", default: "")
        let count = Column<StoredItem, Int>("count", default: 0)
        let flag = Column<StoredItem, Bool>("flag", default: false)
        let pictureID = Column<StoredItem, Int64>("pictureID", default: 0)
    }
    static let columns = Columns()
    static var indexes: [EntityIndex] {
        [EntityIndex(columns.timestamp), EntityIndex(columns.title)]
    }

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var timestamp: Double {
        get { storedValue(Self.columns.timestamp, \.timestamp) }
        set { setStoredValue(newValue, Self.columns.timestamp, \.timestamp) }
    }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var note: String {
        get { storedValue(Self.columns.note, \.note) }
        set { setStoredValue(newValue, Self.columns.note, \.note) }
    }
    var count: Int {
        get { storedValue(Self.columns.count, \.count) }
        set { setStoredValue(newValue, Self.columns.count, \.count) }
    }
    var flag: Bool {
        get { storedValue(Self.columns.flag, \.flag) }
        set { setStoredValue(newValue, Self.columns.flag, \.flag) }
    }
    var pictureID: Int64 {
        get { storedValue(Self.columns.pictureID, \.pictureID) }
        set { setStoredValue(newValue, Self.columns.pictureID, \.pictureID) }
    }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension StoredItem: Sendable {}

/// Without indexes.
final class PlainItem: ItemObject {
    static let entityName = "Item"

    struct Columns: Sendable {
        let timestamp = Column<PlainItem, Double>("timestamp", default: 0)
        let title = Column<PlainItem, String>("title", default: "")
        let note = Column<PlainItem, String>("note", default: "")
        let count = Column<PlainItem, Int>("count", default: 0)
        let flag = Column<PlainItem, Bool>("flag", default: false)
        let pictureID = Column<PlainItem, Int64>("pictureID", default: 0)
    }
    static let columns = Columns()

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var timestamp: Double {
        get { storedValue(Self.columns.timestamp, \.timestamp) }
        set { setStoredValue(newValue, Self.columns.timestamp, \.timestamp) }
    }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var note: String {
        get { storedValue(Self.columns.note, \.note) }
        set { setStoredValue(newValue, Self.columns.note, \.note) }
    }
    var count: Int {
        get { storedValue(Self.columns.count, \.count) }
        set { setStoredValue(newValue, Self.columns.count, \.count) }
    }
    var flag: Bool {
        get { storedValue(Self.columns.flag, \.flag) }
        set { setStoredValue(newValue, Self.columns.flag, \.flag) }
    }
    var pictureID: Int64 {
        get { storedValue(Self.columns.pictureID, \.pictureID) }
        set { setStoredValue(newValue, Self.columns.pictureID, \.pictureID) }
    }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension PlainItem: Sendable {}

/// A large value.
final class StoredBlob: ManagedObject {
    static let entityName = "Blob"

    struct Columns: Sendable {
        let bytes = Column<StoredBlob, Blob?>("bytes", default: nil)
    }
    static let columns = Columns()

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var bytes: Blob? {
        get { storedValue(Self.columns.bytes, \.bytes) }
        set { setStoredValue(newValue, Self.columns.bytes, \.bytes) }
    }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension StoredBlob: Sendable {}
