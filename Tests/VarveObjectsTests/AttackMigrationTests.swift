// A store whose schema another process changes while this one has unsaved edits: with a new number
// of the schema, and with the same one, as an app has it whose developer forgot to count.

import Foundation
import Testing
import VarveObjects

private final class Crate: ManagedObject {
    static let entityName = "Crate"
    struct Columns: Sendable {
        let title = Column<Crate, String>("title", default: "")
        let rank = Column<Crate, Int?>("rank")
        let shelf = ToOneColumn<Crate, Shelf>("shelf", inverse: "crates")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var rank: Int? {
        get { storedValue(Self.columns.rank, \.rank) }
        set { setStoredValue(newValue, Self.columns.rank, \.rank) }
    }
    var shelf: Shelf? {
        get { storedValue(Self.columns.shelf, \.shelf) }
        set { setStoredValue(newValue, Self.columns.shelf, \.shelf) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Crate: Sendable {}

private final class Shelf: ManagedObject {
    static let entityName = "Shelf"
    struct Columns: Sendable {
        let name = Column<Shelf, String>("name", default: "")
        let crates = ToManyColumn<Shelf, Crate>("crates", deleteRule: .cascade)
        let top = ToManyColumn<Shelf, Crate>("top", ordered: true)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var crates: ToMany<Crate> { storedValue(Self.columns.crates, \.crates) }
    var top: ToMany<Crate> { storedValue(Self.columns.top, \.top) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Shelf: Sendable {}

private final class GrownCrate: ManagedObject {
    static let entityName = "Crate"
    struct Columns: Sendable {
        let title = Column<GrownCrate, String>("title", default: "")
        let rank = Column<GrownCrate, Int?>("rank")
        let weight = Column<GrownCrate, Double>("weight", default: 2)
        let tag = Column<GrownCrate, UUID>("tag", default: UUID())
        let shelf = ToOneColumn<GrownCrate, GrownShelf>("shelf", inverse: "crates")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var rank: Int? {
        get { storedValue(Self.columns.rank, \.rank) }
        set { setStoredValue(newValue, Self.columns.rank, \.rank) }
    }
    var weight: Double {
        get { storedValue(Self.columns.weight, \.weight) }
        set { setStoredValue(newValue, Self.columns.weight, \.weight) }
    }
    var tag: UUID {
        get { storedValue(Self.columns.tag, \.tag) }
        set { setStoredValue(newValue, Self.columns.tag, \.tag) }
    }
    var shelf: GrownShelf? {
        get { storedValue(Self.columns.shelf, \.shelf) }
        set { setStoredValue(newValue, Self.columns.shelf, \.shelf) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension GrownCrate: Sendable {}

private final class GrownShelf: ManagedObject {
    static let entityName = "Shelf"
    struct Columns: Sendable {
        let name = Column<GrownShelf, String>("name", default: "")
        let crates = ToManyColumn<GrownShelf, GrownCrate>("crates", deleteRule: .cascade)
        let top = ToManyColumn<GrownShelf, GrownCrate>("top", ordered: true)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var crates: ToMany<GrownCrate> { storedValue(Self.columns.crates, \.crates) }
    var top: ToMany<GrownCrate> { storedValue(Self.columns.top, \.top) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension GrownShelf: Sendable {}

private final class LeanCrate: ManagedObject {
    static let entityName = "Crate"
    struct Columns: Sendable {
        let title = Column<LeanCrate, String>("title", default: "")
        let shelf = ToOneColumn<LeanCrate, LeanShelf>("shelf", inverse: "crates")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var shelf: LeanShelf? {
        get { storedValue(Self.columns.shelf, \.shelf) }
        set { setStoredValue(newValue, Self.columns.shelf, \.shelf) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LeanCrate: Sendable {}

private final class LeanShelf: ManagedObject {
    static let entityName = "Shelf"
    struct Columns: Sendable {
        let name = Column<LeanShelf, String>("name", default: "")
        let crates = ToManyColumn<LeanShelf, LeanCrate>("crates", deleteRule: .cascade)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var crates: ToMany<LeanCrate> { storedValue(Self.columns.crates, \.crates) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension LeanShelf: Sendable {}

private final class BareShelf: ManagedObject {
    static let entityName = "Shelf"
    struct Columns: Sendable {
        let name = Column<BareShelf, String>("name", default: "")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension BareShelf: Sendable {}

private enum First: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Crate.self, Shelf.self] }
}
private enum GrownSame: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [GrownCrate.self, GrownShelf.self] }
}
private enum LeanSame: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [LeanCrate.self, LeanShelf.self] }
}
private enum BareSame: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [BareShelf.self] }
}
private enum GrownNext: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [GrownCrate.self, GrownShelf.self] }
}
private enum LeanNext: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [LeanCrate.self, LeanShelf.self] }
}
private enum BareNext: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [BareShelf.self] }
}

@Suite(.verified) struct AttackMigrationTests {
    private struct Change {
        let schema: any VersionedSchema.Type
        var removing: Set<String> = []
        let isCounted: Bool
    }

    private static let lean: Set<String> = ["Crate.rank", "Shelf.top"]
    private static let bare: Set<String> = ["Crate", "Shelf.crates", "Shelf.top"]
    private static var changes: [String: Change] {
        [
            "grown": Change(schema: GrownNext.self, isCounted: true),
            "lean": Change(schema: LeanNext.self, removing: lean, isCounted: true),
            "bare": Change(schema: BareNext.self, removing: bare, isCounted: true),
            "grown, not counted": Change(schema: GrownSame.self, isCounted: false),
            "lean, not counted": Change(schema: LeanSame.self, removing: lean, isCounted: false),
            "bare, not counted": Change(schema: BareSame.self, removing: bare, isCounted: false),
        ]
    }

    private func edit(_ what: String, _ crates: [Crate], _ shelves: [Shelf]) {
        guard let context = shelves[0].context else { return }
        switch what {
        case "title": crates[0].title = "edited"
        case "rank": crates[1].rank = 77
        case "shelf": crates[0].shelf = shelves[1]
        case "top": shelves[0].top.insert(crates[2], at: 0)
        case "new":
            let new = Crate(in: context)
            (new.title, new.rank, new.shelf) = ("new", 5, shelves[0])
            shelves[1].top.append(new)
        case "delete": context.delete(crates[2])
        default: context.delete(shelves[0])
        }
    }

    /// Every way to look at what is there; a failure is an error, never the end.
    private func look(_ context: ManagedObjectContext, _ crates: [Crate], _ shelves: [Shelf]) {
        for crate in crates { _ = (crate.title, crate.rank, crate.shelf?.name, crate.isDeleted) }
        for shelf in shelves {
            _ = (shelf.name, shelf.crates.count, shelf.crates.map(\.title), shelf.top.map(\.rank))
        }
        _ = code { _ = try context.fetch(Crate.all.sorted { [$0.rank.descending] }) }
        _ = code { _ = try context.fetch(Crate.where { $0.rank > 1 }) }
        _ = code { _ = try context.fetch(Crate.where { $0.shelf.name == "0" }) }
        _ = code { _ = try context.fetchBatched(Crate.all, size: 2).map(\.title) }
        _ = code { _ = try context.fetch(Shelf.all.prefetch { ($0.crates, $0.top) }) }
        _ = code { _ = try context.count(Crate.all) }
        _ = code { _ = try context.count(Crate.where { $0.rank == nil }) }
        _ = code { _ = try context.selectDistinct(Crate.all) { $0.rank } }
        _ = code { _ = try context.explain(Crate.where { $0.rank > 1 }) }
    }

    private func batches(_ context: ManagedObjectContext) -> [StoreError.Code?] {
        [
            code {
                _ = try context.batchInsert(Crate.self, count: 2) { row, index in
                    row.title = "batch"
                    row.rank = index
                }
            },
            code { _ = try context.batchUpdate(Crate.all) { $0.rank = 3 } },
            code { _ = try context.batchDelete(Crate.where { $0.title == "batch" }) },
        ]
    }

    @Test(arguments: changes.keys.sorted()) func aMigrationMeetsEdits(_ name: String) throws {
        let change = try #require(Self.changes[name])
        let policies: [MergePolicy] = [.error, .overwrite, .storeWinsByProperty]
        for (round, what) in ["title", "rank", "shelf", "top", "new", "delete", "cascade"]
            .enumerated()
        {
            for isRead in [false, true] {
                let folder = try TemporaryFolder()
                let place = "\(name), \(what), \(isRead)"
                let container = try PersistentContainer.openNow(
                    at: folder.store,
                    schema: First.self
                )
                let context = container.newContext()
                let shelves = (0..<2).map { number in
                    let shelf = Shelf(in: context)
                    shelf.name = "\(number)"
                    return shelf
                }
                let crates = (0..<3).map { number in
                    let crate = Crate(in: context)
                    (crate.title, crate.rank) = ("crate \(number)", number)
                    crate.shelf = shelves[0]
                    return crate
                }
                shelves[0].top.append(contentsOf: [crates[0], crates[1]])
                try context.save()
                if isRead { look(context, crates, shelves) } else { context.refreshAllObjects() }
                edit(what, crates, shelves)
                let other = try PersistentContainer.openNow(
                    at: folder.store,
                    schema: change.schema,
                    options: ContainerOptions(removing: change.removing)
                )
                if round % 2 == 0 { try other.closeNow() }
                look(context, crates, shelves)
                let found = code { try context.save(mergePolicy: policies[round % 3]) }
                if change.isCounted {
                    #expect(found == .schemaTooNew, "\(place)")
                    #expect(context.hasChanges, "\(place)")
                    #expect(batches(context).allSatisfy { $0 == .schemaTooNew }, "\(place)")
                } else {
                    _ = batches(context)
                }
                context.advance()
                look(context, crates, shelves)
                _ = code { try context.save(mergePolicy: .objectWinsByProperty) }
                context.rollback()
                #expect(!context.hasChanges, "\(place)")
                look(context, crates, shelves)
                for step in ["title", "rank", "new", "top"] where !shelves[0].isDeleted {
                    edit(step, crates, shelves)
                    _ = code { try context.save(mergePolicy: .objectWinsByProperty) }
                    context.rollback()
                }
                let late = container.newContext()
                look(late, [], [])
                try container.closeNow(discardingEdits: true)
                if round % 2 != 0 { try other.closeNow() }
                try expectWhole(folder, change, place, isSaved: found == nil)
            }
        }
    }

    /// What the other process has behind all of it.
    private func expectWhole(
        _ folder: TemporaryFolder,
        _ change: Change,
        _ place: String,
        isSaved: Bool
    ) throws {
        let container = try PersistentContainer.openNow(at: folder.store, schema: change.schema)
        let context = container.newContext()
        if change.schema is BareNext.Type || change.schema is BareSame.Type {
            let names = try context.fetch(BareShelf.all).map(\.name)
            if change.isCounted { #expect(names == ["0", "1"], "\(place)") }
        } else if change.schema is LeanNext.Type || change.schema is LeanSame.Type {
            let titles = try context.fetch(LeanCrate.all).map(\.title)
            let names = try context.fetch(LeanShelf.all).flatMap { $0.crates.map(\.title) }
            if change.isCounted {
                #expect(titles == ["crate 0", "crate 1", "crate 2"], "\(place)")
                #expect(names == titles, "\(place)")
            }
        } else {
            let crates = try context.fetch(GrownCrate.all)
            if change.isCounted {
                #expect(crates.map(\.rank) == [0, 1, 2], "\(place)")
                #expect(crates.allSatisfy { $0.weight == 2 }, "\(place)")
                #expect(Set(crates.map(\.tag)).count == 3, "\(place)")
                let top = try context.fetch(GrownShelf.all).flatMap { $0.top.map(\.title) }
                #expect(top == ["crate 0", "crate 1"], "\(place)")
            }
        }
        try container.closeNow()
    }
}
