// Varve through its public API.

import BenchmarkHarness
import Foundation
import VarveObjects

private enum IndexedSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [StoredItem.self] }
}

private enum PlainSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [PlainItem.self] }
}

/// The indexed schema as a later version of the plain one.
private enum LateIndexSchema: VersionedSchema {
    static let version = 2
    static var entities: [any ManagedObject.Type] { [StoredItem.self] }
}

final class VarveObjectPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    private(set) var container: PersistentContainer
    private(set) var context: ManagedObjectContext
    private var indexed: Bool
    let makesObjects: Bool
    let directory: String
    private let url: URL
    let settings: ContainerOptions
    private(set) var ids: [StoredItem.ID] = []

    init(directory: String, options: PeerOptions) throws {
        self.directory = directory
        indexed = options.indexed
        makesObjects = options.makesObjects
        settings = ContainerOptions(options)
        url = URL(fileURLWithPath: directory + "/items.varve")
        container = try PersistentContainer.openNow(
            at: url,
            schema: indexed ? IndexedSchema.self : PlainSchema.self,
            options: settings
        )
        context = container.newContext()
    }

    /// Opens the store again with a schema that has the indexes, which builds them.
    func reopenWithIndexes() throws {
        try container.closeNow()
        indexed = true
        try reopen(LateIndexSchema.self)
    }

    /// Opens the store again after it was closed.
    func reopen() throws { try reopen(indexed ? IndexedSchema.self : PlainSchema.self) }

    private func reopen(_ schema: any VersionedSchema.Type) throws {
        container = try PersistentContainer.openNow(at: url, schema: schema, options: settings)
        context = container.newContext()
    }

    /// As imports are written: rows without objects. With `makesObjects`: one object per row.
    func insert(_ items: [Item]) throws {
        switch (indexed, makesObjects) {
        case (true, false):
            try context.batchInsert(StoredItem.self, items) { row, item in
                row.timestamp = item.timestamp
                row.title = item.title
                row.note = item.note
                row.count = item.count
                row.flag = item.flag
                row.pictureID = item.pictureID
            }
        case (false, false):
            try context.batchInsert(PlainItem.self, items) { row, item in
                row.timestamp = item.timestamp
                row.title = item.title
                row.note = item.note
                row.count = item.count
                row.flag = item.flag
                row.pictureID = item.pictureID
            }
        case (true, true):
            for item in items { StoredItem(in: context).take(item) }
            try context.save()
        case (false, true):
            for item in items { PlainItem(in: context).take(item) }
            try context.save()
        }
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        if indexed {
            try forEach(StoredItem.all, body)
        } else {
            try forEach(PlainItem.all, body)
        }
    }

    private func forEach<Object: ItemObject>(
        _ all: FetchDescriptor<Object>,
        _ body: (Item) throws -> Void
    ) throws {
        for object in try container.newContext().fetchBatched(all, size: 1000) {
            try body(object.item(id: Item.id(ofTitle: object.title)))
        }
    }

    func close() throws { try container.closeNow() }

    // Workload b
    func commit(_ item: Item) throws {
        StoredItem(in: context).take(item)
        try context.save()
    }

    /// Each thread has a context of its own.
    func makeSaver() throws -> (Item) throws -> Void {
        let context = container.newContext()
        return { item in
            StoredItem(in: context).take(item)
            try context.save()
        }
    }

    // Workload c
    func prepareToRead(rows: Int) throws {
        ids = try context.fetchIDs(StoredItem.all)
        guard ids.count == rows else { throw BenchmarkError("\(ids.count) of \(rows) IDs") }
    }

    func read(ids numbers: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for number in numbers {
            guard let object = try context.existingObject(with: ids[Int(number) - 1]) else {
                continue
            }
            object.fold(id: number, into: &fold)
        }
        return fold
    }

    func readIsolated(ids numbers: [Int64]) throws -> RowFold {
        var fold = RowFold()
        for number in numbers {
            let context = container.newContext()
            guard let object = try context.existingObject(with: ids[Int(number) - 1]) else {
                continue
            }
            object.fold(id: number, into: &fold)
        }
        return fold
    }

    // Workload e
    static let sorted = StoredItem.all.sorted { [$0.timestamp.ascending] }

    func fetchFaults() throws -> [StoredItem] { try context.fetch(Self.sorted) }

    func fetchFilled() throws -> [StoredItem] {
        try context.fetch(Self.sorted.returningFaults(false))
    }

    func readEveryProperty(_ list: [StoredItem]) throws -> RowFold {
        var fold = RowFold()
        for object in list { object.fold(id: 0, into: &fold) }
        return fold
    }
}

extension ContainerOptions {
    /// Room for rows and nodes together as large as the others' caches.
    init(_ options: PeerOptions) {
        self.init()
        packsRows = options.packsLeaves
        unreferencedRowBytes = options.rowCacheBytes ?? unreferencedRowBytes
        nodeCacheBytes =
            options.cacheBytes - min(unreferencedRowBytes, options.cacheBytes / 2)
    }
}
