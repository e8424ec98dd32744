// The sample store in a folder of its own, and copies of it with a damaged byte.

import Foundation
import Testing
import VarveInspection
import VarveTesting

/// A store on disk that a test may damage.
final class Sample {
    let place: TemporaryStore
    var path: String { place.url.path }

    /// Makes the store; `isClosed` false leaves it as a process that was killed does.
    init(books: Int = 40, isClosed: Bool = true) throws {
        place = try TemporaryStore("Library")
        let location = StoreLocation.file(directory: place.folder.path, name: "Library")
        let store = try SampleStore.make(location, books: books)
        if isClosed {
            try store.close()
        } else {
            let bytes = try Data(contentsOf: place.url)
            try store.close()
            try bytes.write(to: place.url)
        }
    }

    func observer() throws -> StoreObserver { try StoreObserver.open(path) }

    /// All pieces of the file.
    func frames() throws -> [FrameEntry] {
        var entries: [FrameEntry] = []
        try observer().frames { entry in
            entries.append(entry)
            return true
        }
        return entries
    }

    /// Gives loans the object IDs of books, as no app can.
    func shareObjectIDs(_ count: Int) throws -> [UInt64] {
        let store = try RecordStore.openAsStored(
            .file(directory: place.folder.path, name: "Library")
        )
        let snapshot = try store.snapshot()
        guard let book = snapshot.schema.all.first(where: { $0.name == "Book" }),
            let loan = snapshot.schema.all.first(where: { $0.name == "Loan" })
        else { return [] }
        var books: [ObjectID] = []
        var cursor = snapshot.storage.cursor(book.tree)
        var hasBook = try cursor.first()
        while hasBook, books.count < count {
            books.append(try cursor.trailingObjectID())
            hasBook = try cursor.next()
        }
        var loans = snapshot.storage.cursor(loan.tree)
        _ = try loans.first()
        let row = try loans.row().bytes
        _ = try store.engine.write { transaction in
            for object in books { try transaction.insert(loan.id, object, row: row) }
        }
        try store.close()
        return books.map(\.rawValue)
    }

    /// Flips a bit, looks, and puts it back.
    func damaged<R>(at offset: UInt64, _ body: (StoreObserver) throws -> R) throws -> R {
        let sound = try Data(contentsOf: place.url)
        var bytes = sound
        bytes[Int(offset)] ^= 0x10
        try bytes.write(to: place.url)
        defer { try? sound.write(to: place.url) }
        return try body(observer())
    }
}
