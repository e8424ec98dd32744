// The versions of one object: values, names of what changed, and what a deleted one had.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveRecords

@testable import VarveObjects

@Suite(.verified) struct ObjectVersionTests {
    @Test func `Each version tells its commit, its values and what changed`() throws {
        let container = try memory(historyOptions())
        let (id, first) = try saveTitle("a", in: container, author: "ann")
        let context = container.newContext(author: "bob")
        let item = try #require(try context.existingObject(with: id))
        let folder = Folder(in: context)
        item.title = "b"
        item.folder = folder
        let second = try #require(try context.save().commit)
        item.tags.append(Tag(in: context))
        try context.save()
        context.delete(item)
        let third = try #require(try context.save().commit)
        try saveTitle("other", in: container)
        let versions = try container.versions(of: id)
        #expect(versions.map(\.commit) == [third, second, first])
        #expect(versions.map(\.change) == [.deleted, .updated, .inserted])
        #expect(versions.map(\.author) == ["bob", "bob", "ann"])
        #expect(versions.allSatisfy { $0.date.map { abs($0.timeIntervalSinceNow) < 60 } == true })
        #expect(versions[1].changedProperties == ["title", "folder"])
        #expect(versions[1].values?.title == "b" && versions[1].previous?.title == "a")
        #expect(versions[1].values?.folder == folder.id && versions[1].previous?.folder == nil)
        #expect(versions[2].previous == nil && versions[2].changedProperties.contains("serial"))
        // What the deleted object had last.
        #expect(versions[0].values == nil && versions[0].previous?.title == "b")
        // A page at a time.
        #expect(try container.versions(of: id, limit: 1).map(\.commit) == [third])
        #expect(
            try container.versions(of: id, limit: 5, before: third).map(\.commit)
                == [second, first]
        )
        #expect(try container.versions(of: id, limit: 0).isEmpty)
        #expect(code { _ = try container.versions(of: id, limit: -1) } == .invalidRequest)
        #expect(code { _ = try memory().versions(of: id) } == .foreignID)
    }

    @Test func `Versions reach back to what a compaction kept, and say so`() throws {
        let container = try memory(historyOptions(.commits(3)))
        let (id, first) = try saveTitle("0", in: container)
        let (gone, _) = try saveTitle("gone", in: container)
        let context = container.newContext()
        try context.existingObject(with: gone).map { context.delete($0) }
        try context.save()
        for step in 1...3 { try saveTitle("x\(step)", in: container) }
        try saveTitle("1", of: id, in: container)
        _ = try container.store.engine.compact()
        let versions = try container.versions(of: id)
        #expect(versions.map { $0.values?.title } == ["1", "0"])
        #expect(versions.map(\.change) == [.updated, nil])
        let oldest = try #require(versions.last)
        #expect(oldest.commit == first && oldest.date == nil && oldest.author == nil)
        #expect(oldest.previous == nil && oldest.changedProperties.isEmpty)
        // A deleted object lasts as long as the history that has it.
        #expect(try container.versions(of: gone).isEmpty)
    }

    @Test func `Large texts and blobs of earlier versions can be read`() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(historyOptions(.all))
        let context = container.newContext()
        let (item, picture) = (Item(in: context), Picture(in: context))
        let texts = ["a", "b"].map { String(repeating: $0, count: 5_000) } + ["short"]
        var bytes: [Data] = []
        for (step, text) in texts.enumerated() {
            item.title = text
            let data = Data(repeating: UInt8(step + 1), count: step == 1 ? 4_000 : 200)
            bytes.append(data)
            var writer = try context.makeBlob()
            try writer.append(data)
            picture.data = try writer.finish()
            try context.save()
        }
        try container.store.engine.checkpoint()
        context.delete(picture)
        try context.save()
        func check() throws {
            let titles = try container.versions(of: item.id).map { $0.values?.title }
            #expect(titles == texts.reversed())
            let pictures = try container.versions(of: picture.id)
            #expect(pictures.first?.change == .deleted)
            let found = try pictures.dropFirst().map { version in
                let blob = try #require(version.values?.data)
                return try blob.read(0..<blob.length)
            }
            #expect(found == bytes.reversed())
            // A blob of the past can be given to an object of the present.
            let again = Picture(in: context)
            again.data = pictures[2].values?.data
            try context.save()
            #expect(try again.data.map { try $0.read(0..<$0.length) } == bytes[1])
        }
        try check()
        _ = try container.store.engine.compact()
        try check()
        try container.closeNow()
    }

    @Test func `Versions of a row cost the stretches in which it changed`() throws {
        for count in [500, 1_000] {
            let container = try memory(historyOptions(checkpoint: 16 << 10))
            let (id, _) = try saveTitle("0", in: container)
            let other = try saveTitle("other", in: container).id
            let context = container.newContext()
            let item = try #require(try context.existingObject(with: other))
            for step in 1...count {
                item.number = step
                try context.save()
            }
            let found = try container.measuredVersions(of: id, limit: 10)
            #expect(found.versions.count == 1)
            // The first stretch, the last one, and two frames for each between them.
            let checkpoints = Int(container.store.engine.statistics.checkpoints)
            #expect(checkpoints > 2)
            let stretch = count / checkpoints
            #expect(found.framesRead < 3 * stretch + 4 * checkpoints + 20)
            let some = try container.measuredVersions(of: other, limit: 10)
            #expect(some.versions.count == 10)
            #expect(some.framesRead < 2 * stretch + 20)
        }
    }
}
