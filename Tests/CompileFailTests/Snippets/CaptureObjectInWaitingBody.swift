// An object of the main actor cannot be used in a body that waits.
import VarveObjects

@MainActor private func body(_ container: PersistentContainer, _ item: Item) async throws {
    let id = item.id
    #if REFUSED
    try await container.withBackgroundContext { context in
        await Task.yield()
        item.title = "changed"  // refused
        try context.save()
    }
    #else
    try await container.withBackgroundContext { context in
        await Task.yield()
        try context.object(with: id).title = "changed"
        try context.save()
    }
    #endif
}
