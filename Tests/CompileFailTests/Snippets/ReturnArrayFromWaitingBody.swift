// An array of objects cannot be returned from a body that waits.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let all = try await container.withBackgroundContext { context in  // refused
        try context.fetch(Item.all)  // refused
    }
    #else
    let all = try await container.withBackgroundContext { context in
        try context.fetch(Item.all).map(\.id)
    }
    #endif
    _ = all
}
