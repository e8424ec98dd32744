// Albums, people and their photos, written by hand as the macros would write them.

import VarveObjects

enum GraphSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] {
        [StoredAlbum.self, StoredPerson.self, StoredPhoto.self]
    }
}

final class StoredAlbum: ManagedObject {
    static let entityName = "Album"

    struct Columns: Sendable {
        let name = Column<StoredAlbum, String>("name", default: "")
        let photos = ToManyColumn<StoredAlbum, StoredPhoto>(
            "photos",
            inverse: "album",
            deleteRule: .cascade
        )
    }
    static let columns = Columns()

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var photos: ToMany<StoredPhoto> { storedValue(Self.columns.photos, \.photos) }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension StoredAlbum: Sendable {}

final class StoredPerson: ManagedObject {
    static let entityName = "Person"

    struct Columns: Sendable {
        let name = Column<StoredPerson, String>("name", default: "")
        let photos = ToManyColumn<StoredPerson, StoredPhoto>("photos", inverse: "author")
    }
    static let columns = Columns()

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var photos: ToMany<StoredPhoto> { storedValue(Self.columns.photos, \.photos) }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension StoredPerson: Sendable {}

final class StoredPhoto: ManagedObject {
    static let entityName = "Photo"

    struct Columns: Sendable {
        let title = Column<StoredPhoto, String>("title", default: "")
        let stars = Column<StoredPhoto, Int>("stars", default: 0)
        let album = ToOneColumn<StoredPhoto, StoredAlbum>("album")
        let author = ToOneColumn<StoredPhoto, StoredPerson>("author")
    }
    static let columns = Columns()

    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var stars: Int {
        get { storedValue(Self.columns.stars, \.stars) }
        set { setStoredValue(newValue, Self.columns.stars, \.stars) }
    }
    var album: StoredAlbum? {
        get { storedValue(Self.columns.album, \.album) }
        set { setStoredValue(newValue, Self.columns.album, \.album) }
    }
    var author: StoredPerson? {
        get { storedValue(Self.columns.author, \.author) }
        set { setStoredValue(newValue, Self.columns.author, \.author) }
    }
}

@available(*, unavailable, message: "managed objects stay in their context")
extension StoredPhoto: Sendable {}
