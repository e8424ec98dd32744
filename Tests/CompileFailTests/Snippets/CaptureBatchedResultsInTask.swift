// Batched results of the main actor cannot be used in a detached task.
import VarveObjects

@MainActor private func body(_ container: PersistentContainer) async throws {
    let results = try container.viewContext.fetchBatched(Item.all, size: 50)
    #if REFUSED
    let task = Task.detached { results.count }  // refused
    #else
    let count = results.count
    let task = Task.detached { count }
    #endif
    _ = (await task.value, results.count)
}
