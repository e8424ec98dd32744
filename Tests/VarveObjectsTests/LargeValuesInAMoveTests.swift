// What an observer reads of large texts and blobs while its context moves to another commit: some
// rows are still those of the commit before, and only that one has their large values.

import Foundation
import Testing
import VarveObjects

@Suite("Large values in the middle of a move", .verified) struct LargeValuesInAMoveTests {
    private func observed() throws -> PersistentContainer {
        var options = ContainerOptions()
        options.everyContextObserves = true
        return try memory(options)
    }

    private func bytes(_ count: Int, _ seed: UInt8) -> Data { Data(repeating: seed, count: count) }

    /// The observer also moves the context further: then rows are of three commits.
    @Test("A large text that others replace", arguments: [false, true], [false, true])
    func text(_ saves: Bool, _ moves: Bool) throws {
        let container = try observed()
        let (context, other) = (container.newContext(), container.newContext())
        let long = String(repeating: "long", count: 20_000)
        let things = (0..<4).map { _ in
            let thing = Everything(in: context)
            (thing.string, thing.required) = (long, "r")
            return thing
        }
        let own = Tag(in: context)
        try context.save()
        var seen: [Int] = []
        func read() { seen += things.map(\.string.utf8.count) }
        let looks = [0, 1].map { index in
            Look {
                read()
                if moves, index == 0 {
                    for place in [0, 1, 3] { change(things[place], "newer") }
                    context.advance()
                    read()
                }
            }
        }
        func change(_ thing: Everything, _ text: String) {
            do {
                try other.object(with: thing.id).string = text
                try other.save(mergePolicy: .overwrite)
            } catch { Issue.record(error) }
        }
        for (look, thing) in zip(looks, things) { look.watch { _ = thing.string } }
        try saveElsewhere(container) { context in
            for thing in things.prefix(3) {
                try context.object(with: thing.id).string = "new"
            }
        }
        other.advance()
        if saves { own.name = "own" }
        try context.save()
        #expect(looks[0].hasRun && looks[1].hasRun)
        #expect(Set(seen).isSubset(of: [80_000, 3, 5]), "\(seen)")
        #expect(context.readFailures.isEmpty)
        let now = things.map(\.string.utf8.count)
        #expect(now == (moves ? [5, 5, 3, 5] : [3, 3, 3, 80_000]))
        try context.save()
        things[0].context?.reset()
    }

    /// The save brings the object back; its old row stands until the new one is there.
    @Test("A large text of an object that a save brings back", arguments: [0, 40, 5_000])
    func broughtBack(_ count: Int) throws {
        let container = try observed()
        let context = container.newContext()
        let (thing, picture) = (Everything(in: context), Picture(in: context))
        let watched = Tag(in: context)
        (thing.string, thing.required) = (String(repeating: "long", count: 20_000), "r")
        if count > 0 {
            picture.data = try context.makeBlob(bytes(count, 7), for: Picture.columns.data)
        }
        try context.save()
        try saveElsewhere(container) {
            try $0.delete($0.object(with: thing.id))
            try $0.delete($0.object(with: picture.id))
        }
        try container.compactNow()
        context.advance()
        (thing.int, picture.caption) = (5, "edited")
        var seen: [Int] = []
        let look = Look {
            seen.append(thing.string.utf8.count)
            do { seen.append(try picture.data?.readAll().count ?? 0) } catch { Issue.record(error) }
        }
        look.watch { _ = watched.name }
        try saveElsewhere(container) { try $0.delete($0.object(with: watched.id)) }
        try context.save(mergePolicy: .overwrite)
        #expect(look.hasRun)
        #expect(seen == [80_000, count])
        #expect(context.readFailures.isEmpty)
        #expect(thing.string.utf8.count == 80_000)
        let stored = try container.newContext().object(with: thing.id)
        #expect(stored.int == 5 && stored.string.utf8.count == 80_000)
    }

    @Test("A blob that others replace", arguments: [40, 5_000], [false, true])
    func blob(_ count: Int, _ saves: Bool) throws {
        let container = try observed()
        let context = container.newContext()
        let pictures = try (0..<2).map { number in
            let picture = Picture(in: context)
            let data = bytes(count, UInt8(number))
            picture.data = try context.makeBlob(data, for: Picture.columns.data)
            return picture
        }
        let own = Tag(in: context)
        try context.save()
        var codes: [StoreError.Code?] = []
        let look = Look {
            for picture in pictures {
                let data = picture.data
                // None at all is missing as well.
                codes.append(data == nil ? .blobMissing : code { _ = try data?.readAll() })
            }
        }
        look.watch { _ = pictures[0].data }
        try saveElsewhere(container) { context in
            for picture in pictures {
                let data = bytes(count, 7)
                let blob = try context.makeBlob(data, for: Picture.columns.data)
                try context.object(with: picture.id).data = blob
            }
        }
        if saves { own.name = "own" }
        try context.save()
        #expect(look.hasRun && codes == [nil, nil])
        #expect(try pictures.map { try $0.data?.readAll() } == [bytes(count, 7), bytes(count, 7)])
    }

    @Test("A blob that is being saved, while others' deletions are told", arguments: [40, 5_000])
    func saved(_ count: Int) throws {
        let container = try observed()
        let context = container.newContext()
        let (own, theirs) = (Picture(in: context), Picture(in: context))
        try context.save()
        var handle: Blob?
        var found: StoreError.Code?
        let look = Look {
            handle = own.data
            found = code { _ = try handle?.readAll() }
        }
        look.watch { _ = theirs.caption }
        try saveElsewhere(container) { try $0.delete($0.object(with: theirs.id)) }
        own.data = try context.makeBlob(bytes(count, 1), for: Picture.columns.data)
        try context.save()
        #expect(look.hasRun && found == nil)
        #expect(try handle?.readAll() == bytes(count, 1))
        #expect(try own.data?.readAll() == bytes(count, 1))
    }
}
