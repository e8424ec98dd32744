// Batch operations against the same work done with objects: rules, inverses, indexes.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BatchRuleTests {
    /// Everything that a container holds, by names: two containers are compared with it.
    private func dump(_ container: PersistentContainer) throws -> [String] {
        let context = container.newContext()
        var lines: [String] = []
        for item in try context.fetch(Item.all) {
            lines.append(
                "\(item.title) \(item.number) \(item.priority) folder \(item.folder?.name ?? "-") "
                    + "picture \(item.picture?.caption ?? "-") "
                    + "tags \(item.tags.map(\.name))"
            )
        }
        for picture in try context.fetch(Picture.all) {
            lines.append("\(picture.caption) of \(picture.item?.title ?? "-")")
        }
        for folder in try context.fetch(Folder.all) {
            lines.append(
                "\(folder.name) of \(folder.owner?.name ?? "-"): \(folder.items.map(\.title))"
            )
        }
        for person in try context.fetch(Person.all) {
            lines.append(
                "\(person.name) friend \(person.friend?.name ?? "-") "
                    + "\(person.folders.map(\.name)) likes \(person.likes.map(\.name))"
            )
        }
        for tag in try context.fetch(Tag.all) {
            lines.append("\(tag.name): \(tag.items.map(\.title))")
        }
        for number in 0..<6 {
            lines.append("\(number): \(try context.count(Item.where { $0.number == number }))")
        }
        return lines
    }

    private func fill(_ context: ManagedObjectContext, _ random: inout Dice) throws {
        let people = (0..<3).map { index in
            let person = Person(in: context)
            person.name = "person \(index)"
            return person
        }
        for person in people where random.below(2) == 0 { person.friend = random.pick(people) }
        let folders = (0..<5).map { index in
            let folder = Folder(in: context)
            folder.name = "folder \(index)"
            if random.below(3) == 0 { folder.owner = random.pick(people) }
            return folder
        }
        let tags = (0..<4).map { index in
            let tag = Tag(in: context)
            tag.name = "tag \(index)"
            return tag
        }
        for person in people { person.likes.append(random.pick(tags)) }
        for index in 0..<20 {
            let item = Item(in: context)
            item.title = "item \(index)"
            item.number = random.below(6)
            if random.below(2) == 0 { item.folder = random.pick(folders) }
            for _ in 0..<random.below(3) { item.tags.append(random.pick(tags)) }
            if random.below(2) == 0 {
                let picture = Picture(in: context)
                picture.caption = "picture \(index)"
                item.picture = picture
            }
        }
        try context.save()
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func aBatchDoesWhatObjectsDo(_ seed: UInt64) throws {
        let (batched, plain) = (try memory(), try memory())
        var (one, two) = (Dice(seed), Dice(seed))
        try fill(batched.newContext(), &one)
        try fill(plain.newContext(), &two)
        #expect(try dump(batched) == dump(plain))
        for round in 0..<12 {
            let context = batched.newContext()
            let objects = plain.newContext()
            let number = one.below(6)
            switch one.below(6) {
            case 0:
                let delta = one.below(3)
                try context.batchUpdate(Item.where { $0.number == number }) { row in
                    row.number = (row.number + delta) % 6
                    row.title += "!"
                }
                for item in try objects.fetch(Item.where { $0.number == number }) {
                    item.number = (item.number + delta) % 6
                    item.title += "!"
                }
            case 1:
                let target = try context.fetch(Folder.all).first
                let same = try objects.fetch(Folder.all).first
                try context.batchUpdate(Item.where { $0.number <= number }) { row in
                    row.folder = row.folder == nil ? target?.id : nil
                }
                for item in try objects.fetch(Item.where { $0.number <= number }) {
                    item.folder = item.folder == nil ? same : nil
                }
            case 2:
                try context.batchDelete(Item.where { $0.number == number })
                for item in try objects.fetch(Item.where { $0.number == number }) {
                    objects.delete(item)
                }
            case 3:
                let name = "tag \(number)"
                try context.batchDelete(Tag.where { $0.name == name })
                for tag in try objects.fetch(Tag.where { $0.name == name }) { objects.delete(tag) }
            case 4:
                let name = "folder \(number)"
                try context.batchDelete(Folder.where { $0.name == name })
                for folder in try objects.fetch(Folder.where { $0.name == name }) {
                    objects.delete(folder)
                }
            default:
                let name = "person \(number)"
                let denied = code { try context.batchDelete(Person.where { $0.name == name }) }
                for person in try objects.fetch(Person.where { $0.name == name }) {
                    objects.delete(person)
                }
                let refused = code { try objects.save() }
                #expect(denied == refused, "seed \(seed), round \(round)")
                if refused != nil { objects.rollback() }
            }
            try objects.save()
            #expect(try dump(batched) == dump(plain), "seed \(seed), round \(round)")
        }
    }

    @Test func denialsNameBothSidesAndNothingIsDeleted() throws {
        let container = try memory()
        let context = container.newContext()
        let person = Person(in: context)
        let folder = Folder(in: context)
        folder.owner = person
        try context.save()
        do {
            try context.batchDelete([person.id])
            Issue.record("not denied")
        } catch let error as StoreError {
            #expect(error.code == .deleteDenied)
            #expect(error.details.first?.objects == [person.objectID, folder.objectID])
        }
        #expect(try context.count(Person.all) == 1)
        try context.batchDelete([folder.id])
        #expect(folder.isDeleted)
        let result = try context.batchDelete([person.id, person.id])
        #expect(result.deleted == 1)
        #expect(try context.batchDelete([person.id]).skipped == 1)
    }

    @Test func anUpdateThatChangesNothingIsNoCommit() throws {
        let container = try memory()
        try makeItems(4, in: container)
        let context = container.newContext()
        let commits = container.statistics.commits
        let result = try context.batchUpdate(Item.all) { row in
            row.title = row.title
            row.number += 0
            row.serial = nil
        }
        #expect(result.updated == 0 && result.skipped == 4 && result.commit == nil)
        #expect(container.statistics.commits == commits)
        // Only what differs is written, and versions of the others stay.
        let changed = try context.batchUpdate(Item.all) { row in row.number = 2 }
        #expect(changed.updated == 3 && changed.skipped == 1)
        let pieces = try context.batchUpdate(Item.all, rowsPerCommit: 3) { $0.number += 1 }
        #expect(pieces.updated == 4 && container.statistics.commits == commits + 3)
    }

    @Test func uniquenessIsCheckedWhenTheBatchEnds() throws {
        let container = try memory()
        let context = container.newContext()
        let serials = (0..<40).map { _ in UUID() }
        try context.batchInsert(Item.self, serials) { row, serial in row.serial = serial }
        let ids = try context.fetchIDs(Item.all)
        // They exchange their values: in between two rows have the same.
        try context.batchUpdate(ids) { row in
            let index = ids.firstIndex(of: row.id) ?? 0
            row.serial = serials[(index + 1) % 40]
        }
        #expect(try context.fetch(Item.all).map(\.serial) == Array(serials[1...]) + [serials[0]])
        do {
            try context.batchUpdate([ids[3], ids[7]]) { row in row.serial = serials[0] }
            Issue.record("not unique")
        } catch let error as StoreError {
            #expect(error.code == .notUnique)
            #expect(
                Set(error.details.flatMap(\.objects)) == Set([3, 7, 39].map { ids[$0].objectID })
            )
        }
    }
}

@Suite(.verified) struct BulkUniquenessTests {
    /// A bulk load is checked by one walk over the index: it finds what single searches find.
    @Test func duplicatesInABulkLoadAreFound() throws {
        let container = try memory()
        let context = container.newContext()
        var serials: [UUID?] = (0..<900).map { _ in UUID() }
        for index in stride(from: 5, to: 900, by: 7) { serials[index] = nil }
        try context.batchInsert(Item.self, serials) { row, serial in row.serial = serial }
        #expect(try context.count(Item.all) == 900)
        var more: [UUID?] = (0..<600).map { _ in UUID() }
        more[3] = serials[0]
        more[77] = more[400]
        do {
            try context.batchInsert(Item.self, more) { row, serial in row.serial = serial }
            Issue.record("not unique")
        } catch let error as StoreError {
            #expect(error.code == .notUnique && error.details.count == 2)
            #expect(error.details.allSatisfy { $0.objects.count == 2 })
        }
        #expect(try context.count(Item.all) == 900)
    }
}

/// Chance with a seed.
private struct Dice {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

    mutating func below(_ count: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(count))
    }

    mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
}
