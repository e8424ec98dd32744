// A task that a body begins cannot have the body's context.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    try await container.withBackgroundContext { context in
        #if REFUSED
        Task { try context.save() }  // refused
        #else
        Task { try await container.withBackgroundContext { own in _ = try own.save() } }
        _ = context
        #endif
    }
}
