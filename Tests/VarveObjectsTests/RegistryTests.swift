// The living objects of a context: found while they live, gone when they are gone, whatever thread
// lets go of them.

import Foundation
import Testing
import VarveObjects

/// Carries objects to a thread that only lets go of them.
private final class Cargo {
    var items: [Item]
    init(_ items: [Item]) { self.items = items }
}
// The receiver drops it and does nothing else.
extension Cargo: @unchecked Sendable {}

@Suite(.verified) struct RegistryTests {
    @Test func oneReferenceKeepsTheInstance() throws {
        let container = try memory()
        let ids = try makeItems(100, in: container)
        let context = container.newContext()
        var list: [Item] = try context.fetch(Item.all)
        #expect(container.statistics.registeredObjects == 100)
        let kept = list[42]
        list = []
        #expect(container.statistics.registeredObjects == 1)
        #expect(context.registeredObject(with: ids[42]) === kept)
        #expect(context.registeredObject(with: ids[41]) == nil)
        #expect(container.referenceCount(of: ids[41].objectID) == 0)
        let again = try context.fetch(Item.where { $0.number >= 40 && $0.number < 45 })
        #expect(again[2] === kept && again.map(\.id) == Array(ids[40..<45]))
        #expect(context.registeredObjects.count == 5)
        // An ID of another entity's object leads to no item.
        let tag = Tag(in: context)
        #expect(context.registeredObjects.count == 6)
        #expect(context.registeredObject(with: tag.objectID) as? Tag === tag)
        context.rollback()
        #expect(context.registeredObject(with: tag.objectID) == nil)
    }

    @Test func randomListsAgreeWithAModel() throws {
        let seed: UInt64 = 77
        var state = seed
        func below(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
        let container = try memory()
        let ids = try makeItems(700, in: container)
        let context = container.newContext()
        var held: [Int: Item] = [:]
        for round in 0..<400 {
            switch below(4) {
            case 0:
                let low = below(700)
                let high = low + below(80)
                for item in try context.fetch(Item.where { $0.number >= low && $0.number < high }) {
                    if let known = held[item.number] { #expect(known === item) }
                    if below(3) == 0 { held[item.number] = item }
                }
            case 1:
                for number in held.keys.sorted() where below(3) == 0 { held[number] = nil }
            case 2:
                let number = below(700)
                let item = try #require(try context.existingObject(with: ids[number]))
                if let known = held[number] { #expect(known === item) }
                held[number] = item
            default:
                let number = below(700)
                let found = context.registeredObject(with: ids[number])
                #expect(found === held[number], "seed \(seed), round \(round)")
            }
            #expect(
                container.statistics.registeredObjects == held.count,
                "seed \(seed), round \(round)"
            )
        }
        held = [:]
        #expect(container.statistics.registeredObjects == 0)
        #expect(container.statistics.realisedObjects == 0)
    }

    /// Objects whose last reference goes on other threads, while their context looks them up.
    @Test func objectsMayEndOnOtherThreads() async throws {
        let container = try memory(ContainerOptions(unreferencedRowBytes: 4_000))
        let ids = try makeItems(64, in: container)
        let threads = DispatchQueue(label: "droppers", attributes: .concurrent)
        let group = DispatchGroup()
        let context = container.newContext()
        for round in 0..<400 {
            let list = try context.fetch(Item.all.returningFaults(round % 2 == 0))
            let cargo = Cargo(list)
            threads.async(group: group) { cargo.items = [] }
            for id in [ids[round % 64], ids[(round * 7) % 64]] {
                // Either the instance of the list, or a new one; never a dead one.
                let item = try #require(try context.existingObject(with: id))
                #expect(item.id == id && item.title.hasPrefix("item"))
                #expect(context.registeredObject(with: id) === item)
            }
        }
        await withCheckedContinuation { continuation in
            group.notify(queue: threads) { continuation.resume() }
        }
        #expect(container.statistics.registeredObjects == 0)
        #expect(container.statistics.realisedObjects == 0)
        #expect(container.statistics.rowCache.pinnedRows == 0)
    }
}
