// Where pictures come from: a folder, or made from seeds.

package import Foundation

/// Where the pictures come from. Picture number n is always the same one, whatever the number of
/// pictures: the files of a folder in the order of their names, over and over, or generated
/// pictures that repeat after `generatedCount`.
package enum PictureSource: Sendable {
    case folder([URL])
    case generated

    /// How many different pictures are generated before they repeat: enough to differ on any
    /// screen, and few enough that 4,000 rows do not need 8 GB of disk (equal content is one file
    /// in the store).
    static let generatedCount = 100

    private static let chunkSize = 262_144

    init(folder: String?) throws {
        guard let folder else {
            self = .generated
            return
        }
        let directory = URL(filePath: folder, directoryHint: .isDirectory)
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        } catch {
            throw GalleryError("\(folder) cannot be read: \(error.localizedDescription)")
        }
        let files = names.sorted().map { directory.appending(path: $0) }.filter(Self.isPicture)
        guard !files.isEmpty else {
            throw GalleryError("\(folder) holds no picture (JPEG, PNG, GIF, WebP, TIFF or HEIC)")
        }
        self = .folder(files)
    }

    /// How many different pictures there are.
    var cycle: Int {
        switch self {
        case .folder(let files): files.count
        case .generated: Self.generatedCount
        }
    }

    /// File name of picture number `index`, as shown to people.
    func name(of index: Int) -> String {
        switch self {
        case .folder(let files): files[index % files.count].lastPathComponent
        case .generated: "hills-\(index % Self.generatedCount + 1).png"
        }
    }

    /// Writes the bytes of picture number `index`, piece by piece.
    func write(_ index: Int, _ consume: ([UInt8]) throws -> Void) throws {
        switch self {
        case .folder(let files):
            let file = try FileHandle(forReadingFrom: files[index % files.count])
            defer { try? file.close() }
            while let piece = try file.read(upToCount: Self.chunkSize), !piece.isEmpty {
                try consume([UInt8](piece))
            }
        case .generated:
            try GeneratedPicture(seed: UInt64(index % Self.generatedCount)).write(consume)
        }
    }

    /// Whether the file begins as one of the usual picture formats does.
    private static func isPicture(_ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 12) else { return false }
        let bytes = [UInt8](head)
        let starts: [[UInt8]] = [
            [0xff, 0xd8, 0xff], PNGChunk.signature, Array("GIF8".utf8), [0x49, 0x49, 0x2a, 0],
            [0x4d, 0x4d, 0, 0x2a],
        ]
        if starts.contains(where: { bytes.starts(with: $0) }) { return true }
        guard bytes.count == 12 else { return false }
        return bytes[8..<12].elementsEqual("WEBP".utf8) || bytes[4..<8].elementsEqual("ftyp".utf8)
    }
}
