// Only numbers have a sum.
import VarveObjects

private func sums(_ context: ManagedObjectContext) throws {
    #if REFUSED
    _ = try context.aggregate(Item.all) { item, _ in item.title.sum }  // refused
    #else
    _ = try context.aggregate(Item.all) { item, _ in item.count.sum }
    #endif
}
