// The text form of a digest, which is also the name of the blob's file: 64 lowercase hex digits.
//
// Invariants
// - One text per digest: parsing accepts nothing that `hexText` does not print.

extension BlobDigest {
    /// Bytes of a digest.
    public static let byteCount = 32

    /// 64 lowercase hex digits.
    public var hexText: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(64)
        for byte in bytes {
            digits.append(Self.hexDigit(byte &>> 4))
            digits.append(Self.hexDigit(byte & 15))
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// Reads exactly 64 lowercase hex digits; nil for anything else.
    public init?(hexText: String) {
        var words: [UInt64] = [0, 0, 0, 0]
        var count = 0
        for character in hexText.utf8 {
            guard count < 64, let digit = Self.hexValue(character) else { return nil }
            words[count / 16] = words[count / 16] &<< 4 | UInt64(digit)
            count += 1
        }
        guard count == 64 else { return nil }
        self.init(words[0], words[1], words[2], words[3])
    }

    /// The 32 bytes in their published order.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: word &>> shift))
            }
        }
        return bytes
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x61 + value - 10
    }

    private static func hexValue(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x61...0x66: character - 0x61 + 10
        default: nil
        }
    }
}

extension BlobDigest: CustomStringConvertible {
    /// The hex text.
    public var description: String { hexText }
}
