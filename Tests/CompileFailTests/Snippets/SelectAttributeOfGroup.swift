// A group has answers; the attribute of one of its objects, which one, is none.
import VarveObjects

private func counts(_ context: ManagedObjectContext) throws {
    #if REFUSED
    _ = try context.select(Item.all, groupedBy: { $0.count }) { item, group in  // refused
        (group.count, item.title)  // refused
    }
    #else
    _ = try context.select(Item.all, groupedBy: { $0.count }) { item, group in
        (group.count, item.title.max)
    }
    #endif
}
