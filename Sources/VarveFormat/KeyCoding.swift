// Keys whose byte order is the order of their values (Format.md, "Keys").
//
// Invariants
// - For two values of one column, memcmp of the encodings is the order of the values: null first,
//   false before true, -0 equal to 0, NaN after everything, text by its UTF-8 bytes.
// - No encoding begins another, so encodings can be joined; `descending` complements every byte.
// - Texts and data longer than `contentBytesMax` are cut there and marked: two cut keys that are
//   equal do not prove equal values. A value outside its row gives the same key as inside it.

public import VarveBase

/// Appends order-preserving encodings to keys.
public enum KeyCoding {
    /// First byte of an encoded null.
    public static let nullTag: UInt8 = 0x05
    /// First and only byte of false.
    public static let falseTag: UInt8 = 0x10
    /// First and only byte of true.
    public static let trueTag: UInt8 = 0x11
    /// First byte of an integer.
    public static let intTag: UInt8 = 0x20
    /// First byte of a 32-bit float.
    public static let floatTag: UInt8 = 0x28
    /// First byte of a 64-bit float.
    public static let doubleTag: UInt8 = 0x29
    /// First byte of a date.
    public static let dateTag: UInt8 = 0x2A
    /// First byte of a text.
    public static let textTag: UInt8 = 0x30
    /// First byte of data.
    public static let dataTag: UInt8 = 0x31
    /// First byte of a UUID.
    public static let uuidTag: UInt8 = 0x38
    /// First byte of a decimal.
    public static let decimalTag: UInt8 = 0x40
    /// First byte of a reference.
    public static let referenceTag: UInt8 = 0x48
    /// First byte of a blob.
    public static let blobTag: UInt8 = 0x50

    /// Follows a zero byte that belongs to the content of a text or data.
    public static let escapedZero: UInt8 = 0xFF
    /// Follows the zero byte that ends a whole text or data.
    public static let contentEnd: UInt8 = 0x01
    /// Follows the zero byte that ends a text or data that was cut.
    public static let contentCut: UInt8 = 0x02

    /// Byte after the tag of a negative decimal.
    public static let decimalNegative: UInt8 = 0x01
    /// Byte after the tag of the decimal zero.
    public static let decimalZero: UInt8 = 0x02
    /// Byte after the tag of a positive decimal.
    public static let decimalPositive: UInt8 = 0x03

    /// Bytes of a text or data that go into a key, before escaping.
    public static let contentBytesMax = RowTag.outsidePrefixBytes

    /// Appends one value.
    public static func append(
        _ value: StoredValue,
        descending: Bool = false,
        to key: inout [UInt8]
    ) {
        let start = key.count
        switch value {
        case .null: key.append(nullTag)
        case .bool(let value): key.append(value ? trueTag : falseTag)
        case .int(let value): appendInt(value, &key)
        case .float(let value): appendFloat(value, &key)
        case .double(let value): appendDouble(value, doubleTag, &key)
        case .date(let value): appendDouble(value, dateTag, &key)
        case .text(let value):
            key.append(textTag)
            let utf8 = value.utf8
            let isCut = utf8.count > contentBytesMax
            if isCut {
                key.append(contentsOf: utf8.prefix(contentBytesMax))
            } else {
                key.append(contentsOf: utf8)
            }
            finishContent(&key, from: start + 1, isCut: isCut)
        case .data(let value):
            key.append(dataTag)
            key.append(contentsOf: value.prefix(contentBytesMax))
            finishContent(&key, from: start + 1, isCut: value.count > contentBytesMax)
        case .uuid(let value):
            key.append(uuidTag)
            ByteWriter.appendBigEndian(value.high, to: &key)
            ByteWriter.appendBigEndian(value.low, to: &key)
        case .decimal(let value): appendDecimal(value, &key)
        case .reference(let value): appendReference(value, &key)
        case .blob(let value):
            key.append(blobTag)
            key.append(contentsOf: value.digest.bytes)
            ByteWriter.appendBigEndian(value.length, to: &key)
        }
        if descending { complement(&key, from: start) }
    }

    /// Appends what a row holds in a slot, without decoding texts; an absent column counts as
    /// `absent`, its declared default.
    public static func append(
        _ row: Span<UInt8>,
        _ slot: RowSlot,
        absent: StoredValue = .null,
        descending: Bool = false,
        to key: inout [UInt8]
    ) throws(FormatError) {
        let start = key.count
        switch slot.tag {
        case RowTag.absent: return append(absent, descending: descending, to: &key)
        case RowTag.null: key.append(nullTag)
        case RowTag.zero...RowTag.int64: appendInt(try slot.int(in: row), &key)
        case RowTag.double: appendDouble(try slot.double(in: row), doubleTag, &key)
        case RowTag.date: appendDouble(try slot.date(in: row), dateTag, &key)
        case RowTag.reference32, RowTag.reference64:
            appendReference(try slot.reference(in: row), &key)
        case RowTag.outsideText, RowTag.outsideData:
            let length = ByteReader.load64(row, slot.offset)
            let from = slot.offset + 8
            key.append(slot.tag == RowTag.outsideText ? textTag : dataTag)
            ByteWriter.append(row, from..<from + contentBytesMax, to: &key)
            finishContent(
                &key,
                from: start + 1,
                isCut: length > UInt64(contentBytesMax)
            )
        case RowTag.textBase...:
            let body = slot.body
            key.append(RowTag.isText(slot.tag) ? textTag : dataTag)
            ByteWriter.append(row, body.prefix(contentBytesMax), to: &key)
            finishContent(&key, from: start + 1, isCut: body.count > contentBytesMax)
        default:
            return append(
                try slot.value(in: row) ?? absent,
                descending: descending,
                to: &key
            )
        }
        if descending { complement(&key, from: start) }
    }

    /// Appends the beginning that all texts beginning with `prefix` share.
    /// False, and nothing appended, when it is longer than what a key keeps of a text.
    public static func appendTextPrefix(
        _ prefix: String,
        descending: Bool = false,
        to key: inout [UInt8]
    ) -> Bool {
        guard prefix.utf8.count <= contentBytesMax else { return false }
        let start = key.count
        key.append(textTag)
        key.append(contentsOf: prefix.utf8)
        escape(&key, from: start + 1)
        if descending { complement(&key, from: start) }
        return true
    }

    /// Appends an object number: 8 bytes, most significant first, without a tag.
    public static func appendObjectID(_ id: ObjectID, to key: inout [UInt8]) {
        ByteWriter.appendBigEndian(id.rawValue, to: &key)
    }

    /// The object number in the last 8 bytes of a key; nil when the key is shorter.
    public static func trailingObjectID(of key: [UInt8]) -> ObjectID? {
        guard key.count >= 8 else { return nil }
        return ObjectID(ByteReader.loadBigEndian64(key, key.count - 8))
    }

    /// The key of an object's row: its number.
    public static func rowKey(_ id: ObjectID) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(8)
        appendObjectID(id, to: &key)
        return key
    }

    /// The smallest byte string above all that begin with `prefix`; nil when there is none.
    public static func end(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        var end = prefix
        return raiseToEnd(&end) ? end : nil
    }

    /// Makes a prefix the smallest byte string above all that begin with it; false, and nothing
    /// done, when there is none.
    public static func raiseToEnd(_ prefix: inout [UInt8]) -> Bool {
        guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return false }
        prefix.removeLast(prefix.count - 1 - last)
        prefix[last] += 1
        return true
    }
}

// MARK: - One kind each

extension KeyCoding {
    private static func appendInt(_ value: Int64, _ key: inout [UInt8]) {
        key.append(intTag)
        ByteWriter.appendBigEndian(UInt64(bitPattern: value) ^ 1 << 63, to: &key)
    }

    private static func appendReference(_ value: ObjectID, _ key: inout [UInt8]) {
        key.append(referenceTag)
        ByteWriter.appendBigEndian(value.rawValue, to: &key)
    }

    private static func appendFloat(_ value: Float, _ key: inout [UInt8]) {
        let bits = value.isNaN ? 0x7FC0_0000 : value == 0 ? 0 : value.bitPattern
        let ordered = bits &>> 31 == 1 ? ~bits : bits | 1 << 31
        key.append(floatTag)
        for shift: UInt32 in [24, 16, 8, 0] {
            key.append(UInt8(truncatingIfNeeded: ordered &>> shift))
        }
    }

    private static func appendDouble(_ value: Double, _ tag: UInt8, _ key: inout [UInt8]) {
        let bits = value.isNaN ? 0x7FF8_0000_0000_0000 : value == 0 ? 0 : value.bitPattern
        key.append(tag)
        ByteWriter.appendBigEndian(bits &>> 63 == 1 ? ~bits : bits | 1 << 63, to: &key)
    }

    /// Sign, then exponent of 0.d1d2d3..., then pairs of digits plus 1, then 0.
    private static func appendDecimal(_ value: DecimalValue, _ key: inout [UInt8]) {
        precondition(value.isCanonical, "a decimal that is not canonical")
        key.append(decimalTag)
        guard !value.digits.isEmpty else { return key.append(decimalZero) }
        key.append(value.isNegative ? decimalNegative : decimalPositive)
        let start = key.count
        let exponent = Int32(value.exponent) + Int32(value.digits.count)
        let ordered = UInt32(bitPattern: exponent) ^ 1 << 31
        for shift: UInt32 in [24, 16, 8, 0] {
            key.append(UInt8(truncatingIfNeeded: ordered &>> shift))
        }
        for index in stride(from: 0, to: value.digits.count, by: 2) {
            let low = index + 1 < value.digits.count ? value.digits[index + 1] : 0
            key.append(value.digits[index] * 10 + low + 1)
        }
        key.append(0)
        if value.isNegative { complement(&key, from: start) }
    }

    private static func finishContent(_ key: inout [UInt8], from start: Int, isCut: Bool) {
        escape(&key, from: start)
        key.append(0)
        key.append(isCut ? contentCut : contentEnd)
    }

    /// Puts `escapedZero` after every zero byte; there is none in almost every text.
    private static func escape(_ key: inout [UInt8], from start: Int) {
        var at = start
        let end = key.count
        while at &+ 8 <= end {
            let word = ByteReader.load64(key, at)
            // Not zero exactly when one of the eight bytes is zero.
            let zeros = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
            if zeros != 0 { break }
            at &+= 8
        }
        while at < end, key[at] != 0 { at &+= 1 }
        guard at < end else { return }
        let rest = Array(key[at...])
        key.removeSubrange(at...)
        for byte in rest {
            key.append(byte)
            if byte == 0 { key.append(escapedZero) }
        }
    }

    private static func complement(_ key: inout [UInt8], from start: Int) {
        for index in start..<key.count { key[index] = ~key[index] }
    }
}
