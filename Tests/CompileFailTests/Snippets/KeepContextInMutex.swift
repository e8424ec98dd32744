// The context of a body that waits cannot be kept behind a lock.
import Synchronization
import VarveObjects

private final class Shelf: Sendable {
    let context = Mutex<ManagedObjectContext?>(nil)
    let hasChanges = Mutex(false)
}

private func body(_ container: PersistentContainer, _ shelf: Shelf) async throws {
    try await container.withBackgroundContext { context in
        #if REFUSED
        shelf.context.withLock { $0 = context }  // refused
        #else
        let hasChanges = context.hasChanges
        shelf.hasChanges.withLock { $0 = hasChanges }
        #endif
    }
}
