// An array of objects cannot be returned from a background task.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let all = try await container.performBackgroundTask { context in  // refused
        try context.fetch(Item.all)  // refused
    }
    #else
    let all = try await container.performBackgroundTask { context in
        try context.fetch(Item.all).map(\.id)
    }
    #endif
    _ = all
}
