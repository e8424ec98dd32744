// A row of a batch does not leave its closure.
import VarveObjects

private func body(_ context: ManagedObjectContext) throws {
    #if REFUSED
    var kept: [BatchRow<Item>] = []  // refused
    #else
    var kept: [Item.ID] = []
    try context.batchUpdate(Item.all) { row in kept.append(row.id) }
    #endif
    _ = kept
}
