// The targets of single decoders: rows, pages, records, schemas, blocks, keys.
//
// - Any bytes give a value or an error.
// - What was read and written again reads as the same, and writes the same bytes.

import VarveTesting

enum CodingTargets {
    /// The first byte chooses the decoder.
    static func record(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let choice = reader.byte() % 14
        let bytes = reader.rest()
        do throws(FormatError) {
            switch choice {
            case 0, 1: try row(bytes)
            case 2: try patch(bytes)
            case 3, 4: try schema(bytes)
            case 5: try block(bytes)
            case 6: _ = try CommitRecord.decode(bytes, offset: FileOffset(1 << 40))
            case 7: try page(bytes)
            case 8:
                var roots = ByteReader(bytes)
                _ = try TreeRoots.decode(&roots, offset: FileOffset(1 << 40))
                _ = try ChangedObjects.decode(&roots, limit: 1 << 16)
            case 9:
                var operations = ByteReader(bytes)
                _ = try DeltaOps.decodePlaces(&operations, below: FileOffset(1 << 40))
                for _ in 0..<(try operations.varint("count")) {
                    _ = try DeltaOps.decodeOperation(&operations)
                }
            case 10: try counters(bytes)
            case 11: try frame(bytes)
            case 12:
                _ = try KnownValue(key: Array(bytes.prefix(12)), value: Array(bytes.dropFirst(12)))
            default:
                _ = try KnownBlob(key: Array(bytes.prefix(32)), value: Array(bytes.dropFirst(32)))
            }
        } catch {
            if error.place == "violation" { throw Violation("\(error)") }
        }
    }

    /// A broken promise, through functions that throw the format's error.
    private static func violation(_ what: String) -> FormatError {
        FormatError(place: "violation", field: what, found: "other bytes", expected: "the same")
    }

    private static func row(_ bytes: [UInt8]) throws(FormatError) {
        let view = try RowView(bytes)
        for column in 0..<UInt16(min(view.columnCount + 2, 1100)) {
            _ = view.slot(ColumnID(column))
        }
        _ = try RowCoding.outsideColumns(in: bytes)
        _ = try RowCoding.blobReferences(in: bytes)
        let contents = try view.decodeAll()
        var values: [StoredValue?] = []
        for content in contents {
            switch content {
            case .value(let value): values.append(value)
            case .absent: values.append(nil)
            default: return
            }
        }
        let again = RowCoding.encode(values)
        let second = try RowView(again).decodeAll()
        var columns: [StoredValue?] = []
        for content in second {
            if case .value(let value) = content {
                columns.append(value)
            } else {
                columns.append(nil)
            }
        }
        guard RowCoding.encode(columns) == again else { throw violation("row") }
        let (kept, moved) = try RowCoding.movingOutside(again, above: 256)
        guard try RowCoding.movingInside(kept, moved) == again else { throw violation("moved row") }
        if let difference = try RowPatch.difference(from: again, to: bytes) {
            let applied = try RowPatch(difference).applied(to: again)
            guard try RowPatch.difference(from: applied, to: bytes) == nil else {
                throw violation("patched row")
            }
        }
    }

    private static func patch(_ bytes: [UInt8]) throws(FormatError) {
        let cut = Int(bytes.first ?? 0)
        let patch = try RowPatch(Array(bytes.dropFirst(1 + cut)))
        let row = Array(bytes.dropFirst(1).prefix(cut))
        let applied = try patch.applied(to: row)
        guard try patch.applied(to: applied) == applied else { throw violation("patch, twice") }
    }

    private static func schema(_ bytes: [UInt8]) throws(FormatError) {
        let record = try SchemaRecord(decoding: bytes)
        let again = record.encoded()
        guard try SchemaRecord(decoding: again).encoded() == again else {
            throw violation("schema")
        }
    }

    private static func block(_ bytes: [UInt8]) throws(FormatError) {
        guard bytes.count > 4 else { return }
        let length = Int(ByteReader.load32(bytes, 0) & 0x3F_FFFF)
        let raw = try BlockCompression.decompress(
            bytes,
            range: 4..<bytes.count,
            rawLength: length,
            limit: 1 << 22
        )
        guard raw.count == length else { throw violation("block") }
        guard let packed = BlockCompression.compressAlways(raw) else { return }
        let again = try BlockCompression.decompress(
            packed,
            range: 0..<packed.count,
            rawLength: raw.count,
            limit: 1 << 22
        )
        guard again == raw else { throw violation("block, again") }
    }

    private static func page(_ bytes: [UInt8]) throws(FormatError) {
        let header = try PageHeader(decoding: bytes, range: 0..<bytes.count, place: "page")
        if header.layout == PageHeader.editedLayout {
            let leaf = try EditedLeaf(
                decoding: bytes,
                range: PageHeader.length..<bytes.count,
                count: Int(header.count),
                offset: FileOffset(1 << 40)
            )
            guard leaf.objects.count == leaf.values.count, leaf.objects.count <= Int(header.count)
            else { throw violation("edited leaf") }
            return
        }
        let body = try PageBody(
            decoding: bytes,
            range: PageHeader.length..<bytes.count,
            header: header,
            offset: FileOffset(1 << 40)
        )
        guard body.suffixes.count == Int(header.count) else { throw violation("page") }
    }

    private static func counters(_ bytes: [UInt8]) throws(FormatError) {
        _ = SharedState(decoding: bytes)
        let counters = try LiveCounters(decoding: bytes)
        guard counters.encoded() == bytes else { throw violation("counters") }
    }

    private static func frame(_ bytes: [UInt8]) throws(FormatError) {
        _ = FrameHeader.tailWord(bytes, at: 0)
        let header = try FrameHeader(decoding: bytes, at: 0, offset: FileOffset(8192), seed: 0)
        guard bytes.count - FrameHeader.length >= Int(header.storedLength) else { return }
        let payload = FrameHeader.length..<(FrameHeader.length + Int(header.storedLength))
        _ = try Frame.body(of: bytes, payload: payload, header: header, frontLength: 16, place: "")
    }

    // MARK: Keys

    /// Two values and a flag: their keys have their order. Then the bytes themselves as a key.
    static func key(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let isDescending = reader.byte() & 1 == 1
        let first = value(&reader)
        let second = value(&reader)
        let left = encoded(first, isDescending)
        let right = encoded(second, isDescending)
        try roundTrip(left, isDescending)
        let orders = left.lexicographicallyPrecedes(right)
        if left != right, let expected = precedes(first, second),
            orders != (expected != isDescending)
        {
            throw Violation("keys of \(first) and \(second) have another order")
        }
        if left != right, left.starts(with: right) || right.starts(with: left) {
            throw Violation("the key of \(first) and that of \(second) begin alike to the end")
        }
        let bytes = reader.rest()
        var keys = ByteReader(bytes)
        do throws(FormatError) {
            while keys.remaining > 0 {
                let start = keys.position
                let part = try KeyCoding.decode(&keys, descending: isDescending)
                if case .value(let value) = part {
                    if encoded(value, isDescending) != Array(bytes[start..<keys.position]) {
                        throw FormatError(
                            place: "violation",
                            field: "key",
                            found: "another form of \(value)",
                            expected: "refused"
                        )
                    }
                }
            }
        } catch {
            if error.place == "violation" { throw Violation("\(error)") }
        }
    }

    private static func encoded(_ value: StoredValue, _ isDescending: Bool) -> [UInt8] {
        var key: [UInt8] = []
        KeyCoding.append(value, descending: isDescending, to: &key)
        return key
    }

    private static func roundTrip(_ key: [UInt8], _ isDescending: Bool) throws {
        var reader = ByteReader(key)
        let part: KeyPart
        do throws(FormatError) {
            part = try KeyCoding.decode(&reader, descending: isDescending)
        } catch {
            throw Violation("a key that was written cannot be read: \(error)")
        }
        if reader.remaining > 0 { throw Violation("a key goes on behind its end") }
        if case .value(let value) = part, encoded(value, isDescending) != key {
            throw Violation("a key reads as \(value), which has another key")
        }
    }

    private static func value(_ reader: inout InputReader) -> StoredValue {
        switch reader.byte() % 10 {
        case 0: return .null
        case 1: return .bool(reader.byte() & 1 == 1)
        case 2: return .int(Int64(bitPattern: reader.number64()))
        case 3: return .double(Double(bitPattern: reader.number64()))
        case 4: return .float(Float(bitPattern: UInt32(truncatingIfNeeded: reader.number64())))
        case 5: return .text(String(decoding: reader.take(reader.number16() % 400), as: UTF8.self))
        case 6: return .data(reader.take(reader.number16() % 400))
        case 7: return .uuid(UUIDValue(high: reader.number64(), low: reader.number64()))
        case 8: return .reference(ObjectID(reader.number64()))
        default:
            let digits = reader.take(Int(reader.byte() % 40)).map { $0 % 10 }
            let exponent = Int(Int16(truncatingIfNeeded: reader.number16()))
            let isNegative = reader.byte() & 1 == 1
            return DecimalValue(normalizing: isNegative, digits: digits, exponent: exponent)
                .map { .decimal($0) } ?? .decimal(.zero)
        }
    }

    /// Whether one value stands before the other; nil where the test has no opinion of its own.
    private static func precedes(_ first: StoredValue, _ second: StoredValue) -> Bool? {
        switch (first, second) {
        case (.int(let left), .int(let right)): left < right
        case (.reference(let left), .reference(let right)): left < right
        case (.double(let left), .double(let right)): left < right || (!left.isNaN && right.isNaN)
        case (.float(let left), .float(let right)): left < right || (!left.isNaN && right.isNaN)
        case (.text(let left), .text(let right)):
            Array(left.utf8).lexicographicallyPrecedes(right.utf8)
        case (.data(let left), .data(let right)): left.lexicographicallyPrecedes(right)
        case (.decimal(let left), .decimal(let right)): decimal(left, precedes: right)
        case (.null, .null): nil
        case (.null, _): true
        case (_, .null): false
        default: nil
        }
    }

    private static func decimal(_ left: DecimalValue, precedes right: DecimalValue) -> Bool {
        func sign(_ value: DecimalValue) -> Int {
            value.digits.isEmpty ? 0 : value.isNegative ? -1 : 1
        }
        if sign(left) != sign(right) { return sign(left) < sign(right) }
        if sign(left) == 0 { return false }
        // 0.d1d2... times ten to the power of this.
        let scales = [left, right].map { Int($0.exponent) + $0.digits.count }
        let isSmaller =
            scales[0] != scales[1]
            ? scales[0] < scales[1] : left.digits.lexicographicallyPrecedes(right.digits)
        return left.isNegative ? !isSmaller : isSmaller
    }
}
