// Varve through its public API.

import BenchmarkHarness
import Dispatch
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

final class VarveObjectPeer: DurableCommitPeer, PointReadPeer, SortedFetchPeer {
    private let container: PersistentContainer
    private let context: ManagedObjectContext
    private let indexed: Bool
    private var ids: [StoredItem.ID] = []

    init(directory: String, options: PeerOptions) throws {
        indexed = options.indexed
        var settings = ContainerOptions()
        let rowBytes = options.rowCacheBytes ?? settings.unreferencedRowBytes
        settings.unreferencedRowBytes = rowBytes
        settings.nodeCacheBytes = options.cacheBytes - min(rowBytes, options.cacheBytes / 2)
        let url = URL(fileURLWithPath: directory + "/items.varve")
        let chosen = settings
        if indexed {
            container = try waitFor {
                try await .open(at: url, schema: IndexedSchema.self, options: chosen)
            }
        } else {
            container = try waitFor {
                try await .open(at: url, schema: PlainSchema.self, options: chosen)
            }
        }
        context = container.newContext()
    }

    func insert(_ items: [Item]) throws {
        if indexed {
            for item in items { StoredItem(in: context).take(item) }
        } else {
            for item in items { PlainItem(in: context).take(item) }
        }
        try context.save()
    }

    func forEachItem(_ body: (Item) throws -> Void) throws {
        if indexed {
            try forEach(StoredItem.all, body)
        } else {
            try forEach(PlainItem.all, body)
        }
    }

    /// Without a sort order objects come in the order of their insertion.
    private func forEach<Object: ItemObject>(
        _ all: FetchDescriptor<Object>,
        _ body: (Item) throws -> Void
    ) throws {
        var id: Int64 = 0
        for object in try container.newContext().fetchBatched(all, size: 1000) {
            id += 1
            try body(object.item(id: id))
        }
    }

    func close() throws { try container.closeNow() }

    // Workload b
    func commit(_ item: Item) throws {
        StoredItem(in: context).take(item)
        try context.save()
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
    private static let sorted = StoredItem.all.sorted { [$0.timestamp.ascending] }

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

/// Runs an async call from a synchronous one; only for opening, on a thread that may wait.
func waitFor<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
    let done = DispatchSemaphore(value: 0)
    let box = ResultBox<R>()
    Task.detached {
        do { box.value = .success(try await body()) } catch { box.value = .failure(error) }
        done.signal()
    }
    done.wait()
    guard let value = box.value else { throw BenchmarkError("the call gave nothing") }
    return try value.get()
}

/// Written before the semaphore is signalled, read after: never at once.
private final class ResultBox<R>: @unchecked Sendable {
    var value: Result<R, any Error>?
}
