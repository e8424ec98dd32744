// Tests of the rows, the sums over them, and the order of a run.

import BenchmarkHarness
import Foundation
import Testing

@Suite struct WorkTests {
    @Test func `a row depends on nothing but its ID and the seed`() {
        let rows = Item.rows(1...50, seed: 42)
        #expect(rows[7] == Item(id: 8, seed: 42))
        #expect(rows[7] != Item(id: 8, seed: 43))
        #expect(rows == Item.rows(1...50, seed: 42))
    }

    @Test func `rows have the size that the goals were set for`() {
        var bytes: [UInt8] = []
        let rows = Item.rows(1...2000, seed: 1)
        for row in rows { PackedRow.append(row, to: &bytes) }
        let mean = Double(bytes.count) / Double(rows.count)
        #expect(mean > 130 && mean < 160)
        let note = rows.reduce(0) { $0 + $1.note.utf8.count } / rows.count
        #expect(note > 88 && note < 100)
        let title = rows.reduce(0) { $0 + $1.title.utf8.count } / rows.count
        #expect(title > 15 && title < 25)
    }

    @Test func `a packed row gives back the item`() {
        for item in Item.rows(1...200, seed: 9) {
            var bytes: [UInt8] = []
            PackedRow.append(item, to: &bytes)
            let (back, packed) = bytes.withUnsafeBytes { raw in
                var fold = RowFold()
                PackedRow(bytes: raw).fold(id: item.id, into: &fold)
                return (PackedRow(bytes: raw).item(id: item.id), fold.value)
            }
            #expect(back == item)
            var fold = RowFold()
            fold.add(item)
            #expect(fold.value == packed)
        }
    }

    @Test func `the sums see every column, and the fold the order of rows`() {
        let rows = Item.rows(1...3, seed: 5)
        func sums(_ rows: [Item]) -> [UInt64] {
            var fold = RowFold()
            var hash = ContentHash()
            for row in rows {
                fold.add(row)
                hash.add(row)
            }
            return [fold.value, hash.value]
        }
        let changes: [(inout Item) -> Void] = [
            { $0.id += 1 }, { $0.timestamp += 1 }, { $0.title += "x" }, { $0.note += "x" },
            { $0.count += 1 }, { $0.flag.toggle() }, { $0.pictureID += 1 },
        ]
        let expected = sums(rows)
        for change in changes {
            var other = rows
            change(&other[1])
            let found = sums(other)
            #expect(found[0] != expected[0])
            #expect(found[1] != expected[1])
        }
        let reversed = sums(rows.reversed())
        #expect(reversed[0] != expected[0])
        #expect(reversed[1] == expected[1])
    }

    @Test func `a row beside a writer counts with all but its ID and its count`() {
        func sum(_ item: Item) -> UInt64 {
            var fold = RowFold()
            fold.touch(
                timestamp: item.timestamp,
                title: item.title,
                note: item.note,
                count: item.count,
                flag: item.flag,
                pictureID: item.pictureID
            )
            return fold.value
        }
        let item = Item(id: 1, seed: 5)
        var other = item
        other.count += 1
        #expect(sum(other) == sum(item))
        other.flag.toggle()
        #expect(sum(other) != sum(item))
    }

    @Test func `a contestant that did other work fails the round`() throws {
        var table = CheckTable()
        try table.add(["e": 1, "c": 2], from: "engine/A")
        try table.add(["e": 1], from: "engine/B")
        #expect(throws: BenchmarkError.self) { try table.add(["c": 3], from: "object/C") }
    }

    @Test func `keys compare as their values do and give back the ID`() {
        let rows = Item.rows(1...300, seed: 3)
        for pair in zip(rows, rows.dropFirst()) {
            func key(_ item: Item) -> [UInt8] {
                var key: [UInt8] = []
                KeyBytes.append(timestamp: item.timestamp, id: item.id, to: &key)
                return key
            }
            let (left, right) = (key(pair.0), key(pair.1))
            left.withUnsafeBytes { left in
                right.withUnsafeBytes { right in
                    let isLess = pair.0.timestamp < pair.1.timestamp
                    #expect((KeyBytes.compare(left, right) < 0) == isLess)
                    #expect(KeyBytes.trailingID(left) == pair.0.id)
                    #expect(KeyBytes.timestamp(left) == pair.0.timestamp)
                }
            }
        }
    }

    @Test func `sorted keys come in order, whole`() {
        let rows = Item.rows(1...200, seed: 4)
        var found: [[UInt8]] = []
        SortedKeys.titles(rows, prefix: [3]).forEach { found.append(Array($0)) }
        #expect(found.count == rows.count)
        #expect(zip(found, found.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
        #expect(found.allSatisfy { $0.first == 3 })
    }

    @Test func `a changed packed row keeps its other columns`() {
        for var item in Item.rows(1...20, seed: 6) {
            var bytes: [UInt8] = []
            PackedRow.append(item, to: &bytes)
            item.count = 4711
            item.timestamp = -2.5
            PackedRow.set(count: item.count, in: &bytes)
            PackedRow.set(timestamp: item.timestamp, in: &bytes)
            let back = bytes.withUnsafeBytes { PackedRow(bytes: $0).item(id: item.id) }
            #expect(back == item)
        }
    }

    @Test func `a title tells the ID of its row`() throws {
        for item in Item.rows(1...50, seed: 8) {
            #expect(try Item.id(ofTitle: item.title) == item.id)
        }
        #expect(throws: BenchmarkError.self) { try Item.id(ofTitle: "no number") }
    }

    @Test func `different IDs are different, and the same for every contestant`() {
        let session = Session(directory: "", scale: .smoke, round: 2, seed: 5)
        let ids = session.differentIDs(count: 100, purpose: 1)
        #expect(Set(ids).count == 100)
        #expect(ids == session.differentIDs(count: 100, purpose: 1))
        #expect(ids != session.differentIDs(count: 100, purpose: 2))
        #expect(session.differentIDs(count: .max, purpose: 1).count == session.scale.rows)
    }

    @Test func `sums of 64 bits survive the way through JSON`() throws {
        var outcome = Outcome()
        outcome.checks = ["a": .max, "b": 1 << 63 | 1]
        let data = try JSONEncoder().encode(outcome)
        #expect(try JSONDecoder().decode(Outcome.self, from: data).checks == outcome.checks)
    }
}
