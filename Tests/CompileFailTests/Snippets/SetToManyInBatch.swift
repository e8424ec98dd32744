// A row of a batch has no to-many relationship.
import VarveObjects

private func body(_ context: ManagedObjectContext, _ tag: Tag) throws {
    #if REFUSED
    try context.batchInsert(Item.self, count: 1) { row, _ in
        row.tags = [tag.id]  // refused
    }
    #else
    try context.batchInsert(Item.self, count: 1) { row, _ in
        row.title = tag.name
    }
    #endif
}
