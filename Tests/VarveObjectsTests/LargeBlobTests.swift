// Blobs read whole: the same bytes from the heap and from pages of their own.

import Foundation
import Testing

@testable import VarveObjects

@Suite(.verified) struct LargeBlobTests {
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

    @Test("What no system has is refused before any memory is asked for")
    func impossibleLengths() {
        for capacity in [Int.max, Int.max / 5 * 4 + 1, 1 << 60] {
            #expect(PagePool.take(capacity: capacity) == nil)
            let isThere = PageData(capacity: capacity) != nil
            #expect(!isThere)
        }
    }

    /// Pages that a value gave back are those of the next one, and of no other that lives.
    @Test("Values that come and go have bytes of their own", arguments: [UInt64(21), 22])
    func valuesHaveBytesOfTheirOwn(seed: UInt64) throws {
        var state = seed
        func below(_ end: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % end
        }
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let lengths = [131_072, 150_000, 160_001, 300_000, 1_000_003]
        var blobs: [(blob: Blob, bytes: Data)] = []
        for (index, length) in lengths.enumerated() {
            let picture = Picture(in: context)
            let bytes = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ index) })
            picture.data = try context.makeBlob(bytes, for: Picture.columns.data)
            blobs.append((try #require(picture.data), bytes))
        }
        try context.save()
        var alive: [(data: Data, wanted: Data)] = []
        for step in 0..<400 {
            let (blob, bytes) = blobs[below(blobs.count)]
            switch step % 3 {
            case 0: alive.append((try blob.readAll(), bytes))
            case 1:
                let start = below(1_000)
                let data = try blob.read(start..<blob.length)
                // A slice keeps the whole.
                alive.append((data.dropFirst(5), bytes.dropFirst(start + 5)))
            default:
                let copy = try blob.read(0..<blob.length)
                alive.append((copy, bytes))
                alive.append((copy, bytes))
            }
            while alive.count > 8 {
                alive.remove(at: below(alive.count))
            }
            if step % 10 == 9 {
                for (data, wanted) in alive { #expect(data == wanted, "seed \(seed)") }
            }
            if step == 200 { container.trimMemory() }
            #expect(PagePool.byteCount <= PagePool.bytesMax)
        }
    }

    @Test(
        "A changed file is an error, not other bytes, also for large blobs",
        .damagesStores("a blob file is changed")
    )
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
