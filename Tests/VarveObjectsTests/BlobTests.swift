// Large values outside the rows: where they are, how long, and what handles read.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BlobTests {
    private func files(_ folder: TemporaryFolder) -> [String] {
        let directory = folder.url.appending(path: "test.varve-blobs")
        let all = FileManager.default.enumerator(
            at: directory,
            includingPropertiesForKeys: [.isRegularFileKey]
        )
        return (all?.allObjects ?? []).compactMap { $0 as? URL }
            .filter { (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true }
            .map(\.path)
    }

    private func bytes(_ count: Int, _ seed: Int = 1) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) })
    }

    @Test func theLimitIsExact() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let small = Picture(in: context)
        small.data = try context.makeBlob(bytes(1_000), for: Picture.columns.data)
        try context.save()
        #expect(files(folder).isEmpty)
        let large = Picture(in: context)
        large.data = try context.makeBlob(bytes(1_001), for: Picture.columns.data)
        try context.save()
        #expect(files(folder).count == 1)
        try container.closeNow()
        let again = try folder.open()
        let fresh = again.newContext()
        #expect(try fresh.existingObject(with: small.id)?.data?.readAll() == bytes(1_000))
        #expect(try fresh.existingObject(with: large.id)?.data?.readAll() == bytes(1_001))
        try again.closeNow()
    }

    @Test func equalContentIsOneFile() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let pictures = try (0..<3).map { _ in
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(bytes(50_000), for: Picture.columns.data)
            return picture
        }
        try context.save()
        #expect(files(folder).count == 1)
        #expect(pictures[0].data == pictures[2].data)
        #expect(pictures[0].data?.digest.description.count == 64)
        try container.closeNow()
    }

    @Test func theFileIsThereBeforeTheCommit() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        let blob = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
        #expect(files(folder).count == 1)
        // Readable before anything names it.
        #expect(try blob.readAll() == bytes(5_000))
        picture.data = blob
        #expect(try picture.data?.read(10..<20) == bytes(5_000)[10..<20])
        try context.save()
        #expect(try picture.data?.readAll() == bytes(5_000))
        try container.closeNow()
    }

    @Test func theFileGoesWhenNothingNamesIt() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
        try context.save()
        var handle = picture.data
        picture.data = nil
        try context.save()
        // The handle still holds its commit.
        #expect(try handle?.readAll() == bytes(5_000))
        #expect(files(folder).count == 1)
        handle = nil
        context.reset()
        try container.closeNow()
        let again = try folder.open()
        let other = again.newContext()
        Tag(in: other).name = "x"
        try other.save()
        other.reset()
        try again.closeNow()
        #expect(files(folder).isEmpty && handle == nil)
    }

    /// An edit may bring an object back that others deleted, as long as somebody has it; no longer.
    @Test(arguments: [false, true])
    func theFileOfADeletedObjectGoesWithIt(_ isOwn: Bool) throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let (context, other) = (container.newContext(), container.newContext())
        var picture: Picture? = Picture(in: context)
        picture?.data = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
        try context.save()
        let id = try #require(picture?.id)
        let deleter = isOwn ? context : other
        deleter.delete(try deleter.object(with: id))
        try deleter.save()
        context.advance()
        other.advance()
        try container.compactNow()
        #expect(picture?.isDeleted == true)
        #expect(files(folder).count == (isOwn ? 0 : 1))
        weak let kept = picture
        picture = nil
        Tag(in: other).name = "x"
        try other.save()
        context.advance()
        try container.compactNow()
        #expect(files(folder).isEmpty && kept == nil)
        context.reset()
        other.reset()
        try container.closeNow()
    }

    @Test(.damagesStores("blob files are removed and changed"))
    func missingBytesFailThatValueOnly() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let pictures = try (0..<2).map { index in
            let picture = Picture(in: context)
            picture.caption = "picture \(index)"
            picture.data = try context.makeBlob(bytes(5_000, index), for: Picture.columns.data)
            return picture
        }
        try context.save()
        let digests = pictures.map { $0.data?.digest.description ?? "" }
        let missing = try #require(files(folder).first { $0.contains(digests[0].suffix(20)) })
        try FileManager.default.removeItem(at: URL(filePath: missing))
        #expect(code { _ = try pictures[0].data?.readAll() } == .blobMissing)
        #expect(pictures[0].caption == "picture 0" && pictures[0].data?.length == 5_000)
        let damaged = try #require(files(folder).first { $0.contains(digests[1].suffix(20)) })
        var content = try Data(contentsOf: URL(filePath: damaged))
        content[2_000] ^= 1
        try content.write(to: URL(filePath: damaged))
        #expect(code { _ = try pictures[1].data?.readAll() } == .blobDamaged)
        #expect(context.readFailures.isEmpty)
        try container.closeNow()
    }

    @Test func lengthAndDigestFilterAndSort() throws {
        let container = try memory()
        let context = container.newContext()
        let pictures = try [5, 2_000, 70].map { count in
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(bytes(count), for: Picture.columns.data)
            return picture
        }
        let empty = Picture(in: context)
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            #expect(
                try context.fetch(Picture.where { $0.data.length > 60 }) == [
                    pictures[1], pictures[2],
                ]
            )
            #expect(try context.fetch(Picture.where { $0.data == nil }) == [empty])
            #expect(try context.count(Picture.where { $0.data != nil }) == 3)
            let digest = pictures[0].data?.digest
            #expect(try context.fetch(Picture.where { $0.data.digest == digest }) == [pictures[0]])
            let byLength = try context.fetch(Picture.all.sorted { [$0.data.length.descending] })
            #expect(byLength == [pictures[1], pictures[2], pictures[0], empty])
            #expect(try context.count(Item.where { $0.picture.data.length > 60 }) == 0)
        }
    }

    @Test func aHandleNeedsNoContext() async throws {
        let container = try memory()
        let blob = try await container.performBackgroundTask { context in
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(
                Data(repeating: 3, count: 100_001),
                for: Picture.columns.data
            )
            try context.save()
            return picture.data
        }
        let handle = try #require(blob)
        let total = try await Task.detached {
            var sizes: [Int] = []
            for try await chunk in handle.chunks(of: 30_000) { sizes.append(chunk.count) }
            return sizes
        }.value
        #expect(total == [30_000, 30_000, 30_000, 10_001])
        #expect(code { _ = try handle.read(100_000..<100_002) } == .blobRange)
        #expect(try handle.read(100_000..<100_001) == Data([3]))
        #expect(try handle.read(0..<0).isEmpty)
    }

    @Test func aBlobMovesToAnotherObject() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let first = Picture(in: context)
        first.data = try context.makeBlob(bytes(9_000), for: Picture.columns.data)
        let small = Picture(in: context)
        small.data = try context.makeBlob(bytes(90), for: Picture.columns.data)
        try context.save()
        let handles = (first.data, small.data)
        context.delete(first)
        context.delete(small)
        try context.save()
        let second = Picture(in: context)
        second.data = handles.0
        let third = Picture(in: context)
        third.data = handles.1
        try context.save()
        #expect(try second.data?.readAll() == bytes(9_000))
        #expect(try third.data?.readAll() == bytes(90))
        try container.closeNow()
        let again = try folder.open()
        let fresh = again.newContext()
        #expect(try fresh.existingObject(with: second.id)?.data?.readAll() == bytes(9_000))
        try again.closeNow()
    }

    @Test func anObjectThatOutlivesItsContextStillHasItsBlob() throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(500), for: Picture.columns.data)
        try context.save()
        func read() throws -> Picture? {
            let context = container.newContext()
            let picture = try context.existingObject(with: picture.id)
            picture?.caption = "not saved"
            return picture
        }
        let other = try read()
        #expect(other?.context == nil && other?.caption == "not saved")
        #expect(try other?.data?.readAll() == bytes(500))
    }

    @Test func aDroppedWriterLeavesNothing() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        do {
            var writer = try context.makeBlob(for: Picture.columns.data)
            try writer.append(bytes(300_000))
            #expect(writer.length == 300_000)
        }
        _ = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
        context.reset()
        try container.closeNow()
        #expect(files(folder).isEmpty)
    }
}
