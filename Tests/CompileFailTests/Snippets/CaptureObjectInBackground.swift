// An object of the main actor cannot be used in a background body.
import VarveObjects

@MainActor private func body(_ container: PersistentContainer, _ item: Item) async throws {
    let id = item.id
    #if REFUSED
    try await container.performBackgroundTask { context in
        item.title = "changed"  // refused
        try context.save()
    }
    #else
    try await container.performBackgroundTask { context in
        try context.object(with: id).title = "changed"
        try context.save()
    }
    #endif
}
