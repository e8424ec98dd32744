// The examples of the article Large attachments.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: large attachments") struct LargeAttachmentsGuide {
    // Shown in LargeAttachments: model
    @Entity final class Photo: ManagedObject {
        var caption: String = ""
        @Attribute(.externalStorage(above: 65_536)) var image: Blob?
    }
    // End.

    enum PhotoSchema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Photo.self] }
    }

    @Test("Blobs are written at once and in pieces, and read the same ways")
    func photos() async throws {
        let place = try TemporaryStore()
        let container = try await PersistentContainer.open(at: place.url, schema: PhotoSchema.self)
        let context = container.newContext()
        let jpeg = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let pieces = [jpeg.prefix(90_000), jpeg.dropFirst(90_000)]

        // Shown in LargeAttachments: write
        let photo = Photo(in: context)
        photo.image = try context.makeBlob(jpeg, for: Photo.columns.image)
        try context.save()
        // End.

        // Shown in LargeAttachments: pieces
        var writer = try context.makeBlob(for: Photo.columns.image)
        for piece in pieces { try writer.append(piece) }
        photo.image = try writer.finish()
        try context.save()
        // End.

        // Shown in LargeAttachments: read
        guard let image = photo.image else { return }
        print(image.length)  // known without reading a byte
        let header = try image.read(0..<16)
        let whole = try await Task.detached { try image.readAll() }.value
        // End.
        #expect(whole == jpeg && header == jpeg.prefix(16))

        // Shown in LargeAttachments: chunks
        var sum = 0
        for try await piece in image.chunks(of: 65_536) { sum += piece.count }
        // End.
        #expect(sum == jpeg.count)

        // Shown in LargeAttachments: filter
        let large = Photo.where { $0.image.length > 100_000 }
        let without = Photo.where { $0.image == nil }
        // End.
        #expect(try context.count(large) == 1)
        #expect(try context.count(without) == 0)
        #expect(place.files.count { $0.key.contains("test.varve-blobs/") } == 1)
        try await container.close()
    }
}
#endif
