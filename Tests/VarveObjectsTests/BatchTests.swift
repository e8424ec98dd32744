// Batch operations: imports, changes and deletions without objects.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BatchInsertTests {
    @Test func rowsAreOrdinaryObjectsAfterwards() throws {
        let container = try memory()
        let context = container.newContext()
        let folder = Folder(in: context)
        folder.name = "inbox"
        try context.save()
        let commits = container.statistics.commits
        let serial = UUID()
        var ids: [Item.ID] = []
        let result = try context.batchInsert(Item.self, ["a", "b", "c"]) { row, title in
            row.title = title
            #expect(row.number == 0 && row.priority == .normal && row.serial == nil)
            row.number = title == "b" ? 7 : 1
            row.number += 1
            row.priority = .high
            row.folder = title == "c" ? nil : folder.id
            #expect((row.folder == folder.id) == (title != "c"))
            if title == "a" { row.serial = serial }
            ids.append(row.id)
        }
        #expect(result.inserted == 3 && result.updated == 0 && result.skipped == 0)
        #expect(result.commit == context.commit)
        #expect(container.statistics.commits == commits + 1)
        // No object was made but the folder.
        #expect(container.statistics.registeredObjects == 1)
        let items = try context.fetch(Item.all)
        #expect(items.map(\.id) == ids)
        #expect(items.map(\.title) == ["a", "b", "c"])
        #expect(items.map(\.number) == [2, 8, 2])
        #expect(items.allSatisfy { $0.priority == .high })
        #expect(items[0].serial == serial && items[1].serial == nil)
        #expect(Array(folder.items) == [items[0], items[1]])
        #expect(abs(items[0].timestamp.timeIntervalSinceNow) < 60)
        // Indexes know them.
        #expect(try context.count(Item.where { $0.number == 8 }) == 1)
        #expect(try context.explain(Item.where { $0.number == 8 }).contains("index"))
    }

    @Test func everyTypeArrivesAsItWas() throws {
        let container = try memory()
        let context = container.newContext()
        let date = Date(timeIntervalSinceReferenceDate: 77.25)
        let id = UUID()
        let decimal = try #require(Decimal(string: "-12.50"))
        try context.batchInsert(Everything.self, count: 2) { row, index in
            row.required = "there"
            if index == 0 { return }
            row.bool = false
            row.int = .min
            row.int8 = 5
            row.uint64 = 9
            row.double = .pi
            row.float = 0.5
            row.string = "zwölf"
            row.date = date
            row.uuid = id
            row.data = Data([9, 8])
            row.decimal = decimal
            row.color = .red
            row.optionalInt = 3
            row.optionalString = nil
            row.optionalBool = true
            row.optionalDate = date
            row.optionalColor = .green
            #expect(row.string == "zwölf" && row.optionalString == nil && row.decimal == decimal)
            #expect(row.optionalColor == .green && row.data == Data([9, 8]))
        }
        let model = Everything(in: context)
        let objects = try context.fetch(Everything.all.includingPendingChanges(false))
        // The first has the defaults of an object made by hand.
        #expect(objects[0].bool == model.bool && objects[0].uint == model.uint)
        #expect(objects[0].string == model.string && objects[0].url == model.url)
        #expect(objects[0].decimal == model.decimal && objects[0].optionalString == "given")
        let last = objects[1]
        #expect(!last.bool && last.int == .min && last.int8 == 5 && last.uint64 == 9)
        #expect(last.double == .pi && last.float == 0.5 && last.string == "zwölf")
        #expect(last.date == date && last.uuid == id && last.data == Data([9, 8]))
        #expect(last.decimal == decimal && last.color == .red && last.optionalInt == 3)
        #expect(last.optionalString == nil && last.optionalBool == true)
        #expect(last.optionalDate == date && last.optionalColor == .green)
    }

    @Test func rowsAreChecked() throws {
        let container = try memory()
        let context = container.newContext()
        #expect(
            code { try context.batchInsert(Everything.self, count: 1) { _, _ in } } == .missingValue
        )
        // The entity's own check runs, on an object that leaves no trace.
        do {
            try context.batchInsert(Item.self, ["good", "bad"]) { row, title in row.title = title }
            Issue.record("validate was not asked")
        } catch let error as StoreError {
            #expect(error.code == .invalid && error.outcome == .nothingSaved)
            #expect(error.details.map(\.message) == ["title must not be bad"])
        }
        #expect(try context.count(Item.all) == 0)
        #expect(container.statistics.registeredObjects == 0)
        #expect(container.statistics.realisedObjects == 0)
        // A relationship must lead somewhere in this store.
        let other = try memory()
        let strangers = try makeItems(3, in: other)
        _ = strangers
        let far = other.newContext()
        let stranger = Folder(in: far)
        try far.save()
        #expect(
            code {
                try context.batchInsert(Item.self, count: 1) { row, _ in row.folder = stranger.id }
            } == .foreignID
        )
        let folder = Folder(in: context)
        try context.save()
        let id = folder.id
        context.delete(folder)
        try context.save()
        #expect(
            code { try context.batchInsert(Item.self, count: 1) { row, _ in row.folder = id } }
                == .objectNotFound
        )
        #expect(
            code { try context.batchInsert(Item.self, count: 1, rowsPerCommit: 0) { _, _ in } }
                == .invalidRequest
        )
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try context.batchInsert(Item.self, count: 3) { _, index in
                if index == 2 { throw Stop() }
            }
        }
        #expect(try context.count(Item.all) == 0)
    }

    @Test func constraintsHold() throws {
        let container = try memory()
        let context = container.newContext()
        let serial = UUID()
        #expect(
            code {
                try context.batchInsert(Item.self, count: 2) { row, _ in row.serial = serial }
            } == .notUnique
        )
        #expect(try context.count(Item.all) == 0)
        // upsert: the existing account takes what was given and keeps the rest.
        let first = try context.batchInsert(Account.self, ["a", "b"]) { row, email in
            row.email = email
            row.visits = 5
        }
        #expect(first.inserted == 2)
        let ids = try context.fetchIDs(Account.all)
        let second = try context.batchInsert(Account.self, ["b", "c", "b"]) { row, email in
            row.email = email
            row.name = "second"
        }
        // The second "b" changes nothing any more.
        #expect(second.inserted == 1 && second.updated == 1 && second.skipped == 1)
        let before = try container.historyToken
        let again = try context.batchInsert(Account.self, ["b", "c"]) { row, email in
            row.email = email
            row.name = "second"
        }
        #expect(again.inserted == 0 && again.updated == 0 && again.skipped == 2)
        #expect(try container.historyToken == before)
        let accounts = try context.fetch(Account.all)
        #expect(accounts.map(\.email) == ["a", "b", "c"])
        #expect(Array(accounts.map(\.id).prefix(2)) == ids)
        #expect(accounts.map(\.name) == ["new", "second", "second"])
        #expect(accounts.map(\.visits) == [5, 5, 0])
        // ignore: the new row is dropped.
        let third = try context.batchInsert(Account.self, count: 3) { row, index in
            row.email = "x\(index)"
            row.code = 1
        }
        #expect(third.inserted == 1 && third.skipped == 2)
    }

    @Test func aOneToOneInverseFollows() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        let picture = Picture(in: context)
        item.picture = picture
        let free = Picture(in: context)
        try context.save()
        let result = try context.batchInsert(Item.self, count: 2) { row, index in
            row.title = "new \(index)"
            row.picture = index == 0 ? picture.id : free.id
        }
        #expect(result.inserted == 2 && result.updated == 3)
        let items = try context.fetch(Item.all)
        #expect(items[0] === item && item.picture == nil)
        #expect(items[1].picture === picture && picture.item === items[1])
        #expect(items[2].picture === free && free.item === items[2])
        try context.batchUpdate([items[1].id, items[2].id]) { row in
            row.picture = row.picture == picture.id ? free.id : nil
        }
        #expect(items[1].picture === free && free.item === items[1])
        #expect(items[2].picture == nil && picture.item == nil)
    }

    @Test func blobsGoAlong() throws {
        let container = try memory()
        let context = container.newContext()
        let data = Data((0..<500).map { UInt8(truncatingIfNeeded: $0) })
        try context.batchInsert(Picture.self, count: 3) { row, index in
            row.caption = "\(index)"
            if index < 2 { row.data = try context.makeBlob(data, for: Picture.columns.data) }
            #expect((row.data?.length ?? 0) == (index < 2 ? 500 : 0))
        }
        let pictures = try context.fetch(Picture.all)
        #expect(try pictures.map { try $0.data?.readAll() } == [data, data, nil])
    }

    @Test func manyCommitsBoundABatch() throws {
        let container = try memory()
        let context = container.newContext()
        let commits = container.statistics.commits
        let result = try context.batchInsert(Tag.self, count: 25, rowsPerCommit: 10) { row, index in
            row.name = "tag \(index)"
        }
        #expect(result.inserted == 25)
        #expect(container.statistics.commits == commits + 3)
        #expect(try context.count(Tag.all) == 25)
        do {
            try context.batchInsert(Item.self, count: 25, rowsPerCommit: 10) { row, index in
                row.number = index == 22 ? -1 : index
            }
            Issue.record("validate was not asked")
        } catch let error as StoreError {
            // Two commits stand.
            #expect(error.code == .invalid && error.outcome == .saved)
        }
        #expect(try context.count(Item.all) == 20)
        let empty = try context.batchInsert(Tag.self, [Int]()) { _, _ in }
        #expect(empty == BatchResult.nothing)
    }

    @Test func unsavedEditsAndOtherContextsAreNotDisturbed() throws {
        let container = try memory()
        let ids = try makeItems(3, in: container)
        let context = container.newContext()
        let other = container.newContext()
        let mine = try #require(try context.existingObject(with: ids[0]))
        let theirs = try #require(try other.existingObject(with: ids[1]))
        mine.title = "edited"
        let new = Item(in: context)
        try context.batchUpdate(Item.all) { row in row.number += 10 }
        #expect(mine.title == "edited" && mine.number == 10 && context.hasChanges)
        #expect(theirs.number == 1)
        other.advance()
        #expect(theirs.number == 11)
        try context.batchDelete([ids[1]])
        other.advance()
        #expect(theirs.isDeleted && theirs.number == 11)
        // The edits are saved as ever; the rows beneath them were merged.
        try context.save()
        #expect(mine.title == "edited" && new.number == 0)
    }
}

extension BatchResult {
    fileprivate static let nothing: BatchResult = {
        guard let container = try? memory() else { preconditionFailure("no memory") }
        guard let result = try? container.newContext().batchDelete(Tag.all) else {
            preconditionFailure("deleting nothing failed")
        }
        return result
    }()
}
