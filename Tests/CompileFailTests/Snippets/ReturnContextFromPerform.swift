// A background context's inner context cannot leave it.
import VarveObjects

private func body(_ worker: BackgroundContext) async throws {
    #if REFUSED
    let kept = try await worker.perform { context in  // refused
        context  // refused
    }
    #else
    let kept = try await worker.perform { context in
        context.hasChanges
    }
    #endif
    _ = kept
}
