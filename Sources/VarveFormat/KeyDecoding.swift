// Keys back to values (Format.md, "Keys").
//
// Invariants
// - Only what KeyCoding appends is accepted: encode(decode(key)) = key for every key that is read.
// - A cut text or data has no value here: its end stands only in the row.

public import VarveBase

/// One value read from a key.
public enum KeyPart: Hashable, Sendable {
    /// The whole value. Zeros have no sign, and all NaN are one.
    case value(StoredValue)
    /// The first bytes of a text or data that is longer.
    case cut(isText: Bool, prefix: [UInt8])
}

extension KeyCoding {
    /// Reads the value at the reader's position and moves after it.
    public static func decode(
        _ reader: inout ByteReader,
        descending: Bool = false
    ) throws(FormatError) -> KeyPart {
        let mask: UInt8 = descending ? 0xFF : 0
        let tag = try reader.u8("key tag") ^ mask
        switch tag {
        case nullTag: return .value(.null)
        case falseTag: return .value(.bool(false))
        case trueTag: return .value(.bool(true))
        case intTag:
            return .value(.int(Int64(bitPattern: try word(&reader, mask) ^ 1 << 63)))
        case floatTag: return .value(.float(try float(&reader, mask)))
        case doubleTag: return .value(.double(try double(&reader, mask)))
        case dateTag: return .value(.date(try double(&reader, mask)))
        case textTag, dataTag: return try content(&reader, mask, isText: tag == textTag)
        case uuidTag:
            let high = try word(&reader, mask)
            return .value(.uuid(UUIDValue(high: high, low: try word(&reader, mask))))
        case decimalTag: return .value(.decimal(try decimal(&reader, mask)))
        case referenceTag: return .value(.reference(ObjectID(try word(&reader, mask))))
        case blobTag:
            let digest = BlobDigest(
                try word(&reader, mask),
                try word(&reader, mask),
                try word(&reader, mask),
                try word(&reader, mask)
            )
            return .value(
                .blob(BlobReference(digest: digest, length: try word(&reader, mask)))
            )
        default: throw reader.error("key tag", "\(tag)", "a known tag")
        }
    }

    /// Reads an object number.
    public static func decodeObjectID(
        _ reader: inout ByteReader
    ) throws(FormatError) -> ObjectID {
        ObjectID(try word(&reader, 0))
    }

    private static func word(
        _ reader: inout ByteReader,
        _ mask: UInt8
    ) throws(FormatError) -> UInt64 {
        let value = try reader.u64("key").byteSwapped
        return mask == 0 ? value : ~value
    }

    private static func half(
        _ reader: inout ByteReader,
        _ mask: UInt8
    ) throws(FormatError) -> UInt32 {
        let value = try reader.u32("key").byteSwapped
        return mask == 0 ? value : ~value
    }

    private static func double(
        _ reader: inout ByteReader,
        _ mask: UInt8
    ) throws(FormatError) -> Double {
        let ordered = try word(&reader, mask)
        let bits = ordered &>> 63 == 1 ? ordered ^ 1 << 63 : ~ordered
        let value = Double(bitPattern: bits)
        guard bits != 1 << 63, !value.isNaN || bits == 0x7FF8_0000_0000_0000 else {
            throw reader.error("key double", "another form", "canonical")
        }
        return value
    }

    private static func float(
        _ reader: inout ByteReader,
        _ mask: UInt8
    ) throws(FormatError) -> Float {
        let ordered = try half(&reader, mask)
        let bits = ordered &>> 31 == 1 ? ordered ^ 1 << 31 : ~ordered
        let value = Float(bitPattern: bits)
        guard bits != 1 << 31, !value.isNaN || bits == 0x7FC0_0000 else {
            throw reader.error("key float", "another form", "canonical")
        }
        return value
    }

    private static func content(
        _ reader: inout ByteReader,
        _ mask: UInt8,
        isText: Bool
    ) throws(FormatError) -> KeyPart {
        var bytes: [UInt8] = []
        var isCut = false
        while true {
            let byte = try reader.u8("key content") ^ mask
            if byte == 0 {
                let next = try reader.u8("key content") ^ mask
                if next == contentEnd { break }
                if next == contentCut {
                    isCut = true
                    break
                }
                guard next == escapedZero else {
                    throw reader.error("key content", "zero and \(next)", "an escape")
                }
            }
            bytes.append(byte)
            guard bytes.count <= contentBytesMax else {
                throw reader.error("key content", "more", "\(contentBytesMax) bytes")
            }
        }
        if isCut {
            guard bytes.count == contentBytesMax else {
                throw reader.error("cut content", "\(bytes.count)", "\(contentBytesMax)")
            }
            return .cut(isText: isText, prefix: bytes)
        }
        guard isText else { return .value(.data(bytes)) }
        guard let text = ByteReader.text(bytes, 0..<bytes.count) else {
            throw reader.error("key text", "other bytes", "valid UTF-8")
        }
        return .value(.text(text))
    }

    private static func decimal(
        _ reader: inout ByteReader,
        _ mask: UInt8
    ) throws(FormatError) -> DecimalValue {
        let sign = try reader.u8("key decimal") ^ mask
        if sign == decimalZero { return .zero }
        guard sign == decimalNegative || sign == decimalPositive else {
            throw reader.error("key decimal", "sign \(sign)", "1, 2 or 3")
        }
        let isNegative = sign == decimalNegative
        let inner = isNegative ? mask ^ 0xFF : mask
        let scale = Int32(bitPattern: try half(&reader, inner) ^ 1 << 31)
        var digits: [UInt8] = []
        while true {
            let pair = try reader.u8("key decimal") ^ inner
            if pair == 0 { break }
            guard pair <= 100, digits.count < DecimalValue.digitsMax else {
                throw reader.error("key decimal", "digits", "at most 39, in pairs")
            }
            digits.append((pair - 1) / 10)
            digits.append((pair - 1) % 10)
        }
        // Of the last pair the second digit may be filling; a canonical number ends in no zero.
        if digits.last == 0 { digits.removeLast() }
        let value = Int16(exactly: Int64(scale) - Int64(digits.count)).map {
            DecimalValue(isNegative: isNegative, exponent: $0, digits: digits)
        }
        guard let value, value.isCanonical, !digits.isEmpty else {
            throw reader.error("key decimal", "another form", "canonical")
        }
        return value
    }
}
