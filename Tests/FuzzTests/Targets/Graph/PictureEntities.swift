// The entities of runs about pictures and large texts, and the few contents that they share.

import Foundation
import VarveObjects
import VarveTesting

/// What has a caption, a text, and a blob of either kind.
protocol Pictured: ManagedObject {
    var caption: String { get set }
    var text: String { get set }
    var small: Blob? { get set }
    var large: Blob? { get set }
}

final class Photo: Pictured {
    static let entityName = "Photo"
    struct Columns: Sendable {
        let caption = Column<Photo, String>("caption", default: "")
        let text = Column<Photo, String>("text", default: "")
        let small = Column<Photo, Blob?>("small")
        let large = Column<Photo, Blob?>("large", externalStorageAbove: 1_000)
        let album = ToOneColumn<Photo, Album>("album", inverse: "photos")
        let guestOf = ToOneColumn<Photo, Album>("guestOf", inverse: "guests")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var caption: String {
        get { storedValue(Self.columns.caption, \.caption) }
        set { setStoredValue(newValue, Self.columns.caption, \.caption) }
    }
    var text: String {
        get { storedValue(Self.columns.text, \.text) }
        set { setStoredValue(newValue, Self.columns.text, \.text) }
    }
    var small: Blob? {
        get { storedValue(Self.columns.small, \.small) }
        set { setStoredValue(newValue, Self.columns.small, \.small) }
    }
    var large: Blob? {
        get { storedValue(Self.columns.large, \.large) }
        set { setStoredValue(newValue, Self.columns.large, \.large) }
    }
    var album: Album? {
        get { storedValue(Self.columns.album, \.album) }
        set { setStoredValue(newValue, Self.columns.album, \.album) }
    }
    var guestOf: Album? {
        get { storedValue(Self.columns.guestOf, \.guestOf) }
        set { setStoredValue(newValue, Self.columns.guestOf, \.guestOf) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Photo: Sendable {}

final class Album: Pictured {
    static let entityName = "Album"
    struct Columns: Sendable {
        let caption = Column<Album, String>("caption", default: "")
        let text = Column<Album, String>("text", default: "")
        let small = Column<Album, Blob?>("small")
        let large = Column<Album, Blob?>("large", externalStorageAbove: 1_000)
        let photos = ToManyColumn<Album, Photo>("photos", inverse: "album", deleteRule: .cascade)
        let guests = ToManyColumn<Album, Photo>("guests", inverse: "guestOf")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var caption: String {
        get { storedValue(Self.columns.caption, \.caption) }
        set { setStoredValue(newValue, Self.columns.caption, \.caption) }
    }
    var text: String {
        get { storedValue(Self.columns.text, \.text) }
        set { setStoredValue(newValue, Self.columns.text, \.text) }
    }
    var small: Blob? {
        get { storedValue(Self.columns.small, \.small) }
        set { setStoredValue(newValue, Self.columns.small, \.small) }
    }
    var large: Blob? {
        get { storedValue(Self.columns.large, \.large) }
        set { setStoredValue(newValue, Self.columns.large, \.large) }
    }
    var photos: ToMany<Photo> { storedValue(Self.columns.photos, \.photos) }
    var guests: ToMany<Photo> { storedValue(Self.columns.guests, \.guests) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Album: Sendable {}

enum PictureSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Photo.self, Album.self] }
}

/// Few contents, so that objects share them: empty, inside the store's file, and in files.
enum PictureContents {
    static let blobs: [Data] = [0, 1, 40, 300, 1_000, 1_001, 1_800, 4_000].enumerated().map {
        bytes(number: $0, count: $1)
    }
    static let texts: [String] = [0, 3, 60, 900, 9_000, 30_000].enumerated().map {
        String(repeating: "\($0)", count: $1)
    }
    private static let numbersOfBlobs = Dictionary(
        uniqueKeysWithValues: blobs.enumerated().map { ($1, $0) }
    )
    private static let numbersOfTexts = Dictionary(
        uniqueKeysWithValues: texts.enumerated().map { ($1, $0) }
    )

    /// The names of their files.
    static let fileNames: [String] = blobs.map { BlobHasher.digest(of: Array($0)).hexText }

    private static func bytes(number: Int, count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
    }

    /// The content that a blob's bytes are; -1: there is no blob.
    static func number(of blob: Blob?) throws -> Int {
        guard let blob else { return -1 }
        let bytes = try blob.readAll()
        guard let number = numbersOfBlobs[bytes], bytes.count == blob.length else {
            throw Violation("\(bytes.count) bytes that nobody wrote")
        }
        return number
    }

    static func number(of text: String) throws -> Int {
        guard let number = numbersOfTexts[text] else {
            throw Violation("a text of \(text.utf8.count) bytes that nobody wrote")
        }
        return number
    }
}
