// The table of a context's living objects, beside a dictionary.

import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct ObjectRegistryTests {
    private final class Thing {}
    private struct Entry {
        let thing: Thing
        let token: UInt32
    }

    /// IDs as stores give them out, and such as would meet each other in one place of the table.
    private static let patterns: [(name: String, id: @Sendable (UInt64) -> UInt64)] = [
        ("one after the other", { 1 + $0 }),
        ("every eighth", { 8 + 8 * $0 }),
        ("every 64th", { 64 + 64 * $0 }),
        ("in two ranges", { $0 % 2 == 0 ? 1 + $0 : 1 << 32 + $0 }),
        ("anywhere", { 1 + ($0 &* 0x9E37_79B9_7F4A_7C15) >> 1 }),
    ]

    @Test(arguments: patterns.map(\.name), [1, 2, 3] as [UInt64])
    func theTableIsADictionary(_ pattern: String, _ seed: UInt64) throws {
        let id = try #require(Self.patterns.first { $0.name == pattern }).id
        var random = SeededRandom(seed: seed)
        let registry = ObjectRegistry()
        var model: [UInt64: Entry] = [:]
        var token: UInt32 = 0
        // Fills and empties in waves, so that the table grows and shrinks.
        for step in 0..<30_000 {
            let number = id(random.next() % 3_000)
            let fills = (step / 5_000) % 2 == 0
            if random.next() % 8 < (fills ? 6 : 2) {
                token += 1
                let entry = Entry(thing: Thing(), token: token)
                registry.insert(entry.thing, ObjectID(number), entity: 3, token: token)
                model[number] = entry
            } else if let entry = model[number] {
                // The end of an earlier object leaves the entry alone.
                _ = registry.remove(ObjectID(number), token: entry.token &- 1)
                #expect(registry.contains(ObjectID(number)))
                _ = registry.remove(ObjectID(number), token: entry.token)
                model[number] = nil
            }
            let other = id(random.next() % 3_000)
            let found = registry.find(ObjectID(other))
            if found?.object !== model[other]?.thing { Issue.record("\(other), seed \(seed)") }
            if step % 1_000 == 0 {
                #expect(registry.count == model.count, "seed \(seed)")
                // A table shrinks when less than an eighth of it is used, if its lanes allow it.
                #expect(registry.capacity <= max(128, model.count * 32), "seed \(seed)")
            }
        }
        let all = registry.all.map { ObjectIdentifier($0.object) }
        let ids = model.keys.sorted()
        #expect(all == ids.map { model[$0].map { ObjectIdentifier($0.thing) } })
        for number in ids {
            guard let entry = model[number] else { continue }
            _ = registry.remove(ObjectID(number), token: entry.token)
        }
        #expect(registry.count == 0 && registry.capacity <= 128)
    }

    @Test(arguments: patterns.map(\.name)) func aListIsInsertedAndFollowed(_ pattern: String) throws
    {
        let id = try #require(Self.patterns.first { $0.name == pattern }).id
        let registry = ObjectRegistry()
        var random = SeededRandom(seed: 7)
        let ids = (0..<10_000).map { ObjectID(id(UInt64($0))) }.shuffled(using: &random)
        let things = ids.map { _ in Thing() }
        registry.insert(ids, entity: 1, firstToken: 10, isInOrder: true) {
            ObjectRegistry.bits(things[$0])
        }
        #expect(registry.count == 10_000 && registry.capacity <= 32_768)
        #expect(registry.followers(of: ids[4_000], limit: 50) == Array(ids[4_001...4_050]))
        // A list without an order for reading ahead leaves those of another alone.
        registry.insert(Array(ids.reversed()), entity: 1, firstToken: 20_000, isInOrder: false) {
            _ in 0
        }
        #expect(registry.followers(of: ids[4_000], limit: 2) == Array(ids[4_001...4_002]))
        let found = try #require(registry.find(ids, entity: 1))
        for (index, bits) in found.enumerated() {
            #expect(ObjectRegistry.take(bits, as: Thing.self) === things[index])
        }
        #expect(registry.find(ids, entity: 2)?.allSatisfy { $0 == 0 } == true)
    }
}
