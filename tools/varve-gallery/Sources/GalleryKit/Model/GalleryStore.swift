// Opens the gallery's stores.

import Foundation
package import VarveObjects

/// Opens stores for the commands.
package enum GalleryStore {
    /// Opens the store at `path`, with or without the ending `.varve`; makes it when
    /// `createIfMissing` says so.
    package static func open(
        _ path: String,
        createIfMissing: Bool = false,
        options: ContainerOptions = .init()
    ) async throws -> PersistentContainer {
        var url = URL(filePath: path)
        if url.pathExtension != "varve" { url.appendPathExtension("varve") }
        guard createIfMissing || FileManager.default.fileExists(atPath: url.path) else {
            throw GalleryError(
                "there is no store at \(url.path); make one with: gallery import --into \(path)"
            )
        }
        var options = options
        options.createIfMissing = createIfMissing
        return try await PersistentContainer.open(
            at: url,
            schema: GallerySchema.self,
            options: options
        )
    }
}
