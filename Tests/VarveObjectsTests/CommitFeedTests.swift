// The feed of commits and the table of what contexts hold: what they say, and what they cost.

import Testing
import VarveBase
import VarveEngine
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct CommitFeedTests {
    private static let entity = EntityID(7)

    private func change(_ ids: [UInt64], isDeletion: Bool = false) -> [ObjectChanges] {
        [
            ObjectChanges(
                entity: Self.entity,
                objects: ObjectIDSet(ids.map { ObjectID($0) }),
                isDeletion: isDeletion
            )
        ]
    }

    private func number(_ value: Int) -> CommitNumber { CommitNumber(UInt64(value)) }

    /// The last word about each object.
    private func lastWords(_ changes: [ObjectChanges]) -> [ObjectID: Bool] {
        var words: [ObjectID: Bool] = [:]
        for change in changes { for id in change.objects { words[id] = change.isDeletion } }
        return words
    }

    @Test func `The last word about each object is the one of a plain list`() {
        for seed in UInt64(1)...10 {
            var random = SeededRandom(seed: seed)
            let feed = CommitFeed(newest: number(0), changesMax: 1 << 20)
            var plain: [[ObjectChanges]] = []
            for commit in 1...4_000 {
                var changes: [ObjectChanges] = []
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let first = UInt64.random(in: 1...60, using: &random)
                    let last = first + UInt64.random(in: 0...3, using: &random)
                    changes += change(Array(first...last), isDeletion: Bool.random(using: &random))
                }
                plain.append(changes)
                feed.append(number(commit), changes, seenByAll: number(0))
                guard commit % 97 == 0 else { continue }
                let after = Int.random(in: 0...commit, using: &random)
                let known = feed.changes(after: number(after), through: number(commit))
                #expect(
                    known.map(lastWords) == lastWords(plain[after...].flatMap(\.self)),
                    "seed \(seed), commit \(commit)"
                )
            }
            #expect(feed.changes(after: number(0), through: number(4_001)) == nil)
            // What stands behind this commit may be the last word about objects before it.
            #expect(feed.changes(after: number(0), through: number(1)) == nil)
        }
    }

    @Test func `A context that lags makes no save dearer and no end of it long`() {
        var costs: [Int] = []
        for count in [4_000, 8_000] {
            let feed = CommitFeed(newest: number(0), changesMax: 1 << 20)
            for commit in 1...count {
                feed.append(number(commit), change([UInt64(commit)]), seenByAll: number(0))
                // The saver moves on, too.
                let own = feed.changes(after: number(commit - 1), through: number(commit))
                #expect(own?.count == 1)
            }
            costs.append(feed.steps)
            #expect(feed.changes(after: number(0), through: number(count))?.count == count)
            // It goes; what it held leaves with the saves that follow.
            var most = 0
            for commit in count + 1...2 * count {
                let before = feed.steps
                feed.append(
                    number(commit),
                    change([UInt64(commit)]),
                    seenByAll: number(commit - 1)
                )
                most = max(most, feed.steps - before)
            }
            #expect(most <= 65)
            #expect(feed.changes(after: number(2 * count - 2), through: number(2 * count)) == nil)
            let last = feed.changes(after: number(2 * count - 1), through: number(2 * count))
            #expect(last?.count == 1)
        }
        #expect(costs[1] <= costs[0] * 9 / 4 + 64, "\(costs)")
        #expect(costs[1] <= 4 * 8_000)
    }

    @Test func `What a merge costs are the objects that changed, not the commits`() {
        for count in [10_000, 20_000] {
            let feed = CommitFeed(newest: number(0), changesMax: 1 << 20)
            for commit in 1...count {
                feed.append(number(commit), change([UInt64(commit % 5)]), seenByAll: number(0))
            }
            let before = feed.steps
            let changes = feed.changes(after: number(0), through: number(count))
            #expect(feed.steps - before <= 1_100)
            #expect(changes.map(lastWords)?.count == 5)
        }
    }

    @Test func `At the end of what is remembered a save costs no more`() {
        var costs: [Int] = []
        for count in [6_000, 12_000] {
            let feed = CommitFeed(newest: number(0), changesMax: 2_000)
            for commit in 1...count {
                feed.append(number(commit), change([UInt64(commit)]), seenByAll: number(0))
            }
            #expect(feed.changes(after: number(0), through: number(count)) == nil)
            #expect(feed.changes(after: number(count - 9), through: number(count))?.count == 9)
            costs.append(feed.steps)
        }
        #expect(costs[1] <= costs[0] * 9 / 4 + 64, "\(costs)")
        #expect(costs[1] <= 4 * 12_000)
    }

    @Test func `Forgetting is for those behind it`() {
        let feed = CommitFeed(newest: number(0), changesMax: 100)
        feed.append(number(1), change([1]), seenByAll: number(0))
        feed.forget(through: number(2))
        feed.append(number(2), change([9]), seenByAll: number(0))
        feed.append(number(3), change([3]), seenByAll: number(0))
        #expect(feed.changes(after: number(1), through: number(3)) == nil)
        #expect(feed.changes(after: number(2), through: number(3))?.count == 1)
        #expect(feed.changes(after: number(3), through: number(3))?.count == 0)
        #expect(feed.newest == number(3))
    }

    @Test func `The oldest commit that is held`() {
        for seed in UInt64(1)...10 {
            var random = SeededRandom(seed: seed)
            let pins = PinTable()
            var held = Array(repeating: HeldCommit(), count: 8)
            var plain: [Int: CommitNumber] = [:]
            #expect(pins.oldest == nil)
            for _ in 0..<500 {
                let holder = Int.random(in: held.indices, using: &random)
                let commit: CommitNumber? =
                    Int.random(in: 0..<4, using: &random) == 0
                    ? nil : number(Int.random(in: 1...9, using: &random))
                pins.set(&held[holder], commit)
                plain[holder] = commit
                #expect(pins.oldest == plain.values.min(), "seed \(seed)")
            }
        }
    }
}
