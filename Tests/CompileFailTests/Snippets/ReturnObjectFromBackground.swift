// An object cannot be returned from a background task.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let first = try await container.performBackgroundTask { context in  // refused
        try context.fetch(Item.all).first { _ in true }  // refused
    }
    #else
    let first = try await container.performBackgroundTask { context in
        try context.fetch(Item.all).first { _ in true }?.id
    }
    #endif
    _ = first
}
