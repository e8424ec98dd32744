// A place for a store that goes when the test ends.
public import Foundation
import VarveEngine

/// A fresh folder for one store, removed with everything in it when this object goes.
///
/// ```swift
/// let place = try TemporaryStore()
/// let container = try await PersistentContainer.open(at: place.url, schema: AppSchema.self)
/// ```
///
/// Keep it as long as the store is open: the folder goes with the last reference to it.
public final class TemporaryStore: Sendable {
    /// The folder; nothing else uses it.
    public let folder: URL
    /// Where the store goes: a file that is not there yet.
    public let url: URL
    private let isKept: Bool
    /// Whoever verifies the stores of the test that made this.
    private let witness = OpeningWitnesses.current

    /// Makes the folder.
    /// - Parameters:
    ///   - name: the store's name without its extension.
    ///   - parent: where the folder goes; the system's folder for temporary files if nil.
    ///   - isKept: true leaves the folder there, to look at it after a failure.
    /// - Throws: the file manager's error when the folder cannot be made.
    public init(_ name: String = "test", in parent: URL? = nil, isKept: Bool = false) throws {
        let parent = parent ?? FileManager.default.temporaryDirectory
        folder = parent.appending(
            path: "varve-\(UUID().uuidString.lowercased())",
            directoryHint: .isDirectory
        )
        url = folder.appending(path: "\(name).varve", directoryHint: .notDirectory)
        self.isKept = isKept
        try FileManager.default.createDirectory(
            at: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    deinit {
        witness?.folderGoes(folder.path)
        guard !isKept else { return }
        // Nothing can be done about a folder that does not want to go; the system clears it later.
        try? FileManager.default.removeItem(at: folder)
    }

    /// The sizes of all files in the folder by their path in it, in bytes.
    /// - Complexity: O(files).
    public var files: [String: Int] {
        var sizes: [String: Int] = [:]
        for path in (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? [] {
            let attributes = try? FileManager.default.attributesOfItem(
                atPath: folder.appending(path: path).path
            )
            guard attributes?[.type] as? FileAttributeType == .typeRegular else { continue }
            sizes[path] = (attributes?[.size] as? NSNumber)?.intValue ?? 0
        }
        return sizes
    }
}
