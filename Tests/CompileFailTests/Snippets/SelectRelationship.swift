// A tuple has attributes; a relationship is none.
import VarveObjects

private func titles(_ context: ManagedObjectContext) throws {
    #if REFUSED
    _ = try context.select(Item.all) { ($0.title, $0.tags) }  // refused
    #else
    _ = try context.select(Item.all) { ($0.title, $0.count) }
    #endif
}
