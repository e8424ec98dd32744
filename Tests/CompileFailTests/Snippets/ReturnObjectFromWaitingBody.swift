// An object cannot be returned from a body that waits.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let first = try await container.withBackgroundContext { context in  // refused
        await Task.yield()
        return try context.fetch(Item.all).first  // refused
    }
    #else
    let first = try await container.withBackgroundContext { context in
        await Task.yield()
        return try context.fetch(Item.all).first?.id
    }
    #endif
    _ = first
}
