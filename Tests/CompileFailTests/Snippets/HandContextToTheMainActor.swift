// The main actor cannot have the context of a body that waits for it.
import VarveObjects

@MainActor private func show(_ context: ManagedObjectContext) {}
@MainActor private func show(_ count: Int) {}

private func body(_ container: PersistentContainer) async throws {
    try await container.withBackgroundContext { context in
        #if REFUSED
        await show(context)  // refused
        #else
        await show(try context.count(Item.all))
        #endif
    }
}
