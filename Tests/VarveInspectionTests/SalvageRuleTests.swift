// The rules of a salvage: earlier commits, rows set aside, limits, names that are taken; and stores
// with random damage.

import Foundation
import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveInspection

@Suite struct SalvageRuleTests {
    @Test func `An earlier commit is recovered as it was`() throws {
        let sample = try Sample(books: 40)
        var options = SalvageOptions()
        options.commit = 2
        let (report, fixed) = try sample.recovered(options)
        #expect(report.commit == 2)
        let then = try StoreModel(fixed)
        let now = try StoreModel(sample.observer())
        // "edit" changed one book, "lend" added a loan and deleted one.
        #expect(then.missing(in: now) == ["Loan:46"])
        #expect(now.missing(in: then) == ["Loan:126"])
        #expect(now.wrong(in: then) == ["Book:7", "Loan:46"])
        options.commit = 99
        #expect(throws: InspectionError.self) { try sample.recovered(options, as: "Other") }
    }

    @Test func `A list of a few bytes that names millions of objects takes no more than allowed`() {
        var objects = ObjectIDSet()
        objects.append(1, through: 1 << 26)
        let list = ChangedObjects(entity: EntityID(1), kind: .updated, objects: objects)
        var stories = RowStories()
        stories.add(
            .trees(roots: [], changes: [list, list]),
            of: CommitNumber(3),
            bytesMax: 100_000
        ) { _, _ in true }
        // Just over the limit, so that the salvage sees it, and no further.
        #expect(stories.bytes > 100_000 && stories.bytes < 101_000)
        #expect(stories.objects(of: EntityID(1)).count < 1_000)
    }

    @Test func `Nothing is written over, and a plan writes nothing`() throws {
        let sample = try Sample()
        let folder = sample.place.folder.path
        let before = sample.place.files
        let plan = try sample.observer().salvagePlan()
        #expect(plan.isWhole && !plan.isWritten)
        #expect(sample.place.files == before)
        #expect {
            try sample.observer().salvage(to: .file(directory: folder, name: "Library"))
        } throws: { ($0 as? InspectionError)?.kind == .exists }
        #expect(sample.place.files == before)
        // One that is ended leaves no store and no name behind.
        #expect {
            try sample.observer().salvage(
                to: .file(directory: folder, name: "Fixed")
            ) { bytes, _ in bytes < 2000 }
        } throws: { ($0 as? InspectionError)?.kind == .cancelled }
        #expect(!sample.place.files.keys.contains { $0.hasPrefix("Fixed") })
    }

    @Test func `Limits of memory end the work with a word, not with a guess`() throws {
        let sample = try Sample(books: 200, isClosed: false)
        var options = SalvageOptions()
        options.memoryBytesMax = 100
        #expect {
            try sample.recovered(options)
        } throws: { ($0 as? InspectionError)?.kind == .limit }
        let leaf = try #require(
            try sample.frames().first {
                $0.classification == .live && $0.tree == "Loan" && $0.level == 0
            }
        )
        try sample.damaged(at: leaf.place + 40) { observer in
            let whole = try observer.verify()
            #expect(whole.isComplete && !whole.isSound)
            let cut = try observer.verify(memoryBytesMax: 1)
            #expect(!cut.isComplete && !cut.isSound)
        }
    }

    @Test(arguments: [false, true])
    func `What a large commit may have changed is set aside, and what it deleted stays deleted`(
        usesOlder: Bool
    ) throws {
        let place = try TemporaryStore("Items")
        try makeItems(place)
        let leaf = try damageLeaf(place)
        var options = SalvageOptions()
        options.usesOlder = usesOlder
        let report = try StoreObserver.open(place.url.path).salvage(
            to: .file(directory: place.folder.path, name: "Fixed"),
            options
        )
        #expect(report.damage.map(\.place) == [leaf.place], "\(report)")
        #expect(!report.lostRows.isEmpty)
        #expect(report.lostRows.allSatisfy { $0.asOf == 2 && $0.isUsed == usesOlder })
        let fixed = try StoreObserver.open("\(place.folder.path)/Fixed.varve")
        #expect(try fixed.verify(level: .full).isSound)
        let rows = try fixed.rows(RowsRequest(entity: "Item")).rows
        let lost = Set(report.lostRows.map(\.object))
        #expect(rows.count == (usesOlder ? 300 : 300 - lost.count))
        for row in rows {
            let number = try #require(UInt64(row.object.dropFirst(5)))
            #expect(number % 4 != 0, "a deleted row came back")
            let isOlder = lost.contains(row.object)
            #expect(row.values == [.text(isOlder ? "old \(number)" : "new \(number)")])
        }
    }

    @Test func `A damaged leaf of an import is lost and named, and nothing else is`() throws {
        let place = try TemporaryStore("Items")
        try makeItems(place, rounds: 1)
        let all = try StoreObserver.open(place.url.path).rows(RowsRequest(entity: "Item")).rows
        let leaf = try damageLeaf(place)
        let report = try StoreObserver.open(place.url.path).salvage(
            to: .file(directory: place.folder.path, name: "Fixed")
        )
        let lost = Set(report.lostRows.map(\.object))
        #expect(lost.count == leaf.entries, "\(report)")
        // The index still has their names.
        for row in report.lostRows {
            #expect(row.known.map(\.value) == [.text("old \(row.object.dropFirst(5))")])
        }
        let fixed = try StoreObserver.open("\(place.folder.path)/Fixed.varve")
        let kept = try fixed.rows(RowsRequest(entity: "Item")).rows
        #expect(kept.map(\.object) == all.map(\.object).filter { !lost.contains($0) })
        #expect(try fixed.verify(level: .full).isSound)
        #expect(!report.isWhole)
    }

    /// Flips a bit in the last leaf of items.
    private func damageLeaf(_ place: TemporaryStore) throws -> FrameEntry {
        var leaf: FrameEntry?
        try StoreObserver.open(place.url.path).frames { entry in
            if entry.classification == .live, entry.tree == "Item", entry.level == 0 {
                leaf = entry
            }
            return true
        }
        let found = try #require(leaf)
        var bytes = try Data(contentsOf: place.url)
        bytes[Int(found.place) + 45] ^= 4
        try bytes.write(to: place.url)
        return found
    }

    /// 400 items in one large commit; another one renames all and deletes every fourth.
    private func makeItems(_ place: TemporaryStore, rounds: Int = 2) throws {
        var options = RecordOptions()
        options.engine.deltaBytesMax = 1
        let store = try RecordStore.open(
            .file(directory: place.folder.path, name: "Items"),
            schema: SchemaDescription(
                version: 1,
                entities: [
                    EntityDescription(
                        name: "Item",
                        attributes: [AttributeDescription(name: "name", type: .text)],
                        indexes: [IndexDescription("name")]
                    )
                ]
            ),
            options: options
        )
        let item = try #require(try store.schema.entity(named: "Item"))
        let name = try #require(item.attribute(named: "name")).column
        let first = store.allocateObjectIDs(400).rawValue
        for round in 0..<rounds {
            _ = try store.write { transaction in
                for number in first..<(first + 400) {
                    let object = ObjectID(number)
                    if round == 0 {
                        let value = ColumnValue(name, .text("old \(number)"))
                        try transaction.insert(item.id, object, [value])
                    } else if number % 4 == 0 {
                        try transaction.delete(item.id, object)
                    } else {
                        let value = ColumnValue(name, .text("new \(number)"))
                        try transaction.update(item.id, object, [value])
                    }
                }
            }
        }
        try store.close()
    }

    @Test(arguments: 0..<12) func `Random damage gives a sound store or an error`(
        seed: UInt64
    ) throws {
        let sample = try Sample(books: 12 + Int(seed % 3) * 40, isClosed: seed % 2 == 0)
        let model = try StoreModel(sample.observer())
        var random = SeededRandom(seed: seed)
        var bytes = try Data(contentsOf: sample.place.url)
        for _ in 0..<(1 + random.next() % 6) {
            let at = Int(random.next() % UInt64(bytes.count))
            bytes[at] ^= UInt8(1 << (random.next() % 8))
        }
        try bytes.write(to: sample.place.url)
        do {
            let (report, fixed) = try sample.recovered()
            #expect(try fixed.verify(level: .full).isSound, "seed \(seed)")
            guard !report.isOlder else { return }
            // Nothing that was not there, and nothing that was lost in silence.
            let now = try StoreModel(fixed)
            let cut = Set(report.lostValues.map(\.object))
            let lost = Set(report.lostRows.map(\.object))
            #expect(
                model.wrong(in: now).subtracting(cut).subtracting(["similar"]) == [],
                "seed \(seed)"
            )
            let isNamed = report.entities.allSatisfy { $0.unnamed == 0 }
            #expect(
                !isNamed || model.missing(in: now).subtracting(lost) == [],
                "seed \(seed)"
            )
        } catch let error as InspectionError {
            #expect([.damaged, .notAStore].contains(error.kind), "seed \(seed): \(error)")
        }
    }
}
