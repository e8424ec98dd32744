// Blob handles of values: snapshots and both sides of a conflict read their bytes, and hold no
// commit without need.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct BlobValueTests {
    private func bytes(_ count: Int, _ seed: Int = 1) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) })
    }

    /// Inside the rows, and in a file.
    @Test(arguments: [500, 5_000]) func aSnapshotReadsAnUnsavedBlob(size: Int) throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        func snapshots() throws -> [Picture.Snapshot] {
            let context = container.newContext()
            let new = Picture(in: context)
            new.data = try context.makeBlob(bytes(size), for: Picture.columns.data)
            let ofNew = new.snapshot()
            #expect(try ofNew.data?.readAll() == bytes(size))
            try context.save()
            #expect(try ofNew.data?.readAll() == bytes(size))
            let ofSaved = new.snapshot()
            new.data = try context.makeBlob(bytes(size, 2), for: Picture.columns.data)
            let ofEdited = new.snapshot()
            #expect(try ofEdited.data?.readAll() == bytes(size, 2))
            #expect(try ofSaved.data?.readAll() == bytes(size))
            context.rollback()
            #expect(try new.snapshot().data?.readAll() == bytes(size))
            new.data = nil
            #expect(new.snapshot().data == nil)
            try context.save()
            return [ofNew, ofSaved, ofEdited]
        }
        // They outlive their context, and what they were taken from.
        let kept = try snapshots()
        #expect(try kept.map { try $0.data?.readAll() } == [1, 1, 2].map { bytes(size, $0) })
        try container.closeNow()
    }

    @Test(arguments: [500, 5_000]) func allSidesOfAConflictRead(size: Int) throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(size, 1), for: Picture.columns.data)
        try context.save()
        picture.data = try context.makeBlob(bytes(size, 2), for: Picture.columns.data)
        let other = container.newContext()
        let theirs = try #require(try other.existingObject(with: picture.id))
        theirs.data = try other.makeBlob(bytes(size, 3), for: Picture.columns.data)
        try other.save()
        let read = Shared<[Data?]>([])
        let handles = Shared<[Blob?]>([])
        try context.save(
            mergePolicy: .custom { conflict in
                let sides = [conflict.base, conflict.mine, conflict.theirs].map {
                    $0?.snapshot(of: Picture.self)?.data
                }
                let data = try sides.map { try $0?.readAll() }
                read.withLock { $0 = data }
                handles.withLock { $0 = sides }
                return .objectWinsByProperty
            }
        )
        #expect(read.withLock { $0 } == [1, 2, 3].map { bytes(size, $0) })
        // And afterwards, for an app that shows them.
        let after = try handles.withLock { $0 }.map { try $0?.readAll() }
        #expect(after == [1, 2, 3].map { bytes(size, $0) })
        #expect(try picture.data?.readAll() == bytes(size, 2))
        let fresh = container.newContext()
        #expect(try fresh.existingObject(with: picture.id)?.data?.readAll() == bytes(size, 2))
        handles.withLock { $0 = [] }
        try container.closeNow()
    }

    @Test func aDeletionHasNoValuesOfItsOwn() throws {
        let container = try memory()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(bytes(5_000, 1), for: Picture.columns.data)
        try context.save()
        context.delete(picture)
        let other = container.newContext()
        let theirs = try #require(try other.existingObject(with: picture.id))
        theirs.data = try other.makeBlob(bytes(5_000, 3), for: Picture.columns.data)
        try other.save()
        let read = Shared<[Data?]>([])
        try context.save(
            mergePolicy: .custom { conflict in
                let data = try [conflict.base, conflict.mine, conflict.theirs].map {
                    try $0?.snapshot(of: Picture.self)?.data?.readAll()
                }
                read.withLock { $0 = data }
                return .rollback
            }
        )
        #expect(read.withLock { $0 } == [bytes(5_000, 1), nil, bytes(5_000, 3)])
        #expect(!picture.isDeleted)
        #expect(try picture.data?.readAll() == bytes(5_000, 3))
    }

    @Test func onlyHandlesHoldACommit() throws {
        let container = try memory()
        func blobPins() -> Int { container.statistics.pins.filter { $0.kind == .blob }.count }
        func snapshot(withBlob: Bool) throws -> Picture.Snapshot {
            let context = container.newContext()
            let picture = Picture(in: context)
            picture.caption = "caption"
            if withBlob {
                picture.data = try context.makeBlob(bytes(5_000), for: Picture.columns.data)
            }
            try context.save()
            return picture.snapshot()
        }
        let plain = try snapshot(withBlob: false)
        #expect(plain.caption == "caption" && plain.data == nil)
        #expect(blobPins() == 0)
        // Nothing at all holds a commit when the contexts are gone.
        #expect(container.statistics.pins.isEmpty)
        do {
            let full = try snapshot(withBlob: true)
            #expect(blobPins() == 1)
            #expect(try full.data?.readAll() == bytes(5_000))
        }
        #expect(blobPins() == 0)
        // Sides of a conflict without blobs hold none either.
        let context = container.newContext()
        let picture = try #require(try context.existingObject(with: plain.id))
        picture.caption = "mine"
        let other = container.newContext()
        try #require(try other.existingObject(with: plain.id)).caption = "theirs"
        try other.save()
        let kept = Shared<[SaveConflict]>([])
        try context.save(
            mergePolicy: .custom { conflict in
                kept.withLock { $0.append(conflict) }
                return .objectWinsByProperty
            }
        )
        #expect(kept.withLock { $0.count } == 1)
        #expect(blobPins() == 0)
    }
}
