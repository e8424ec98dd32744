// Sets of objects against `Set`, at the borders of runs and of the numbers.

import Testing
import VarveBase
import VarveTesting

@Suite("Object ID sets") struct ObjectIDSetTests {
    /// Some objects; dense, so that runs grow together, and now and then at the end of all numbers.
    private static func objects(_ random: inout SeededRandom) -> [ObjectID] {
        let base = Int.random(in: 0..<4, using: &random) == 0 ? UInt64.max - 60 : 0
        let count = Int.random(in: 0...60, using: &random)
        return (0..<count).map { _ in
            ObjectID(base + UInt64.random(in: 0...60, using: &random))
        }
    }

    private static func check(_ set: ObjectIDSet, is model: Set<ObjectID>) {
        #expect(Array(set) == model.sorted())
        #expect(set.count == model.count && set.isEmpty == model.isEmpty)
        for (run, next) in zip(set.runs, set.runs.dropFirst()) {
            #expect(run.first <= run.last && run.last + 1 < next.first)
        }
    }

    @Test("They do what sets do", arguments: UInt64(1)...4)
    func operations(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<400 {
            let (left, right) = (Self.objects(&random), Self.objects(&random))
            let (one, other) = (Set(left), Set(right))
            let (first, second) = (ObjectIDSet(left), ObjectIDSet(right))
            Self.check(first, is: one)
            Self.check(first.union(second), is: one.union(other))
            Self.check(first.intersection(second), is: one.intersection(other))
            Self.check(first.subtracting(second), is: one.subtracting(other))
            for object in left + right {
                #expect(first.contains(object) == one.contains(object), "seed \(seed)")
            }
            // One form only.
            #expect((first == second) == (one == other))
            #expect(ObjectIDSet(left.shuffled(using: &random)) == first)
        }
    }

    @Test("Many objects in any order, most of them more than once")
    func collecting() {
        var random = SeededRandom(seed: 7)
        var model: Set<ObjectID> = []
        var collector = ObjectIDCollector()
        #expect(collector.isEmpty)
        for _ in 1...3 {
            for _ in 0..<30_000 {
                let object = ObjectID(UInt64.random(in: 1...40_000, using: &random))
                model.insert(object)
                collector.add(object)
            }
            #expect(!collector.isEmpty)
            Self.check(collector.finish(), is: model)
        }
        for object in 1...40_000 { collector.add(ObjectID(UInt64(object))) }
        #expect(collector.finish().runs == ObjectIDSet([ObjectID(1)]).union(all(2...40_000)).runs)
        #expect(collector.finish().runs.count == 1)
    }

    private func all(_ numbers: ClosedRange<UInt64>) -> ObjectIDSet {
        var set = ObjectIDSet()
        set.append(numbers.lowerBound, through: numbers.upperBound)
        return set
    }

    @Test("The first and the last of all numbers")
    func numbers() {
        var set = all(0...0)
        set.append(.max, through: .max)
        #expect(set.runs.count == 2 && set.count == 2)
        #expect(set.contains(ObjectID(0)) && set.contains(ObjectID(.max)))
        #expect(!set.contains(ObjectID(1)))
        #expect(Array(set.subtracting(ObjectIDSet([ObjectID(.max)]))) == [ObjectID(0)])
        #expect(ObjectIDSet().union(set) == set && set.intersection(ObjectIDSet()).isEmpty)
    }
}
