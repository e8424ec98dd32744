// A model of history: what a store held after each commit, as plain dictionaries, and random steps.

import Foundation
import VarveBase
import VarveEngine
import VarveIO
import VarveRecords
import VarveTesting

@testable import VarveObjects

/// Everything that a context shows, by object number.
struct StoreCopy: Equatable {
    struct Thing: Equatable {
        var title: String
        var number = 0
        var folder: UInt64?
        /// The one-to-one between items and pictures.
        var partner: UInt64?
        var tags: [UInt64] = []
        var blob: Data?

        /// Its attributes and to-one relationships, by name.
        func differences(from other: Thing) -> Set<String> {
            var names: Set<String> = []
            if title != other.title { names.insert("title") }
            if number != other.number { names.insert("number") }
            if folder != other.folder { names.insert("folder") }
            if partner != other.partner { names.insert("picture") }
            if blob != other.blob { names.insert("data") }
            return names
        }
    }
    var items: [UInt64: Thing] = [:]
    var tags: [UInt64: Thing] = [:]
    var folders: [UInt64: Thing] = [:]
    var pictures: [UInt64: Thing] = [:]

    init() {}

    init(of context: ManagedObjectContext) throws {
        func number(_ object: any ManagedObject) -> UInt64 {
            object.objectID.object.rawValue
        }
        for item in try context.fetch(FetchDescriptor<Item>()) {
            items[number(item)] = Thing(
                title: item.title,
                number: item.number,
                folder: item.folder.map { number($0) },
                partner: item.picture.map { number($0) },
                tags: item.tags.map { number($0) }
            )
        }
        for tag in try context.fetch(FetchDescriptor<Tag>()) {
            tags[number(tag)] = Thing(title: tag.name)
        }
        for folder in try context.fetch(FetchDescriptor<Folder>()) {
            folders[number(folder)] = Thing(title: folder.name)
        }
        for picture in try context.fetch(FetchDescriptor<Picture>()) {
            pictures[number(picture)] = Thing(
                title: picture.caption,
                partner: picture.item.map { number($0) },
                blob: try picture.data.map { try $0.read(0..<$0.length) }
            )
        }
    }

    struct Changes: Equatable {
        var inserted: Set<UInt64> = []
        var updated: Set<UInt64> = []
        var deleted: Set<UInt64> = []

        init() {}

        /// What a commit did to objects of one entity.
        init(_ old: [UInt64: Thing], _ new: [UInt64: Thing]) {
            inserted = Set(new.keys).subtracting(old.keys)
            deleted = Set(old.keys).subtracting(new.keys)
            for (id, thing) in new {
                guard let before = old[id] else { continue }
                if !thing.differences(from: before).isEmpty { updated.insert(id) }
            }
        }

        init<Entity>(_ told: EntityChanges<Entity>) {
            inserted = Set(told.inserted.map(\.objectID.object.rawValue))
            updated = Set(told.updated.map(\.objectID.object.rawValue))
            deleted = Set(told.deleted.map(\.objectID.object.rawValue))
        }
    }
}

/// Random commits of two contexts, with what the store held after each.
final class HistoryFuzz {
    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    let seed: UInt64
    private var random: SeededRandom
    private let bugs: Set<PlantedObjectBug>
    private var directory = MemoryDirectory()
    private var retention: Retention = .all
    /// One or two containers over one store.
    private var containers: [PersistentContainer] = []
    private var contexts: [ManagedObjectContext] = []
    private let folder: TemporaryFolder?
    private var backups = 0
    private(set) var copies: [CommitNumber: StoreCopy] = [:]
    private var authors: [CommitNumber: String] = [:]
    private var tokens: [CommitNumber: HistoryToken] = [:]
    /// What was looked at, to see that the run means something.
    private(set) var checks = 0

    init(seed: UInt64, _ bugs: Set<PlantedObjectBug> = []) throws {
        self.seed = seed
        self.bugs = bugs
        random = SeededRandom(seed: seed)
        // Two containers share a store in files, and each save waits for the disk there.
        folder = seed % 8 == 0 ? try TemporaryFolder() : nil
        retention = [.all, .newest, .commits(4), .commits(9)].randomElement(using: &random) ?? .all
        try open()
    }

    private var container: PersistentContainer { containers[0] }

    private func open() throws {
        var options = ContainerOptions()
        options.plantedBugs = bugs
        let retention = retention
        let nodes = [512, 8 << 10].randomElement(using: &random) ?? 512
        options.adjustingEngine = {
            $0.retention = retention
            $0.compactsAutomatically = false
            $0.nodeWeightMax = nodes
            $0.checkpointTailMin = 3 << 10
            $0.checkpointTailMax = 3 << 10
            $0.deltaBytesMax = 2 << 10
            $0.inlineValueBytesMax = 256
            $0.pastStateCommits = 2
            $0.maintenance = .inline
        }
        for _ in 0..<(folder == nil ? 1 : 2) {
            let place = folder.map {
                StoreLocation.file(directory: $0.url.path, name: "test\(backups)")
            }
            containers.append(
                try PersistentContainer.openNow(
                    place ?? .directory(directory, name: "test"),
                    place: "test",
                    schema: TestSchema.self,
                    options: options
                )
            )
        }
        contexts = (0..<2).map { containers[$0 % containers.count].newContext() }
    }

    func close() throws {
        contexts = []
        for container in containers { try container.closeNow() }
        containers = []
    }

    private func pick<Element>(_ choices: [Element]) -> Element? {
        choices.randomElement(using: &random)
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    // MARK: Steps

    func run(steps: Int) throws {
        defer { try? close() }
        for _ in 0..<steps {
            switch Int.random(in: 0..<24, using: &random) {
            case 0: try container.store.engine.checkpoint()
            case 1:
                try close()
                try open()
            case 2: _ = try container.store.engine.compact()
            case 3: try goOnFromBackup()
            case 4: for _ in 0..<8 { try commit() }
            case 5, 6: try revertNewest()
            case 7: try revertAny()
            default: try commit()
            }
            if chance(4) { try check() }
        }
        try check()
    }

    private func goOnFromBackup() throws {
        guard chance(3) else { return }
        let copy = MemoryDirectory()
        let place = folder.map {
            StoreLocation.file(directory: $0.url.path, name: "test\(backups + 1)")
        }
        _ = try container.store.engine.backup(to: place ?? .directory(copy, name: "test"))
        try close()
        directory = copy
        backups += 1
        try open()
    }

    private func commit() throws {
        guard let context = pick(contexts) else { return }
        context.author = pick(["ann", "bob", ""]) ?? ""
        context.advance()
        var commit: CommitNumber?
        if chance(12), let number = copies.values.randomElement(using: &random)?.items.count {
            let limit = Int.random(in: 0...max(1, number), using: &random)
            // A batch writes what a row has already, too: so it gives something else each time.
            let title = "batch \(copies.count)"
            commit = try context.batchUpdate(Item.where { $0.number < limit }) { row in
                row.title = title
            }.commit
        } else {
            for _ in 0..<Int.random(in: 1...5, using: &random) { try edit(in: context) }
            commit = try context.save().commit
        }
        if let commit { try note(commit, by: context) }
    }

    /// Takes a copy of what a commit made.
    private func note(_ commit: CommitNumber, by context: ManagedObjectContext) throws {
        let reader = pick(containers)?.newContext() ?? container.newContext()
        copies[commit] = try StoreCopy(of: reader)
        authors[commit] = context.author
        tokens[commit] = try container.historyToken(at: commit)
    }

    // MARK: Reverts

    /// Without later commits a revert leads to the copy of before, to the letter.
    private func revertNewest() throws {
        guard let newest = copies.keys.max(), let context = pick(contexts),
            newest > (try container.retainedCommits.lowerBound),
            let before = copies[CommitNumber(newest.rawValue - 1)]
        else { return }
        context.author = "revert"
        context.advance()
        let left = try context.revert(commit: newest)
        try expect(left.isEmpty, "nobody changed anything since")
        try expect(try StoreCopy(of: context) == before, "commit \(newest.rawValue) was reverted")
        guard let commit = try context.save().commit else { return }
        try note(commit, by: context)
        try expect(copies[commit] == before, "the revert of \(newest.rawValue) was saved")
    }

    /// An earlier commit: what others changed since stays. Or an object, which gets the values of a
    /// commit.
    private func revertAny() throws {
        let retained = try container.retainedCommits
        guard let number = pick(copies.keys.filter { retained.contains($0) }.sorted()),
            let context = pick(contexts), let then = copies[number]
        else { return }
        context.author = "revert"
        context.advance()
        if number > retained.lowerBound, chance(2) {
            try context.revert(commit: number, policy: pick([.skip, .overwrite]) ?? .skip)
        } else if let known = pick(then.items.keys.sorted()), let thing = then.items[known],
            let model = container.schema.entity(of: Item.self)
        {
            let id = Item.ID(
                ManagedObjectID(
                    store: container.identity,
                    entity: model.record.id,
                    object: ObjectID(known)
                )
            )
            let here = try StoreCopy(of: context)
            let left = try context.revert(id, to: .commit(number))
            let now = try StoreCopy(of: context).items[known]
            let story = "item \(known) of commit \(number.rawValue)"
            try expect(now?.title == thing.title && now?.number == thing.number, story)
            let tags = thing.tags.filter { here.tags[$0] != nil }
            try expect(now?.tags ?? [], tags, story)
            let folder = thing.folder.flatMap { here.folders[$0] == nil ? nil : $0 }
            if left.isEmpty { try expect(now?.folder == folder, story) }
        }
        if let commit = try context.save().commit { try note(commit, by: context) }
    }

    private func text() -> String {
        let length = chance(8) ? 700 : Int.random(in: 0...12, using: &random)
        return String((0..<length).map { _ in "efghijkl".randomElement(using: &random) ?? "e" })
    }

    private func edit(in context: ManagedObjectContext) throws {
        func some<Entity: ManagedObject>(_: Entity.Type) throws -> Entity? {
            try context.fetch(FetchDescriptor<Entity>()).randomElement(using: &random)
        }
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1:
            let item = Item(in: context)
            item.title = text()
            item.number = Int.random(in: 0...9, using: &random)
        case 2: Tag(in: context).name = text()
        case 3: Folder(in: context).name = text()
        case 4: try some(Item.self)?.title = text()
        case 5: try some(Item.self)?.number = Int.random(in: 0...9, using: &random)
        case 6: try some(Item.self)?.folder = chance(3) ? nil : some(Folder.self)
        case 7:
            guard let item = try some(Item.self), let tag = try some(Tag.self) else { return }
            if item.tags.contains(tag) {
                item.tags.remove(tag)
            } else {
                item.tags.insert(tag, at: Int.random(in: 0...item.tags.count, using: &random))
            }
        case 8: try some(Tag.self)?.name = text()
        case 9:
            let picture = try some(Picture.self) ?? Picture(in: context)
            var writer = try context.makeBlob()
            let size = pick([3, 90, 2_000]) ?? 3
            try writer.append(Data(repeating: UInt8.random(in: 0...3, using: &random), count: size))
            picture.data = try writer.finish()
            picture.item = try some(Item.self)
        case 10: if let item = try some(Item.self) { context.delete(item) }
        default:
            if chance(2), let tag = try some(Tag.self) {
                context.delete(tag)
            } else if let folder = try some(Folder.self) {
                context.delete(folder)
            }
        }
    }

    // MARK: Checks

    private func expect(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        checks += 1
        if !holds { throw Finding(description: "seed \(seed): \(what())") }
    }

    private func expect<Value: Equatable>(
        _ found: Value,
        _ wanted: Value,
        _ what: String
    ) throws {
        try expect(found == wanted, "\(what): \(found), and not \(wanted)")
    }

    private func check() throws {
        let retained = try container.retainedCommits
        let known = copies.keys.sorted()
        for number in known.shuffled(using: &random).prefix(4) {
            guard retained.contains(number) else {
                try expect(
                    code { _ = try container.newContext(at: .commit(number)) } == .commitExpired,
                    "commit \(number.rawValue) is gone"
                )
                if let token = tokens[number] {
                    try expect(try !container.hasHistory(after: token), "the token is too old")
                }
                continue
            }
            try checkContext(number)
            try checkHistory(number, known)
        }
        try checkVersions(known.filter { retained.contains($0) }, from: retained.lowerBound)
    }

    private func checkContext(_ number: CommitNumber) throws {
        guard let past = try pick(containers)?.newContext(at: .commit(number)) else { return }
        past.advance()
        try expect(past.commit == number, "a context of commit \(number.rawValue) moved")
        try expect(
            try StoreCopy(of: past) == copies[number],
            "commit \(number.rawValue) is another one"
        )
    }

    private func checkHistory(_ number: CommitNumber, _ known: [CommitNumber]) throws {
        guard let token = tokens[number] else { return }
        let commits = try container.history(after: token).commits()
        let expected = known.filter { $0 > number }
        try expect(commits.map(\.number) == expected, "\(commits.map(\.number)) != \(expected)")
        var before = copies[number] ?? StoreCopy()
        for commit in commits {
            let after = copies[commit.number] ?? StoreCopy()
            let story = "changes of commit \(commit.number.rawValue)"
            try expect(commit.author == authors[commit.number], story)
            try expect(commit.known == .exactly, story)
            try expect(
                StoreCopy.Changes(commit.changes(of: Item.self)),
                StoreCopy.Changes(before.items, after.items),
                story
            )
            try expect(
                StoreCopy.Changes(commit.changes(of: Tag.self)),
                StoreCopy.Changes(before.tags, after.tags),
                story
            )
            try expect(
                StoreCopy.Changes(commit.changes(of: Folder.self)),
                StoreCopy.Changes(before.folders, after.folders),
                story
            )
            try expect(
                StoreCopy.Changes(commit.changes(of: Picture.self)),
                StoreCopy.Changes(before.pictures, after.pictures),
                story
            )
            if chance(6) {
                let gone = commit.changes(of: Item.self).deleted
                let values = try commit.valuesBefore(of: gone)
                for id in gone {
                    let last = before.items[id.objectID.object.rawValue]?.title
                    try expect(values[id]?.title == last, "the last values of a deleted item")
                }
            }
            before = after
        }
    }

    /// The versions of an item are its values over all copies.
    private func checkVersions(_ numbers: [CommitNumber], from oldest: CommitNumber) throws {
        let ids = Set(numbers.flatMap { copies[$0]?.items.keys.map(\.self) ?? [] }).sorted()
        guard let number = pick(ids), let model = container.schema.entity(of: Item.self) else {
            return
        }
        let id = Item.ID(
            ManagedObjectID(
                store: container.identity,
                entity: model.record.id,
                object: ObjectID(number)
            )
        )
        var expected: [(commit: CommitNumber, thing: StoreCopy.Thing?, names: Set<String>)] = []
        var before = copies[oldest]?.items[number]
        for commit in numbers where commit > oldest {
            let now = copies[commit]?.items[number]
            if let now, let before, now.differences(from: before).isEmpty { continue }
            if now == nil, before == nil { continue }
            let names = before.flatMap { old in now.map { $0.differences(from: old) } } ?? []
            expected.append((commit, now, names))
            before = now
        }
        let versions = try container.versions(of: id, limit: .max)
        let told = versions.filter { $0.change != nil }.reversed().map(\.self)
        try expect(told.map(\.commit) == expected.map(\.commit), "versions of item \(number)")
        for (version, wanted) in zip(told, expected) {
            let story = "item \(number) in commit \(wanted.commit.rawValue)"
            try expect(version.values?.title == wanted.thing?.title, story)
            try expect(version.values?.number == wanted.thing?.number, story)
            let folder = version.values?.folder?.objectID.object.rawValue
            try expect(folder == wanted.thing?.folder, story)
            if version.change == .updated {
                try expect(Set(version.changedProperties) == wanted.names, story)
            }
            try expect(version.author == authors[wanted.commit], story)
        }
        if let last = versions.last, last.change == nil {
            try expect(last.values?.title == copies[oldest]?.items[number]?.title, "the oldest")
        }
    }
}
