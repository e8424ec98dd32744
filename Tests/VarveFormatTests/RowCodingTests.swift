// Rows: round trips, exact bytes, single readers, values outside, hostile bytes.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@Suite struct RowCodingTests {
    @Test func anyRowRoundTrips() throws {
        let seed: UInt64 = 100
        var random = SeededRandom(seed: seed)
        for round in 0..<3000 {
            let values = random.row()
            let bytes = RowCoding.encode(values)
            let view = try RowView(bytes)
            try view.validate()
            for index in 0..<values.count + 3 {
                let expected = index < values.count ? values[index] : nil
                let found = try view.value(ColumnID(UInt16(index)))
                #expect(same(found, expected), "seed \(seed), round \(round), column \(index)")
            }
            let used = values.lastIndex { $0 != nil }.map { $0 + 1 } ?? 0
            #expect(view.columnCount == used)
            // The same row in the middle of other bytes.
            let inside = try RowView([9, 9] + bytes + [9], range: 2..<bytes.count + 2)
            #expect(try inside.decodeAll().count == used)
            #expect(try RowCoding.encode(view.decodeAll().map(Self.value)) == bytes)
        }
    }

    @Test func anEncoderGivesTheSameBytesInAnyOrder() throws {
        let seed: UInt64 = 110
        var random = SeededRandom(seed: seed)
        var encoder = RowEncoder()
        for round in 0..<2000 {
            let values = random.row(columns: 0...40)
            encoder.begin(columns: values.count)
            // Some columns get another value first; the last one counts.
            for column in values.indices.shuffled(using: &random) {
                if Int.random(in: 0..<8, using: &random) == 0 {
                    encoder.set(column, random.value())
                    encoder.setAbsent(column)
                }
                if let value = values[column] { encoder.set(column, value) }
                let found = try encoder.value(column)
                #expect(same(found, values[column]))
            }
            var row: [UInt8] = [7]
            encoder.encode(into: &row)
            let expected = RowCoding.encode(values)
            #expect(row == [7] + expected, "seed \(seed), round \(round)")
            var lent: [UInt8] = []
            let facts = encoder.withRow { bytes, facts in
                lent = ByteReader.copy(bytes, 0..<bytes.count)
                return facts
            }
            #expect(lent == expected)
            let largest = values.reduce(0) { largest, value in
                switch value {
                case .text(let text): max(largest, text.utf8.count)
                case .data(let data): max(largest, data.count)
                default: largest
                }
            }
            #expect(facts.largestBody >= largest)
            let view = try RowView(expected)
            let hasBlobs = values.contains { if case .blob = $0 { true } else { false } }
            #expect(view.holdsContentElsewhere == hasBlobs)
            #expect(facts.hasBlobs || !hasBlobs)
        }
    }

    @Test func aRowIsReadInPlaceWhereItLies() throws {
        let seed: UInt64 = 111
        var random = SeededRandom(seed: seed)
        for round in 0..<500 {
            let values = random.row()
            let row = RowCoding.encode(values)
            let page = random.bytes(13) + row + random.bytes(5)
            let lent = page.span.extracting(13..<13 + row.count)
            let layout = try RowLayout(lent)
            var seen = 0
            try layout.forEachSlot(in: lent) { column, slot throws(FormatError) in
                #expect(column == seen)
                seen += 1
                let value = try slot.value(in: lent)
                #expect(same(value, values[column]), "seed \(seed), \(round)")
                let found = layout.slot(at: column, in: lent)
                #expect(found.tag == slot.tag && found.offset == slot.offset)
            }
            #expect(seen == layout.columnCount)
        }
    }

    @Test func theBytesAreThoseOfTheDocument() {
        #expect(RowCoding.encode([]) == [0])
        #expect(RowCoding.encode([nil, nil]) == [0])
        #expect(
            RowCoding.encode([.null, .bool(true), nil, .int(-2), .text("hé")])
                == [5, 1, 3, 0, 6, 38, 0xFE, 0x68, 0xC3, 0xA9]
        )
        #expect(
            RowCoding.encode([.int(0), .int(1), .int(300), .data([7])])
                == [4, 4, 5, 7, 35, 0x2C, 0x01, 7]
        )
        #expect(
            RowCoding.encode([.reference(ObjectID(5)), .double(1)])
                == [2, 16, 11, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]
        )
        let decimal = DecimalValue(isNegative: true, exponent: -2, digits: [1, 2, 5])
        #expect(
            RowCoding.encode([.decimal(decimal)])
                == [1, 14, 1, 0xFE, 0xFF, 125, 0, 0, 0, 0, 0, 0, 0]
        )
    }

    @Test func singleReadersReadTheirKindAndRefuseOthers() throws {
        let id = UUIDValue(high: 1, low: 2)
        let blob = BlobReference(digest: BlobDigest(1, 2, 3, 4), length: 9)
        let values: [StoredValue] = [
            .bool(true), .int(70_000), .float(2.5), .double(-0.25), .date(12), .text("Zürich"),
            .data([1, 0]), .uuid(id), .reference(ObjectID(1 << 40)), .blob(blob), .null,
        ]
        let view = try RowView(RowCoding.encode(values))
        #expect(try view.bool(view.slot(at: 0)))
        #expect(try view.int(view.slot(at: 1)) == 70_000)
        #expect(try view.float(view.slot(at: 2)) == 2.5)
        #expect(try view.double(view.slot(at: 3)) == -0.25)
        #expect(try view.date(view.slot(at: 4)) == 12)
        #expect(try view.text(view.slot(at: 5)) == "Zürich")
        #expect(try view.data(view.slot(at: 6)) == [1, 0])
        #expect(try view.uuid(view.slot(at: 7)) == id)
        #expect(try view.reference(view.slot(at: 8)) == ObjectID(1 << 40))
        #expect(try view.blob(view.slot(at: 9)) == blob)
        #expect(view.slot(at: 10).isNull)
        #expect(view.slot(at: 11).isAbsent)
        #expect(view.slot(ColumnID(.max)).isAbsent)
        for index in 0..<12 {
            let slot = view.slot(at: index)
            if index != 0 { #expect(throws: FormatError.self) { try view.bool(slot) } }
            if index != 1 { #expect(throws: FormatError.self) { try view.int(slot) } }
            if index != 2 { #expect(throws: FormatError.self) { try view.float(slot) } }
            if index != 3 { #expect(throws: FormatError.self) { try view.double(slot) } }
            if index != 4 { #expect(throws: FormatError.self) { try view.date(slot) } }
            if index != 5 { #expect(throws: FormatError.self) { try view.text(slot) } }
            if index != 6 { #expect(throws: FormatError.self) { try view.data(slot) } }
            if index != 7 { #expect(throws: FormatError.self) { try view.uuid(slot) } }
            if index != 8 { #expect(throws: FormatError.self) { try view.reference(slot) } }
            if index != 9 { #expect(throws: FormatError.self) { try view.blob(slot) } }
            #expect(throws: FormatError.self) { try view.decimal(slot) }
            #expect(throws: FormatError.self) { try view.outside(slot) }
        }
        #expect(try RowCoding.blobReferences(in: view.bytes) == [blob])
    }

    @Test func largeValuesMoveOutAndBackIn() throws {
        let seed: UInt64 = 101
        var random = SeededRandom(seed: seed)
        for round in 0..<500 {
            var values = random.row(columns: 1...8)
            let large = Int.random(in: 0..<values.count, using: &random)
            let count = Int.random(in: 257...3000, using: &random)
            values[large] =
                Bool.random(using: &random)
                ? .data(random.bytes(count)) : .text(String(repeating: "é", count: count))
            let bytes = RowCoding.encode(values)
            let limit = random.pick([256, 512, 2048])
            let (row, moved) = try RowCoding.movingOutside(bytes, above: limit)
            #expect(try RowCoding.outsideColumns(in: row) == moved.map(\.column))
            let view = try RowView(row)
            for value in moved {
                #expect(value.bytes.count > limit)
                let expected = OutsideValue(
                    isText: value.isText,
                    length: UInt64(value.bytes.count),
                    prefix: Array(value.bytes[..<256])
                )
                #expect(try view.content(value.column) == .outside(expected))
                #expect(throws: FormatError.self) { try view.value(value.column) }
            }
            #expect(
                try RowCoding.movingInside(row, moved) == bytes,
                "seed \(seed), round \(round)"
            )
            if let first = moved.first {
                var wrong = first
                wrong.bytes.append(0)
                #expect(throws: FormatError.self) { try RowCoding.movingInside(row, [wrong]) }
                wrong = first
                wrong.column = ColumnID(900)
                #expect(throws: FormatError.self) { try RowCoding.movingInside(row, [wrong]) }
            }
        }
    }

    /// Texts and data around the lengths at which their tags grow by a byte.
    @Test func columnsBehindLongTextsAreFound() throws {
        let seed: UInt64 = 112
        var random = SeededRandom(seed: seed)
        let lengths = [0, 1, 46, 47, 48, 49, 500, 8_174, 8_175, 8_176, 8_177, 100_000]
        for round in 0..<200 {
            let values = (0..<Int.random(in: 1...9, using: &random)).map { index -> StoredValue? in
                let length = random.pick(lengths)
                return switch random.next() % 4 {
                case 0: .text(String(repeating: "a", count: length))
                case 1: .data([UInt8](repeating: 7, count: length))
                case 2: .int(Int64(index))
                default: index % 2 == 0 ? .null : nil
                }
            }
            let row = RowCoding.encode(values)
            let layout = try RowLayout(row.span)
            var offset = row.count
            try layout.forEachSlot(in: row.span) { column, slot throws(FormatError) in
                let found = layout.slot(at: column, in: row.span)
                #expect(found.tag == slot.tag && found.offset == slot.offset)
                let value = try found.value(in: row.span)
                #expect(same(value, values[column]), "seed \(seed), round \(round), \(column)")
                offset = found.body.upperBound
            }
            // The last body ends with the row.
            #expect(offset == row.count)
            let shorter = Array(row.dropLast())
            #expect(throws: FormatError.self) { try RowLayout(shorter.span) }
            let longer = row + [0]
            #expect(throws: FormatError.self) { try RowLayout(longer.span) }
        }
    }

    @Test func malformedRowsAreErrors() {
        let bad: [[UInt8]] = [
            [], [1], [1, 21], [1, 31], [1, 6], [1, 6, 1, 2], [0, 0], [2, 1], [1, 34],
            [0x80, 0], [0x81, 0x80, 0], [1, 0x85, 0], [1, 0xA0, 0], [1, 0x80], [1, 0x80, 1],
            [1, 0x80, 0x80, 0], [1, 0x82, 0x80, 0, 7], [2, 0xFE, 0x7F, 0xFE, 0x7F, 1, 2],
            [1, 9, 1, 2, 3, 4, 5, 6, 7],
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            [1, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            [2] + [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
                + [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            [0x81, 0x08] + [UInt8](repeating: 1, count: 1025),
        ]
        for bytes in bad {
            #expect(throws: FormatError.self, "\(bytes)") { try RowView(bytes) }
        }
    }

    @Test func wellFormedRowsWithBadValuesFailOnlyWhereTheyAreBad() throws {
        let badText = try RowView([2, 34, 5, 0xFF])
        #expect(throws: FormatError.self) { try badText.validate() }
        #expect(throws: FormatError.self) { try badText.value(ColumnID(0)) }
        #expect(try badText.value(ColumnID(1)) == .int(1))
        // 10 ends in a zero digit; the sign byte is 0 or 1; zero has neither sign nor exponent.
        for body: [UInt8] in [
            [0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            #expect(throws: FormatError.self) { try RowView([1, 14] + body).validate() }
        }
        let short = [1, 19, 255, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0x61, count: 256)
        #expect(throws: FormatError.self) { try RowView(short).validate() }
        // All 128 bits: the most digits that there are, 39, and a number that ends in a zero.
        let wide = [1, 15, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 16)
        #expect(try RowView(wide).decimal(RowView(wide).slot(ColumnID(0))).digits.count == 39)
        let zeroes = [1, 15, 0, 0, 0, 0xFA] + [UInt8](repeating: 0xFF, count: 15)
        #expect(throws: FormatError.self) { try RowView(zeroes).validate() }
    }

    @Test func randomBytesNeverTrap() {
        let seed: UInt64 = 102
        var random = SeededRandom(seed: seed)
        for _ in 0..<20_000 {
            var bytes: [UInt8]
            if Bool.random(using: &random) {
                bytes = RowCoding.encode(random.row(columns: 0...6))
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0:
                        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                            1 << random.pick([0, 1, 2, 3, 4, 5, 6, 7])
                    case 1: if bytes.count > 1 { bytes.removeLast() }
                    default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: 0)
                    }
                }
            } else {
                bytes = random.bytes(Int.random(in: 0..<40, using: &random))
                if !bytes.isEmpty { bytes[0] = random.pick([0, 1, 2, 3, 4, 9]) }
            }
            guard let view = try? RowView(bytes) else { continue }
            for column in 0..<view.columnCount + 1 {
                let slot = view.slot(at: column)
                _ = try? view.content(slot)
                var key: [UInt8] = []
                try? KeyCoding.append(view.bytes.span, slot, to: &key)
            }
            _ = try? RowCoding.movingOutside(bytes, above: 256)
            _ = try? RowCoding.blobReferences(in: bytes)
        }
    }

    /// The walk has a table of its own.
    @Test func aTagOfOneByteTakesWhatTheRuleSays() throws {
        for tag in UInt8(0)..<128 {
            let size = RowTag.bodySize(UInt64(tag))
            // Between two others, so that a wrong size cannot be made good by the row's end.
            func row(_ bodyCount: Int) -> [UInt8] {
                [3, UInt8(RowTag.int8), tag, UInt8(RowTag.int16)]
                    + [UInt8](repeating: 7, count: 1 + bodyCount + 2)
            }
            guard size >= 0 else {
                for count in [0, 1, 0x3FFF] {
                    #expect(throws: FormatError.self) { try RowLayout(row(count).span) }
                }
                continue
            }
            let bytes = row(size)
            let layout = try RowLayout(bytes.span)
            #expect(layout.slot(at: 2, in: bytes.span).offset == 4 + 1 + size)
            let isElsewhere = UInt64(tag) == RowTag.blob || RowTag.isOutside(UInt64(tag))
            #expect(layout.holdsContentElsewhere == isElsewhere, "tag \(tag)")
            #expect(throws: FormatError.self) { try RowLayout(row(size + 1).span) }
            if size > 0 {
                #expect(throws: FormatError.self) { try RowLayout(row(size - 1).span) }
            }
        }
    }

    private static func value(_ content: RowContent) -> StoredValue? {
        if case .value(let value) = content { value } else { nil }
    }
}
