// Blobs read whole: the same bytes from the heap and from pages of their own.

import Foundation
import Testing
import VarveObjects

@Suite struct LargeBlobTests {
    @Test("A blob reads as it was written, on both sides of every limit")
    func blobsReadAsTheyWereWritten() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        // 131,072 bytes are the first that come in pages of their own; 256 KiB is a piece of a
        // file.
        let lengths = [0, 1, 999, 1_001, 131_071, 131_072, 131_073, 262_144, 262_145, 3_000_001]
        func content(_ length: Int) -> Data {
            Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ length) })
        }
        let writing = container.newContext()
        for (index, length) in lengths.enumerated() {
            let picture = Picture(in: writing)
            picture.caption = "\(index)"
            picture.data = try writing.makeBlob(content(length), for: Picture.columns.data)
        }
        try writing.save()

        let reading = container.newContext()
        let before = container.statistics.blobBytesRead
        var kept: [Data] = []
        for picture in try reading.fetch(Picture.all.sorted { [$0.caption.ascending] }) {
            let index = try #require(Int(picture.caption))
            let blob = try #require(picture.data)
            #expect(blob.length == lengths[index])
            kept.append(try blob.readAll())
            #expect(kept.last == content(lengths[index]), "\(lengths[index]) bytes")
        }
        #expect(kept.count == lengths.count)
        #expect(container.statistics.blobBytesRead - before == lengths.reduce(0, +))

        // Data is a value: changing a copy leaves the other as it was.
        var changed = try #require(kept.last)
        changed[0] ^= 0xff
        changed.append(7)
        #expect(kept.last == content(3_000_001))
        #expect(changed.count == 3_000_002)
    }

    @Test("A changed file is an error, not other bytes, also for large blobs")
    func damagedBlobsAreErrors() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(
            Data(repeating: 7, count: 500_000),
            for: Picture.columns.data
        )
        try context.save()

        let blobs = folder.url.appending(path: "test.varve-blobs")
        let name = try #require(
            try FileManager.default.contentsOfDirectory(atPath: blobs.path).first
        )
        let file = try FileHandle(forWritingTo: blobs.appending(path: name))
        try file.seek(toOffset: 400_000)
        try file.write(contentsOf: Data([8]))
        try file.close()

        let reading = container.newContext()
        let blob = try #require(try reading.existingObject(with: picture.id)?.data)
        do {
            _ = try blob.readAll()
            Issue.record("changed bytes were handed out")
        } catch let error as StoreError {
            #expect(error.code == .blobDamaged)
        }
    }
}
