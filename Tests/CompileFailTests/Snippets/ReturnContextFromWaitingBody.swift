// The context cannot be returned from a body that waits.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    let kept = try await container.withBackgroundContext { context in  // refused
        context  // refused
    }
    #else
    let kept = try await container.withBackgroundContext { context in
        context.hasChanges
    }
    #endif
    _ = kept
}
