// An actor cannot return an object of its context.
import VarveObjects

private actor Importer {
    private let context: ManagedObjectContext
    init(_ container: PersistentContainer) { context = container.newContext() }
    func first() throws -> Item? { try context.fetch(Item.all).first { _ in true } }
    func firstID() throws -> Item.ID? { try first()?.id }
}

private func body(_ importer: Importer) async throws {
    #if REFUSED
    let first = try await importer.first()  // refused
    #else
    let first = try await importer.firstID()
    #endif
    _ = first
}
