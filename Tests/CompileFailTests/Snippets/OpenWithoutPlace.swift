// Nothing is opened in memory by leaving something out.
import Foundation
import VarveObjects

private func body(_ url: URL) async throws {
    #if REFUSED
    let container = try await PersistentContainer.open(schema: AppSchema.self)  // refused
    #else
    let container = try await PersistentContainer.open(at: url, schema: AppSchema.self)
    #endif
    _ = container
}
