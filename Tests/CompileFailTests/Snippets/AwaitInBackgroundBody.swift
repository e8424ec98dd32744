// The body of a background task does not wait.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    #if REFUSED
    try await container.performBackgroundTask { context in  // refused
        await Task.yield()  // refused
        try context.save()
    }
    #else
    await Task.yield()
    _ = try await container.performBackgroundTask { context in
        try context.save()
    }
    #endif
}
