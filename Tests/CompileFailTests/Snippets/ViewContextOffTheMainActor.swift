// The view context belongs to the main actor, with or without await.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let context = await container.viewContext  // refused
    let count = try context.count(Item.all)
    #else
    let count = try await MainActor.run { try container.viewContext.count(Item.all) }
    #endif
    _ = count
}
