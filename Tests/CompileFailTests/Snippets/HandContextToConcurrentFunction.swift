// A function that runs beside the body cannot have its context.
import VarveObjects

@concurrent private func elsewhere(_ context: ManagedObjectContext) async throws {}
nonisolated(nonsending) private func here(_ context: ManagedObjectContext) async throws {}

private func body(_ container: PersistentContainer) async throws {
    try await container.withBackgroundContext { context in
        #if REFUSED
        try await elsewhere(context)  // refused
        #else
        try await here(context)
        #endif
    }
}
