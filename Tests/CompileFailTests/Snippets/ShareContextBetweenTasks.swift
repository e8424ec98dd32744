// One context cannot serve two tasks.
import VarveObjects

private func body(_ container: PersistentContainer) async throws {
    let context = container.newContext()
    #if REFUSED
    let first = Task { try context.count(Item.all) }  // refused
    let second = Task { try context.count(Item.all) }  // refused
    #else
    let first = Task { try context.count(Item.all) }
    let second = Task { try container.newContext().count(Item.all) }
    #endif
    _ = (try await first.value, try await second.value)
}
