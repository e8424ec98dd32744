// A blob is finished once.
import Foundation
import VarveObjects

private func body(_ context: ManagedObjectContext) throws -> Blob {
    #if REFUSED
    var writer = try context.makeBlob()  // refused
    #else
    var writer = try context.makeBlob()
    #endif
    try writer.append(Data(count: 3))
    let blob = try writer.finish()
    #if REFUSED
    return try writer.finish()  // refused
    #else
    return blob
    #endif
}
