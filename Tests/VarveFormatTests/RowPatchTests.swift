// Patches: against a model that keeps rows as values.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@Suite struct RowPatchTests {
    @Test func applyingAPatchChangesItsColumnsAndNoOther() throws {
        let seed: UInt64 = 200
        var random = SeededRandom(seed: seed)
        for round in 0..<2000 {
            let old = random.row()
            var model = old
            var changes: [(column: ColumnID, value: StoredValue?)] = []
            for column in Set((0..<4).map { _ in Int.random(in: 0..<24, using: &random) }) {
                let value = Int.random(in: 0..<5, using: &random) == 0 ? nil : random.value()
                while model.count <= column { model.append(nil) }
                model[column] = value
                changes.append((ColumnID(UInt16(column)), value))
            }
            let bytes = RowPatch.encode(changes)
            let patch = try RowPatch(bytes)
            #expect(patch.columns == changes.map(\.column).sorted())
            let row = RowCoding.encode(old)
            let expected = RowCoding.encode(model)
            #expect(try patch.applied(to: row) == expected, "seed \(seed), round \(round)")
            #expect(try RowPatch.apply(bytes, to: expected) == expected)
        }
    }

    @Test func aDifferenceLeadsFromOneRowToTheOther() throws {
        let seed: UInt64 = 201
        var random = SeededRandom(seed: seed)
        for round in 0..<2000 {
            let old = random.row(columns: 0...10)
            var new = random.row(columns: 0...10)
            for index in new.indices where index < old.count && Bool.random(using: &random) {
                new[index] = old[index]
            }
            let from = RowCoding.encode(old)
            let to = RowCoding.encode(new)
            if let patch = try RowPatch.difference(from: from, to: to) {
                #expect(try RowPatch.apply(patch, to: from) == to, "seed \(seed), round \(round)")
                #expect(from != to)
            } else {
                #expect(from == to, "seed \(seed), round \(round)")
            }
            #expect(try RowPatch.difference(from: from, to: from) == nil)
        }
    }

    @Test func theBytesAreThoseOfTheDocument() {
        #expect(RowPatch.encode([]) == [0])
        #expect(
            RowPatch.encode([
                (ColumnID(9), .bool(true)), (ColumnID(0), .int(-2)), (ColumnID(2), nil),
            ])
                == [10, 0b101, 0b10, 6, 0, 3, 0xFE]
        )
    }

    @Test func largeValuesOfAPatchMoveOut() throws {
        let large = [UInt8](repeating: 7, count: 5000)
        let patch = RowPatch.encode([(ColumnID(3), .data(large)), (ColumnID(1), .int(4))])
        let (moved, values) = try RowPatch(patch).movingOutside(above: 2048)
        #expect(
            values == [MovedValue(column: ColumnID(3), isText: false, bytes: large)]
        )
        let row = try RowPatch.apply(moved, to: RowCoding.encode([.bool(false)]))
        let whole = try RowPatch.apply(patch, to: RowCoding.encode([.bool(false)]))
        #expect(try RowCoding.movingInside(row, values) == whole)
        #expect(try RowCoding.movingOutside(whole, above: 2048).row == row)
    }

    /// Columns that other patches change save a list, whatever they are.
    @Test func aPatchInsideOtherBytesSaysTheSame() throws {
        let columns = [0, 3, 7, 8, 40].map { ColumnID($0) }
        for count in 0...columns.count {
            let patch = RowPatch.encode(columns[..<count].map { ($0, .int(Int64($0.rawValue))) })
            let around = [9, 9, 9] + patch + [9]
            let range = 3..<3 + patch.count
            let old = RowCoding.encode([.text("a"), .int(1)])
            let wanted = try RowPatch(patch).applied(to: old)
            for others in [
                [], columns, Array(columns[..<count]), Array(columns.dropFirst()),
                [ColumnID(0), ColumnID(3), ColumnID(6)], [ColumnID(0)],
            ] {
                let inside = try RowPatch(around, range, like: others)
                #expect(inside.columns == Array(columns[..<count]))
                #expect(try inside.applied(to: old) == wanted)
                #expect(try inside.movingOutside(above: 256).patch == patch)
            }
        }
    }

    @Test func malformedPatchesAreErrors() {
        let bad: [[UInt8]] = [
            [], [1], [1, 1], [1, 2, 1], [3, 0b1000, 1], [1, 1, 21], [1, 1, 6], [1, 0, 0],
            [9, 1, 1], [0x81, 0x08] + [UInt8](repeating: 0, count: 129), [0, 0],
        ]
        for bytes in bad {
            #expect(throws: FormatError.self, "\(bytes)") { _ = try RowPatch(bytes) }
        }
    }

    @Test func randomBytesNeverTrap() {
        let seed: UInt64 = 202
        var random = SeededRandom(seed: seed)
        let row = RowCoding.encode([.int(5), .text("abc"), nil, .bool(true)])
        var applied = 0
        for _ in 0..<20_000 {
            var bytes = random.bytes(Int.random(in: 0..<30, using: &random))
            if Bool.random(using: &random) {
                bytes = RowPatch.encode([
                    (ColumnID(1), random.value()), (ColumnID(5), random.value()),
                ])
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] ^= 1 << random.pick([0, 1, 2, 3, 7])
            }
            guard let patch = try? RowPatch(bytes), let new = try? patch.applied(to: row) else {
                continue
            }
            applied += 1
            #expect(throws: Never.self, "seed \(seed)") { try RowView(new) }
        }
        #expect(applied > 1000, "seed \(seed)")
    }
}
