// A filter on one entity is none on another.
import VarveObjects

private func body(_ context: ManagedObjectContext) throws {
    #if REFUSED
    let items: [Item] = try context.fetch(Tag.where { $0.name == "x" })  // refused
    #else
    let items: [Item] = try context.fetch(Item.where { $0.title == "x" })
    #endif
    _ = items
}
