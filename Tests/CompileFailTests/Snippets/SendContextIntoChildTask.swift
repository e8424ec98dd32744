// A child task of a body cannot have the body's context: it would run beside the body.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    let count = try await container.withBackgroundContext { context in
        #if REFUSED
        async let count = context.count(Item.all)  // refused
        #else
        async let count = container.performBackgroundTask { own in try own.count(Item.all) }
        _ = context
        #endif
        return try await count
    }
    _ = count
}
