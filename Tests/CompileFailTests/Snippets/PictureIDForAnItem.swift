// The ID of a Picture is no ID of an Item.
import VarveObjects

private func body(_ context: ManagedObjectContext, _ picture: Picture.ID, _ id: Item.ID) throws {
    #if REFUSED
    let item: Item? = try context.existingObject(with: picture)  // refused
    #else
    let item: Item? = try context.existingObject(with: id)
    #endif
    _ = item
}
