// What the snippets share: entities written by hand, a schema, and functions that take values.
import Foundation
import VarveObjects

final class Item: ManagedObject {
    static let entityName = "Item"
    struct Columns: Sendable {
        let title = Column<Item, String>("title", default: "")
        let count = Column<Item, Int>("count", default: 0)
        let picture = ToOneColumn<Item, Picture>("picture", inverse: "item", deleteRule: .cascade)
        let tags = ToManyColumn<Item, Tag>("tags", inverse: "items")
    }
    static let columns = Columns()
    var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var count: Int {
        get { storedValue(Self.columns.count, \.count) }
        set { setStoredValue(newValue, Self.columns.count, \.count) }
    }
    var picture: Picture? {
        get { storedValue(Self.columns.picture, \.picture) }
        set { setStoredValue(newValue, Self.columns.picture, \.picture) }
    }
    var tags: ToMany<Tag> { storedValue(Self.columns.tags, \.tags) }
    var isExpanded = false
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Item: Sendable {}

final class Picture: ManagedObject {
    static let entityName = "Picture"
    struct Columns: Sendable {
        let data = Column<Picture, Blob?>("data", externalStorageAbove: 102_400)
        let item = ToOneColumn<Picture, Item>("item", inverse: "picture")
    }
    static let columns = Columns()
    var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var data: Blob? {
        get { storedValue(Self.columns.data, \.data) }
        set { setStoredValue(newValue, Self.columns.data, \.data) }
    }
    var item: Item? {
        get { storedValue(Self.columns.item, \.item) }
        set { setStoredValue(newValue, Self.columns.item, \.item) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Picture: Sendable {}

final class Tag: ManagedObject {
    static let entityName = "Tag"
    struct Columns: Sendable {
        let name = Column<Tag, String>("name", default: "")
        let items = ToManyColumn<Tag, Item>("items", inverse: "tags")
    }
    static let columns = Columns()
    var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var items: ToMany<Item> { storedValue(Self.columns.items, \.items) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Tag: Sendable {}

enum AppSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Item.self, Picture.self, Tag.self] }
}

func wantsSendable(_ value: some Sendable) {}

actor Worker {
    func take(_ item: Item) {}
    func take(_ id: Item.ID) {}
}
