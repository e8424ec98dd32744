// Opens the gallery's stores.

import Foundation
package import Varve

/// Opens stores for the commands.
package enum GalleryStore {
    /// Opens the store at `path`, and makes it when `isNew` allows that.
    package static func open(
        _ path: String,
        createIfMissing: Bool = false,
        options: ContainerOptions = .init()
    ) async throws -> PersistentContainer {
        var options = options
        options.createIfMissing = createIfMissing
        let url = URL(filePath: path)
        guard createIfMissing || FileManager.default.fileExists(atPath: url.path) else {
            throw GalleryError(
                "there is no store at \(path); make one with: gallery import --into \(path)"
            )
        }
        return try await PersistentContainer.open(
            at: url,
            schema: GallerySchema.self,
            options: options
        )
    }
}
