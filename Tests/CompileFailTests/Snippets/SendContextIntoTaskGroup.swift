// A group of tasks in a body cannot have the body's context.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    try await container.withBackgroundContext { context in
        try await withThrowingTaskGroup(of: Int.self) { group in
            #if REFUSED
            group.addTask { try context.count(Item.all) }  // refused
            #else
            group.addTask {
                try await container.performBackgroundTask { own in try own.count(Item.all) }
            }
            _ = context
            #endif
            for try await count in group { print(count) }
        }
    }
}
