// Index entries applied in sorted runs, against a set of keys.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Sorted index entries", .verified) struct PendingEntriesTests {
    private static func key(_ random: inout SeededRandom, _ alphabet: UInt8) -> [UInt8] {
        // Shorter than a head, between one and two, longer than both.
        let length = Int.random(in: 1...[14, 28].randomElement(using: &random)!, using: &random)
        return (0..<length).map { _ in UInt8.random(in: 0...alphabet, using: &random) * 36 }
    }

    /// What single puts and removals would have left is there, whatever way the entries came.
    @Test(arguments: [UInt64(31), 32, 33, 34, 35, 36])
    func entriesArriveAsIfOneByOne(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: [256, 1024, 4096].randomElement(using: &random)!,
            root: .empty
        )
        let directory = MemoryDirectory(name: "runs")
        let alphabet = UInt8.random(in: 1...7, using: &random)
        var model: Set<[UInt8]> = []
        var used: [[UInt8]] = []
        for round in 0..<12 {
            var runs: [SortedRun] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                var entries = PendingEntries()
                for _ in 0..<Int.random(in: 0...600, using: &random) {
                    if Bool.random(using: &random) || used.isEmpty {
                        used.append(Self.key(&random, alphabet))
                    }
                    let key = used[Int.random(in: 0..<used.count, using: &random)]
                    let removes = Int.random(in: 0..<10, using: &random) < (round < 8 ? 3 : 8)
                    entries.add(key, removes: removes)
                    if removes { model.remove(key) } else { model.insert(key) }
                }
                entries.sort()
                if Bool.random(using: &random) || !runs.isEmpty {
                    let file = try SortedRun.makeFile(directory, "s", SystemEnvironment())
                    runs.append(try SortedRun.write(entries, to: file, from: 0))
                } else {
                    try editor.apply(entries)
                }
            }
            var merge = try RunMerge(runs)
            while true {
                let chunk = try merge.nextChunk(Int.random(in: 64...8_000, using: &random))
                if chunk.isEmpty { break }
                try editor.apply(chunk)
            }
            #expect(try directory.list() == [])
            #expect(editor.root.rows == UInt64(model.count), "seed \(seed), round \(round)")
            var found: [[UInt8]] = []
            var cursor = TreeCursor(editor.tree)
            var hasEntry = try cursor.first()
            while hasEntry {
                #expect(cursor.position == UInt64(found.count))
                found.append(cursor.key)
                hasEntry = try cursor.next()
            }
            #expect(
                found == model.sorted { $0.lexicographicallyPrecedes($1) },
                "seed \(seed), round \(round)"
            )
        }
    }

    /// Many entries are sorted by digits, few by comparing: both give what a plain sort gives.
    @Test(arguments: 0..<24) func manyEntriesComeInTheOrderOfKeysAndAges(seed: Int) {
        var random = SeededRandom(seed: 400 + UInt64(seed))
        var entries = PendingEntries()
        var model: [(key: [UInt8], age: Int)] = []
        // Heads that are all different, few, or the same; keys shorter than a head, too.
        let heads = [1, 3, 40, 100_000][seed % 4]
        for round in 0..<3 {
            for _ in 0..<Int.random(in: 100...1_500, using: &random) {
                let head = UInt64.random(in: 0..<UInt64(heads), using: &random) << (seed % 3 * 20)
                var key = (0..<8).map { UInt8(head >> (56 - 8 * UInt64($0)) & 0xFF) }
                if seed % 5 == 0 { key = Array(key.suffix(Int.random(in: 1...8, using: &random))) }
                // In order within a head, as those of a relationship, or in any.
                let tail = seed % 2 == 0 ? model.count : Int.random(in: 0...9, using: &random)
                key += [UInt8(tail >> 8 & 0xFF), UInt8(tail & 0xFF)]
                // What follows the 8 bytes behind the head tells some apart.
                if seed >= 12 {
                    let more = Int.random(in: 0...9, using: &random)
                    key += (0..<more).map { _ in UInt8.random(in: 0...2, using: &random) }
                }
                model.append((key, model.count))
                // Every other age puts, the others take out, so that ages can be told apart.
                entries.add(key, removes: model.count % 2 == 0)
            }
            entries.sort()
            model.sort { left, right in
                left.key == right.key
                    ? left.age < right.age : left.key.lexicographicallyPrecedes(right.key)
            }
            let found = (0..<entries.count).map { Array(entries.keyBytes[entries.keyRange($0)]) }
            #expect(found == model.map(\.key), "seed \(seed), round \(round)")
            let removes = (0..<entries.count).map { entries.removes($0) }
            #expect(removes == model.map { $0.age % 2 == 1 }, "seed \(seed), round \(round)")
        }
    }

    /// Keys that are alike in their first 8 bytes, shorter than those, or end in zeros: several
    /// runs give them in order, and of one key the youngest entry last.
    @Test(arguments: [UInt64(51), 52, 53]) func runsOfKeysThatBeginAlike(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory(name: "runs")
        let heads: [[UInt8]] = [
            [], [7], [7, 0], Array(repeating: 7, count: 8), [7, 7, 7, 7, 7, 7, 7, 0],
        ]
        let middles: [[UInt8]] = [
            [], [1], [1, 0], Array(repeating: 0, count: 8), Array(repeating: 9, count: 8),
        ]
        let tails: [[UInt8]] = [[], [0], [3, 1]]
        var model: [(key: [UInt8], removes: Bool)] = []
        var runs: [SortedRun] = []
        for _ in 0..<4 {
            var entries = PendingEntries()
            for _ in 0..<2_000 {
                let key = [heads, middles, tails].flatMap { $0.randomElement(using: &random)! }
                if key.isEmpty { continue }
                let removes = Bool.random(using: &random)
                model.append((key, removes))
                entries.add(key, removes: removes)
            }
            entries.sort()
            let file = try SortedRun.makeFile(directory, "s", SystemEnvironment())
            runs.append(try SortedRun.write(entries, to: file, from: 0))
        }
        var merge = try RunMerge(runs)
        var found: [(key: [UInt8], removes: Bool)] = []
        while true {
            let chunk = try merge.nextChunk(4_000)
            if chunk.isEmpty { break }
            for index in 0..<chunk.count {
                found.append((Array(chunk.keyBytes[chunk.keyRange(index)]), chunk.removes(index)))
            }
        }
        for (before, after) in zip(found, found.dropFirst()) {
            #expect(!after.key.lexicographicallyPrecedes(before.key), "seed \(seed)")
        }
        let youngest = Dictionary(model.map { ($0.key, $0.removes) }) { $1 }
        let last = Dictionary(found.map { ($0.key, $0.removes) }) { $1 }
        #expect(last == youngest, "seed \(seed)")
        #expect(youngest.count > 50)
    }

    @Test("Numbers are sorted digit by digit, and what has one number keeps its order")
    func digits() {
        var random = SeededRandom(seed: 61)
        let most: [UInt64] = [0, 3, 1 << 20, .max]
        for count in [0, 1, 2, 300, 5_000] {
            for bound in most {
                for shift in [UInt64(0), 56] {
                    var elements = (0..<count).map { index in
                        (UInt64.random(in: 0...bound, using: &random) << shift, index)
                    }
                    let wanted = elements.sorted { $0 < $1 }
                    DigitSort.sort(&elements) { $0.0 }
                    #expect(elements.elementsEqual(wanted, by: ==), "\(count) \(bound) \(shift)")
                }
            }
        }
    }

    /// An import of one entity filled a list, and one entry of it came behind that: its memory was
    /// held by nobody's count until the transaction ended.
    @Test("What was kept for more entries ends where few wait")
    func memoryOfFewEnds() {
        var pending = PendingIndexes()
        let (big, other) = (TestDelegate.byInt, TestDelegate.byText)
        func add(_ count: Int, _ tree: TreeID) {
            var keys = EntryKeys()
            for number in 0..<count {
                keys.bytes += [UInt8(number >> 8), UInt8(number & 255)]
                keys.close(tree)
            }
            pending.add(keys, 0..<keys.count, removes: false)
        }
        add(20_000, big)
        let held = pending.heldBytes
        if let used = pending.take(big) { pending.giveBack(used, big, keepsAll: true) }
        #expect(pending.heldBytes == held)
        add(1, big)
        add(1, other)
        pending.endMemory()
        #expect(pending.heldBytes < held / 100)
        #expect(pending.take(big)?.count == 1 && pending.take(other)?.count == 1)
    }

    @Test("The last of several entries with one key counts") func theLastEntryCounts() {
        var entries = PendingEntries()
        for (key, removes) in [([2], false), ([1], false), ([2], true), ([1], true), ([1], false)]
            as [([UInt8], Bool)]
        {
            entries.add(key, removes: removes)
        }
        entries.sort()
        let last = (0..<entries.count).filter { !entries.isSuperseded($0) }
        #expect(last.map { Array(entries.keyBytes[entries.keyRange($0)]) } == [[1], [2]])
        #expect(last.map { entries.removes($0) } == [false, true])
    }

    @Test(
        "A run that changed on its way fails, and traps nowhere",
        arguments: [UInt64(41), 42, 43]
    )
    func aDamagedRunFails(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory(name: "runs")
        for _ in 0..<200 {
            var entries = PendingEntries()
            for _ in 0..<50 {
                entries.add(Self.key(&random, 7), removes: Bool.random(using: &random))
            }
            entries.sort()
            let file = try SortedRun.makeFile(directory, "s", SystemEnvironment())
            let run = try SortedRun.write(entries, to: file, from: 0)
            let place = FileOffset(UInt64.random(in: 0..<run.end, using: &random))
            let byte = try file.read(at: place, count: 1)[0]
            try file.write([byte ^ UInt8.random(in: 1...255, using: &random)], at: place)
            let error = #expect(throws: EngineError.self) {
                var reader = SortedRunReader(run)
                while try reader.advance() {}
            }
            #expect(error?.code == .ioFailed)
        }
    }
}
