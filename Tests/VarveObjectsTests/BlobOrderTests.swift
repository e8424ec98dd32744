// Two contexts set, change and delete pictures in any order, with contents that many of them share.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite("Blobs in any order", .verified) struct BlobOrderTests {
    /// The container, who edits and who comes between, and what they have in hand.
    private struct World {
        let container: PersistentContainer
        let context: ManagedObjectContext
        let other: ManagedObjectContext
        var random: SeededRandom
        var held: [Picture] = []
        var saves = 0

        private mutating func draw(_ count: Int) -> Int {
            Int.random(in: 0..<count, using: &random)
        }

        /// Below the external limit, or above it.
        private static func content(_ number: Int) -> Data {
            Data(
                (0..<(number % 2 == 0 ? 40 : 2_000)).map { UInt8(truncatingIfNeeded: $0 &+ number) }
            )
        }

        /// Few contents, so that pictures share them.
        private static let contents = 6

        private mutating func fill(_ picture: Picture, in context: ManagedObjectContext) throws {
            let number = draw(Self.contents)
            picture.caption = "\(number), after \(saves)"
            picture.data = try context.makeBlob(Self.content(number), for: Picture.columns.data)
        }

        private func touch(_ picture: Picture) { picture.caption += "+" }

        mutating func step() throws {
            switch draw(12) {
            case 0, 1:
                let picture = Picture(in: context)
                try fill(picture, in: context)
                held.append(picture)
            case 2, 3: if let picture = pick() { touch(picture) }
            case 4: if let picture = pick() { try fill(picture, in: context) }
            case 5:
                if held.isEmpty { return }
                context.delete(held.remove(at: draw(held.count)))
            case 6: context.advance()
            case 7, 8: try save(context, held)
            case 9, 10: try meddle()
            default:
                if draw(3) == 0 { try container.compactNow() }
                if draw(4) == 0 {
                    held.removeAll(where: \.isInserted)
                    context.rollback()
                }
                if held.count > 4 { held.remove(at: draw(held.count)) }
            }
        }

        private mutating func pick() -> Picture? {
            held.isEmpty ? nil : held[draw(held.count)]
        }

        /// The other one changes or deletes what is stored.
        private mutating func meddle() throws {
            other.advance()
            var all = try other.fetch(Picture.all)
            var edited: [Picture] = []
            for _ in 0...draw(2) where !all.isEmpty {
                let picture = all.remove(at: draw(all.count))
                switch draw(3) {
                case 0: try fill(picture, in: other)
                case 1: touch(picture)
                default:
                    other.delete(picture)
                    continue
                }
                edited.append(picture)
            }
            try save(other, edited)
        }

        /// A save never fails, since the policy lets the saver win; what it showed of its edits is
        /// what is stored, and the bytes of each picture are there.
        private mutating func save(_ saver: ManagedObjectContext, _ shown: [Picture]) throws {
            let edited = shown.filter { $0.isUpdated || $0.isInserted }
                .map { (id: $0.id, caption: $0.caption, digest: $0.data?.digest) }
            try saver.save(mergePolicy: .overwrite)
            saves += 1
            let fresh = container.newContext()
            for picture in try fresh.fetch(Picture.all) {
                let bytes = try picture.data?.readAll()
                #expect((0..<Self.contents).contains { Self.content($0) == bytes })
            }
            for (id, caption, digest) in edited {
                let stored = try fresh.object(with: id)
                #expect(stored.caption == caption && stored.data?.digest == digest, "\(caption)")
            }
        }
    }

    @Test("What a save names is there", arguments: UInt64(1)...40)
    func anyOrder(seed: UInt64) throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        var world = World(
            container: container,
            context: container.newContext(),
            other: container.newContext(),
            random: SeededRandom(seed: seed)
        )
        for step in 0..<60 {
            do { try world.step() } catch {
                Issue.record("seed \(seed), step \(step): \(error)")
                break
            }
        }
        #expect(world.saves > 0, "seed \(seed)")
        world.held = []
        world.context.reset()
        world.other.reset()
        try container.closeNow()
    }
}
