// An object of a background task cannot be kept in a variable of the main actor.
import VarveObjects

@MainActor private var kept: Item?
@MainActor private var keptID: Item.ID?

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    try await container.performBackgroundTask { context in
        kept = try context.fetch(Item.all)[0]  // refused
    }
    #else
    let id = try await container.performBackgroundTask { context in
        try context.fetch(Item.all)[0].id
    }
    await MainActor.run { keptID = id }
    #endif
}
