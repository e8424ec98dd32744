// Containers for tests: in memory and on disk, and how to read counters around a step.

import Foundation
import Synchronization
import Testing
import VarveBase
import VarveEngine
import VarveObjects

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// A container in memory.
func memory(_ options: ContainerOptions = ContainerOptions()) throws -> PersistentContainer {
    try PersistentContainer.inMemory(schema: TestSchema.self, options: options)
}

/// A folder that is removed when the test lets go of it.
final class TemporaryFolder: Sendable {
    let url: URL
    private let witness = OpeningWitnesses.current
    init() throws {
        url = FileManager.default.temporaryDirectory
            .appending(path: "varve-objects-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }
    deinit {
        witness?.folderGoes(url.path)
        try? FileManager.default.removeItem(at: url)
    }
    var store: URL { url.appending(path: "test.varve") }

    func open(_ options: ContainerOptions = ContainerOptions()) throws -> PersistentContainer {
        try PersistentContainer.openNow(at: store, schema: TestSchema.self, options: options)
    }
}

/// Makes `count` items "item 0" ... in a context of their own.
@discardableResult
func makeItems(
    _ count: Int,
    in container: PersistentContainer,
    _ change: (Item, Int) -> Void = { _, _ in }
) throws -> [Item.ID] {
    func make() throws -> [Item.ID] {
        let context = container.newContext(author: "test")
        let items = (0..<count).map { index in
            let item = Item(in: context)
            item.title = "item \(index)"
            item.number = index
            item.timestamp = Date(timeIntervalSinceReferenceDate: Double(index))
            change(item, index)
            return item
        }
        try context.save()
        return items.map(\.id)
    }
    let ids = try make()
    container.trimMemory()
    return ids
}

/// Runs `body` and returns its value with the rows and passes that it read.
func reads<Value>(
    _ container: PersistentContainer,
    _ body: () throws -> Value
) rethrows -> (value: Value, reads: Int, passes: Int) {
    let before = container.statistics
    let value = try body()
    let after = container.statistics
    return (
        value, after.storeReads - before.storeReads, after.storePasses - before.storePasses
    )
}

/// The code of the StoreError that `body` throws; nil if it throws none.
func code(_ body: () throws -> Void) -> StoreError.Code? {
    do {
        try body()
        return nil
    } catch let error as StoreError {
        return error.code
    } catch {
        Issue.record("not a StoreError: \(error)")
        return nil
    }
}

/// A value that several tasks change.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }

    @discardableResult
    func withLock<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        value.withLock { value in
            var copy = value
            defer { value = copy }
            return body(&copy)
        }
    }
}
