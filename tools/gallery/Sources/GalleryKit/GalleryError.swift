import Foundation

/// Something the user of the gallery can understand and do something about.
struct GalleryError: Error, LocalizedError, CustomStringConvertible {
    let message: String

    init(_ message: String) { self.message = message }

    var description: String { message }
    var errorDescription: String? { message }
}
