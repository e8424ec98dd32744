// An object of a body that waits cannot be kept in a variable of the main actor.
import VarveObjects

@MainActor private var kept: Item?
@MainActor private var keptID: Item.ID?

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    try await container.withBackgroundContext { context in
        let item = try context.fetch(Item.all)[0]
        await MainActor.run { kept = item }  // refused
    }
    #else
    try await container.withBackgroundContext { context in
        let id = try context.fetch(Item.all)[0].id
        await MainActor.run { keptID = id }
    }
    #endif
}
