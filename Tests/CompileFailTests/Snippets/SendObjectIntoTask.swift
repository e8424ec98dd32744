// A task that a body begins cannot have an object of the body's context.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    try await container.withBackgroundContext { context in
        let item = try context.fetch(Item.all)[0]
        let id = item.id
        #if REFUSED
        Task.detached { item.title = "later" }  // refused
        #else
        Task.detached { print(id) }
        #endif
    }
}
