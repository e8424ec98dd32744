// What many commits changed together, against a merge of one object at a time.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveEngine

@Suite("Merged changes", .verified) struct ChangeMergeTests {
    /// Commits as they may follow each other: what is deleted was there, what is inserted was not.
    @Test("Sets and single objects give the same", arguments: UInt64(1)...3)
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let entity = EntityID(3)
        let all = 3 * ChangeMerge.fewMax
        var isThere = [Bool](repeating: false, count: all)
        for object in 0..<all where object % 3 == 0 { isThere[object] = true }
        let atFirst = isThere
        var isTouched = [Bool](repeating: false, count: all)
        var merge = ChangeMerge()
        for _ in 0..<30 {
            // Few objects, or more than are kept one by one.
            let isLarge = Int.random(in: 0..<3, using: &random) == 0
            let count = isLarge ? 2 * ChangeMerge.fewMax : 3_000
            let start = Int.random(in: 0..<(all - count), using: &random)
            var kinds: [RowChangeKind: [ObjectID]] = [:]
            for object in start..<(start + count) where Bool.random(using: &random) {
                let kind: RowChangeKind =
                    isThere[object]
                    ? (Bool.random(using: &random) ? .updated : .deleted)
                    : .inserted
                kinds[kind, default: []].append(ObjectID(UInt64(object)))
                isThere[object] = kind != .deleted
                isTouched[object] = true
            }
            for kind in [RowChangeKind.inserted, .updated, .deleted] {
                guard let objects = kinds[kind] else { continue }
                merge.add(
                    ChangedObjects(entity: entity, kind: kind, objects: ObjectIDSet(objects))
                )
            }
        }
        var expected: [RowChangeKind: [ObjectID]] = [:]
        for object in 0..<all where isTouched[object] {
            let kind: RowChangeKind
            switch (atFirst[object], isThere[object]) {
            case (false, false): continue
            case (false, true): kind = .inserted
            case (true, true): kind = .updated
            case (true, false): kind = .deleted
            }
            expected[kind, default: []].append(ObjectID(UInt64(object)))
        }
        let lists = merge.lists
        #expect(lists.map(\.kind) == [.inserted, .updated, .deleted])
        for list in lists {
            #expect(Array(list.objects) == expected[list.kind], "seed \(seed), \(list.kind)")
        }
    }
}
