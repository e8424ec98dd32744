// The context of a body that waits cannot be kept in a variable outside.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    var kept: ManagedObjectContext?
    try await container.withBackgroundContext { context in
        kept = context  // refused
    }
    _ = kept
    #else
    let kept = try await container.withBackgroundContext { context in
        try context.count(Item.all)
    }
    _ = kept
    #endif
}
