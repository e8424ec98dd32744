// An object cannot be used once its context was given away.
import VarveObjects

private actor Owner {
    private let context: ManagedObjectContext
    init(_ context: sending ManagedObjectContext) { self.context = context }
}

private func body(_ container: PersistentContainer) throws {
    let context = container.newContext()
    let item = Item(in: context)
    item.title = "before"
    #if REFUSED
    let owner = Owner(context)  // refused
    item.title = "after"  // refused
    #else
    item.title = "after"
    let owner = Owner(context)
    #endif
    _ = owner
}
