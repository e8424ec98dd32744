// A property of a batch's row takes its own type only.
import VarveObjects

private func body(_ context: ManagedObjectContext) throws {
    #if REFUSED
    try context.batchUpdate(Item.all) { row in
        row.title = 5  // refused
    }
    #else
    try context.batchUpdate(Item.all) { row in
        row.title = "5"
    }
    #endif
}
