// The main actor's context cannot be used in a background body.
import VarveObjects

@MainActor private func body(_ container: PersistentContainer) async throws {
    let view = container.viewContext
    #if REFUSED
    let count = try await container.performBackgroundTask { _ in
        try view.count(Item.all)  // refused
    }
    #else
    let count = try await container.performBackgroundTask { context in
        try context.count(Item.all)
    }
    #endif
    _ = (count, view)
}
