// A to-many relationship cannot leave a background context.
import VarveObjects

private func body(_ worker: BackgroundContext, _ id: Item.ID) async throws {
    #if REFUSED
    let tags = try await worker.perform { context in  // refused
        try context.object(with: id).tags  // refused
    }
    #else
    let tags = try await worker.perform { context in
        try context.object(with: id).tags.ids
    }
    #endif
    _ = tags
}
