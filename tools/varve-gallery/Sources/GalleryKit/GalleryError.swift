// What goes wrong in the gallery, as a sentence.

import Foundation

/// Something the user of the gallery can understand and do something about.
package struct GalleryError: Error, LocalizedError, CustomStringConvertible {
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
    package var errorDescription: String? { message }
}
