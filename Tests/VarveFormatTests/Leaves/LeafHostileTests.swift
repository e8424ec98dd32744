// Damaged leaves: errors, or rows of other bytes; never a trap and never a step outside.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Damaged leaves of layout 1") struct LeafHostileTests {
    struct Sample {
        var rows: LeafRows
        var body: [UInt8]
        var set: SymbolSet?
    }

    /// Leaves with all codings, with and without tables.
    static func samples(_ seed: UInt64, count: Int) -> [Sample] {
        var random = SeededRandom(seed: seed)
        var samples: [Sample] = []
        while samples.count < count {
            let rows = LeafRows.random(
                &random,
                count: random.pick([1, 5, 24, 60]),
                columns: random.pick([1, 4, 9])
            )
            let set = SymbolSet.learned(from: rows)
            let address = SymbolSetAddress(
                first: FileOffset(8192),
                twin: FileOffset(16_384),
                storedLength: 99,
                payloadHash: 5
            )
            guard let body = LeafEncoder.anyBody(of: rows, symbols: set.map { ($0, address) }),
                body.count < 2000
            else { continue }
            samples.append(Sample(rows: rows, body: body, set: set))
        }
        return samples
    }

    /// Loads a leaf and uses all of it, in memory of exactly its size; whether it is sound.
    @discardableResult
    static func use(_ body: [UInt8], count: Int, _ set: SymbolSet?) -> Bool {
        let isSound = unsafe try? LentLeaf.with(body, count: count, set) { leaf in
            let read = unsafe LentLeaf.rows(leaf)
            #expect(zip(read, read.dropFirst()).allSatisfy { $0.object < $1.object })
            for row in read {
                if let bytes = row.bytes { #expect(unsafe bytes.count <= leaf.rowBytesMax) }
            }
            for object in [0, 1, read[read.count / 2].object, .max] {
                let found = unsafe leaf.index(of: object)
                #expect(found.index >= 0 && found.index <= read.count)
                if found.isEqual { #expect(read[found.index].object == object) }
            }
            unsafe ask(leaf, column: body.reduce(0) { $0 &+ Int($1) })
            let isChecked = unsafe (try? leaf.check(place: "leaf")) != nil
            return isChecked && read.allSatisfy { $0.bytes != nil }
        }
        return isSound ?? false
    }

    /// Filters, numbers and rows of one column.
    private static func ask(_ leaf: PackedLeaf, column number: Int) {
        let column = unsafe number % (leaf.columnCount + 1)
        let id = ColumnID(UInt16(column))
        let values: [ColumnCondition.Values] = [
            .any(true), .bool(true), .integers(-5...70), .doubles(0...(.max)), .dates(0...(.max)),
            .reference(ObjectID(7)), .texts { $0.count % 2 == 0 },
        ]
        var numbers = [Int64](repeating: 0, count: 64)
        var copy = unsafe leaf
        let reader = PackedRowReader(RowColumns([id]))
        unsafe withUnsafePointer(to: &copy) { leaf in
            unsafe reader.begin(leaf)
            for first in stride(from: 0, to: unsafe leaf.pointee.count, by: 64) {
                let rows = min(64, unsafe leaf.pointee.count - first)
                let all = UInt64.max >> UInt64(64 - rows)
                for value in values {
                    let condition = ColumnCondition(
                        id,
                        value,
                        isNegated: number % 3 == 0,
                        passesNull: true,
                        passesAbsent: false
                    )
                    let answer = unsafe leaf.pointee.answer(
                        .column(condition),
                        from: first,
                        rows: rows,
                        among: all
                    )
                    #expect(answer.passes & ~answer.mayPass == 0 && answer.mayPass & ~all == 0)
                }
                let found = unsafe numbers.withUnsafeMutableBufferPointer { room in
                    unsafe room.baseAddress.flatMap { start in
                        unsafe leaf.pointee.numbers(column, from: first, among: all, into: start)
                    }
                }
                if let found { #expect(found.count + found.nulls == rows) }
                for row in first..<first + rows { _ = unsafe reader.row(row, of: leaf) }
            }
        }
    }

    @Test("Each byte of a leaf may be any other") func flippedBytesNeverTrap() {
        let seed: UInt64 = 31
        var random = SeededRandom(seed: seed)
        for sample in Self.samples(seed, count: 4) {
            #expect(Self.use(sample.body, count: sample.rows.count, sample.set))
            for index in sample.body.indices {
                var body = sample.body
                body[index] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
                Self.use(body, count: sample.rows.count, sample.set)
                if index < 300 {
                    body[index] = random.pick([0, 0x7F, 0x80, 0xFF])
                    Self.use(body, count: sample.rows.count, sample.set)
                }
            }
        }
    }

    @Test("A leaf may end anywhere, and have any number of rows") func truncatedLeavesNeverTrap() {
        for sample in Self.samples(32, count: 4) {
            for length in 0..<sample.body.count where length < 400 || length % 3 == 0 {
                Self.use(Array(sample.body[..<length]), count: sample.rows.count, sample.set)
            }
            for count in [-1, 0, 1, 2, sample.rows.count - 1, sample.rows.count + 1, 500, 65_535] {
                Self.use(sample.body, count: count, sample.set)
            }
            // Without its set, and with one that has fewer tables.
            Self.use(sample.body, count: sample.rows.count, nil)
            Self.use(
                sample.body,
                count: sample.rows.count,
                SymbolSet(columns: [0], tables: [SymbolTable(symbols: [])])
            )
        }
    }

    @Test("Behind a sound front there may be anything") func randomBytesNeverTrap() {
        let seed: UInt64 = 33
        var random = SeededRandom(seed: seed)
        for sample in Self.samples(seed, count: 40) {
            for _ in 0..<15 {
                var body = sample.body
                let first = random.pick([0, 16, 56, 56, 80, 200, body.count / 2])
                for index in min(first, body.count)..<body.count {
                    if random.pick([true, false]) {
                        body[index] = UInt8.random(in: 0...255, using: &random)
                    }
                }
                Self.use(body, count: sample.rows.count, sample.set)
            }
        }
    }

    @Test("Many bytes at once may be wrong") func severalFlipsNeverTrap() {
        let seed: UInt64 = 34
        var random = SeededRandom(seed: seed)
        for sample in Self.samples(seed, count: 40) {
            for _ in 0..<40 {
                var body = sample.body
                for _ in 0..<random.pick([2, 3, 8]) {
                    let index = random.pick([random.pick([56, 120, body.count]), body.count])
                    body[Int.random(in: 0..<index, using: &random) % body.count] =
                        UInt8.random(in: 0...255, using: &random)
                }
                Self.use(body, count: sample.rows.count, sample.set)
            }
        }
    }

    @Test("Sums that are wrong are found") func wrongSumsAreFound() {
        for sample in Self.samples(35, count: 20) {
            for place in [8, 12] {
                var body = sample.body
                body[place] &+= 1
                #expect(!Self.use(body, count: sample.rows.count, sample.set))
            }
        }
    }

    @Test("The address of a set must be one of two frames") func addressesAreChecked() throws {
        let address = SymbolSetAddress(
            first: FileOffset(8192),
            twin: FileOffset(16_384),
            storedLength: 99,
            payloadHash: 5
        )
        var writer = ByteWriter()
        writer.zeros(24)
        for word in [8192, 16_384, 5, 99] as [UInt64] { writer.u64(word) }
        let good = writer.bytes
        func read(_ bytes: [UInt8]) throws -> SymbolSetAddress? {
            try unsafe bytes.withUnsafeBytes { unsafe try PackedLeaf.symbolSet(of: $0) }
        }
        #expect(try read(good) == address)
        #expect(try read([UInt8](repeating: 0, count: 56)) == nil)
        #expect(throws: FormatError.self) { try read(Array(good[..<55])) }
        // Below the log, not aligned, the same twice, no length, bits behind it, beyond all files.
        for (place, value) in [
            (24, 0), (24, 4096), (24, 8196), (24, 16_384), (32, 8192), (32, UInt64.max - 7),
            (48, 0), (48, 99 | 1 << 32),
        ] as [(Int, UInt64)] {
            var writer = ByteWriter(appendingTo: good)
            writer.patch(value, at: place)
            let bytes = writer.bytes
            #expect(throws: FormatError.self) { try read(bytes) }
        }
    }
}
