// That a salvage keeps everything that is sound, brings nothing back that was deleted, and names
// exactly the rest.

import Foundation
import Testing
import VarveTesting

@testable import VarveInspection

@Suite struct SalvageTests {
    @Test(arguments: [true, false]) func `A sound store is copied whole`(isClosed: Bool) throws {
        let sample = try Sample(books: 60, isClosed: isClosed)
        let model = try StoreModel(sample.observer())
        let (report, fixed) = try sample.recovered()
        #expect(report.isWhole, "\(report)")
        #expect(report.isWritten)
        #expect(report.blobs == 2 && report.values == 1)
        #expect(try StoreModel(fixed) == model)
        #expect(try fixed.verify(level: .full).isSound)
        #expect(fixed.log.header.storeID == (try sample.observer().log.header.storeID))
    }

    @Test func `A damaged leaf that a checkpoint wrote is put together again`() throws {
        let sample = try Sample(books: 60)
        let model = try StoreModel(sample.observer())
        // Written by the checkpoint at closing: its rows as of the import, and the changes since.
        let leaves = try sample.frames().filter {
            $0.classification == .live && $0.kind == "PAGE" && $0.level == 0 && $0.commit == 4
                && ["Book", "Loan"].contains($0.tree)
        }
        #expect(!leaves.isEmpty)
        for leaf in leaves {
            try sample.flipped(at: leaf.place + 40) {
                let (report, fixed) = try sample.recovered()
                #expect(report.isWhole, "\(report)")
                #expect(report.entities.contains { $0.rebuilt > 0 })
                #expect(report.damage.map(\.place) == [leaf.place])
                #expect(try StoreModel(fixed) == model)
            }
        }
    }

    @Test func `Each frame of a store is damaged in turn, and the rest is kept`() throws {
        let sample = try Sample(books: 12)
        let model = try StoreModel(sample.observer())
        let frames = try sample.frames().filter { $0.kind != "ZEROS" && $0.kind != "HEADER" }
        #expect(Set(frames.map(\.kind)) == ["DELTA", "TREE", "CKPT", "CLOSE", "PAGE", "VALUE"])
        for frame in frames {
            try sample.flipped(at: frame.place + 36) {
                let comment = Comment(rawValue: "\(frame.kind) \(frame.what) \(frame.place)")
                do throws(InspectionError) {
                    let (report, fixed) = try salvage(sample)
                    try check(report, fixed, model, comment)
                } catch {
                    #expect(error.kind == .damaged, comment)
                    // One copy of the schema is all there is.
                    #expect(frame.tree == "catalog" || frame.kind == "TREE", comment)
                }
            }
        }
    }

    /// An older copy is the right one if its revision is; the app's version was compared.
    @Test func `The schema comes from an older catalog when the newest is damaged`() throws {
        let sample = try Sample(books: 12)
        let store = try RecordStore.openAsStored(
            .file(directory: sample.place.folder.path, name: "Library")
        )
        // The first commit of an opening is noted in the catalog.
        _ = try store.write { transaction in
            let author = try #require(transaction.schema.entities.first { $0.name == "Author" })
            let id = store.allocateObjectIDs(1)
            let name = ColumnValue(author.attributes[0].column, .text("Stanisław Lem"))
            try transaction.insert(author.id, id, [name])
        }
        try store.engine.checkpoint()
        try store.close()
        let model = try StoreModel(sample.observer())
        let catalogs = try sample.frames().filter { $0.kind == "PAGE" && $0.tree == "catalog" }
        #expect(catalogs.count > 1, "two copies of the schema")
        let newest = try #require(catalogs.last)
        #expect(newest.classification == .live)
        try sample.flipped(at: newest.place + 36) {
            let (report, fixed) = try salvage(sample)
            try check(report, fixed, model, "the newest catalog is damaged")
        }
    }

    /// A leaf of changes whose basis is damaged has its own rows; the others come from the log.
    @Test func `Each page of a packed store with changes is damaged in turn`() throws {
        let sample = try Sample(books: 60)
        let folder = sample.place.folder.path
        var options = RecordOptions()
        options.engine.packsAnyLeaf = true
        options.engine.retention = .newest
        let store = try RecordStore.openAsStored(
            .file(directory: folder, name: "Library"),
            options: options
        )
        _ = try store.compact()
        for step in 0..<3 {
            _ = try store.write { transaction in
                let book = try #require(transaction.schema.entities.first { $0.name == "Book" })
                let title = try #require(book.attributes.first { $0.name == "title" }).column
                var books: [ObjectID] = []
                var cursor = try store.snapshot().storage.cursor(book.tree)
                var hasBook = try cursor.first()
                while hasBook {
                    books.append(try cursor.trailingObjectID())
                    hasBook = try cursor.next()
                }
                for (place, object) in books.enumerated() where place % 29 == step + 7 {
                    let value = ColumnValue(title, .text("title of step \(step)"))
                    try transaction.update(book.id, object, [value])
                }
            }
            if step < 2 { try store.engine.checkpoint() }
        }
        try store.close()
        let model = try StoreModel(sample.observer())
        let log = try LogObserver.open(.file(directory: folder, name: "Library"))
        var (layouts, bases): (Set<UInt8>, Int) = ([], 0)
        for root in log.tail?.roots ?? [] {
            try log.audit(root) { page, _ in
                if page.isBasis { bases += 1 }
                return true
            }
        }
        let pages = try sample.frames().filter { $0.kind == "PAGE" }
        for frame in pages {
            if let page = try log.frame(at: FileOffset(frame.place))?.page {
                layouts.insert(page.layout)
            }
            try sample.flipped(at: frame.place + 60) {
                let comment = Comment(rawValue: "\(frame.what) \(frame.place)")
                do throws(InspectionError) {
                    let (report, fixed) = try salvage(sample)
                    try check(report, fixed, model, comment)
                } catch {
                    #expect(error.kind == .damaged, comment)
                    #expect(frame.tree == "catalog", comment)
                }
            }
        }
        #expect(layouts == [0, 1, 2] && bases > 0)
    }

    private func salvage(
        _ sample: Sample
    ) throws(InspectionError) -> (SalvageReport, StoreObserver) {
        do {
            return try sample.recovered()
        } catch let error as InspectionError {
            throw error
        } catch {
            throw InspectionError(.ioFailed, "\(error)")
        }
    }

    private func check(
        _ report: SalvageReport,
        _ fixed: StoreObserver,
        _ model: StoreModel,
        _ comment: Comment
    ) throws(InspectionError) {
        do {
            let now = try StoreModel(fixed)
            #expect(try fixed.verify(level: .full).isSound, comment)
            guard !report.isOlder else { return }
            let lost = Set(report.lostRows.map(\.object))
            let cut = Set(report.lostValues.map(\.object))
            #expect(now.objects.keys.allSatisfy { model.objects[$0] != nil }, comment)
            #expect(
                model.missing(in: now).subtracting(["similar"])
                    == lost.filter {
                        !$0.contains(".")
                    },
                comment
            )
            #expect(model.wrong(in: now).subtracting(["similar"]).subtracting(cut) == [], comment)
        } catch let error as InspectionError {
            throw error
        } catch {
            throw InspectionError(.ioFailed, "\(error)")
        }
    }
}
