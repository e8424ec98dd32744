// Keys: byte order is value order, decoding gives the value back, no key begins another.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@Suite struct KeyCodingTests {
    @Test(arguments: SeededRandom.Kind.allCases)
    func byteOrderIsValueOrder(_ kind: SeededRandom.Kind) {
        let seed: UInt64 = 300
        var random = SeededRandom(seed: seed)
        for round in 0..<3000 {
            let left = Int.random(in: 0..<20, using: &random) == 0 ? .null : random.value(kind)
            let right = Int.random(in: 0..<20, using: &random) == 0 ? .null : random.value(kind)
            let expected = Self.compare(left, right)
            let sign = ByteReader.compare(Self.key(left), Self.key(right)).signum()
            #expect(sign == expected, "seed \(seed), round \(round): \(left), \(right)")
            let descending = ByteReader.compare(
                Self.key(left, descending: true),
                Self.key(right, descending: true)
            )
            #expect(descending.signum() == -expected, "seed \(seed), round \(round)")
        }
    }

    @Test func joinedKeysOrderByTheFirstDifference() {
        let seed: UInt64 = 301
        var random = SeededRandom(seed: seed)
        for round in 0..<5000 {
            let kinds = (0..<3).map { _ in random.pick(SeededRandom.Kind.allCases) }
            let descending = (0..<3).map { _ in Bool.random(using: &random) }
            let left = kinds.map { random.value($0) }
            let right = (0..<3).map { index in
                Bool.random(using: &random) ? left[index] : random.value(kinds[index])
            }
            var keys: [[UInt8]] = [[], []]
            var expected = 0
            for index in 0..<3 {
                KeyCoding.append(left[index], descending: descending[index], to: &keys[0])
                KeyCoding.append(right[index], descending: descending[index], to: &keys[1])
                if expected == 0 {
                    let sign = Self.compare(left[index], right[index])
                    expected = descending[index] ? -sign : sign
                }
            }
            KeyCoding.appendObjectID(ObjectID(1), to: &keys[0])
            KeyCoding.appendObjectID(ObjectID(2), to: &keys[1])
            let sign = ByteReader.compare(keys[0], keys[1]).signum()
            #expect(sign == (expected == 0 ? -1 : expected), "seed \(seed), round \(round)")
        }
    }

    @Test func keysGiveTheirValuesBack() throws {
        let seed: UInt64 = 302
        var random = SeededRandom(seed: seed)
        for round in 0..<6000 {
            let value = random.value()
            let descending = Bool.random(using: &random)
            var key = Self.key(value, descending: descending)
            KeyCoding.appendObjectID(ObjectID(77), to: &key)
            #expect(KeyCoding.trailingObjectID(of: key) == ObjectID(77))
            var reader = ByteReader(key)
            let part = try KeyCoding.decode(&reader, descending: descending)
            switch part {
            case .value(let found):
                #expect(Self.compare(found, value) == 0, "seed \(seed), round \(round)")
                #expect(Self.key(found, descending: descending) == Array(key.dropLast(8)))
            case .cut(let isText, let prefix):
                let content = Self.content(value) ?? []
                #expect(content.count > 256 && prefix == Array(content[..<256]))
                if case .text = value { #expect(isText) } else { #expect(!isText) }
            }
            #expect(try KeyCoding.decodeObjectID(&reader) == ObjectID(77))
            #expect(reader.isAtEnd)
        }
    }

    @Test func aRowGivesTheKeysOfItsValues() throws {
        let seed: UInt64 = 303
        var random = SeededRandom(seed: seed)
        for round in 0..<2000 {
            let values = random.row()
            let bytes = RowCoding.encode(values)
            let outside = try RowCoding.movingOutside(bytes, above: 256).row
            let descending = Bool.random(using: &random)
            for row in [bytes, outside] {
                let view = try RowView(row)
                for (index, value) in values.enumerated() {
                    var key: [UInt8] = [9]
                    try KeyCoding.append(
                        view.bytes.span,
                        view.slot(at: index),
                        absent: .int(42),
                        descending: descending,
                        to: &key
                    )
                    #expect(
                        Array(key.dropFirst())
                            == Self.key(value ?? .int(42), descending: descending),
                        "seed \(seed), round \(round), column \(index)"
                    )
                }
            }
        }
    }

    @Test func theBytesAreThoseOfTheDocument() {
        #expect(Self.key(.null) == [0x05])
        #expect(Self.key(.bool(false)) == [0x10])
        #expect(Self.key(.bool(true)) == [0x11])
        #expect(Self.key(.int(-1)) == [0x20, 0x7F] + [UInt8](repeating: 0xFF, count: 7))
        #expect(Self.key(.text("a\0b")) == [0x30, 0x61, 0, 0xFF, 0x62, 0, 1])
        #expect(Self.key(.text("a"), descending: true) == [0xCF, 0x9E, 0xFF, 0xFE])
        #expect(Self.key(.double(1)) == [0x29, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0])
        #expect(Self.key(.double(-0.0)) == Self.key(.double(0)))
        #expect(Self.key(.double(.nan)) == Self.key(.double(-.nan)))
        // 12.5 = 0.125 * 10^2
        let decimal = DecimalValue(isNegative: false, exponent: -1, digits: [1, 2, 5])
        #expect(Self.key(.decimal(decimal)) == [0x40, 3, 0x80, 0, 0, 2, 13, 51, 0])
    }

    @Test func longContentIsCutAndSaysSo() {
        let exact = String(repeating: "x", count: 256)
        #expect(Self.key(.text(exact)).count == 1 + 256 + 2)
        let cut = Self.key(.text(exact + "y"))
        #expect(cut == Self.key(.text(exact + "z")))
        #expect(cut.suffix(2) == [0, 2])
        #expect(ByteReader.compare(Self.key(.text(exact)), cut) < 0)
        #expect(ByteReader.compare(cut, Self.key(.text(exact.dropLast() + "y"))) < 0)
    }

    @Test func prefixesFindExactlyTheTextsThatBeginWithThem() {
        let seed: UInt64 = 304
        var random = SeededRandom(seed: seed)
        for round in 0..<3000 {
            let text = random.text()
            let prefix =
                Bool.random(using: &random)
                ? String(text.prefix(Int.random(in: 0..<3, using: &random))) : random.text()
            let descending = Bool.random(using: &random)
            var start: [UInt8] = []
            guard KeyCoding.appendTextPrefix(prefix, descending: descending, to: &start) else {
                #expect(prefix.utf8.count > 256 && start.isEmpty)
                continue
            }
            let key = Self.key(.text(text), descending: descending)
            let isInside =
                ByteReader.compare(key, start) >= 0
                && (KeyCoding.end(ofPrefix: start).map { ByteReader.compare(key, $0) < 0 } ?? true)
            let begins = text.utf8.starts(with: prefix.utf8)
            #expect(isInside == begins, "seed \(seed), round \(round)")
        }
    }

    @Test func theEndOfAPrefixIsTheNextByteString() {
        #expect(KeyCoding.end(ofPrefix: [1, 2]) == [1, 3])
        #expect(KeyCoding.end(ofPrefix: [1, 0xFF, 0xFF]) == [2])
        #expect(KeyCoding.end(ofPrefix: [0xFF]) == nil)
        #expect(KeyCoding.end(ofPrefix: []) == nil)
        var without: [UInt8] = [0xFF, 0xFF]
        #expect(!KeyCoding.raiseToEnd(&without) && without == [0xFF, 0xFF])
        var prefix: [UInt8] = [1, 0xFF]
        #expect(KeyCoding.raiseToEnd(&prefix) && prefix == [2])
        #expect(KeyCoding.trailingObjectID(of: [1, 2, 3]) == nil)
        #expect(KeyCoding.rowKey(ObjectID(258)) == [0, 0, 0, 0, 0, 0, 1, 2])
    }

    @Test func randomBytesAreRefusedOrTheKeyOfTheirValue() {
        let seed: UInt64 = 305
        var random = SeededRandom(seed: seed)
        let tags: [UInt8] = [
            0x05, 0x10, 0x11, 0x20, 0x28, 0x29, 0x2A, 0x30, 0x31, 0x38, 0x40, 0x48, 0x50,
        ]
        for round in 0..<30_000 {
            var bytes: [UInt8]
            if Bool.random(using: &random) {
                bytes = Self.key(random.value())
                bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                    1 << random.pick([0, 1, 7])
            } else {
                bytes = [random.pick(tags)]
                bytes += (0..<Int.random(in: 0..<45, using: &random)).map { _ in
                    random.pick([0, 1, 2, 3, 10, 100, 101, 0x7F, 0x80, 0xFF])
                }
            }
            let descending = Bool.random(using: &random)
            if descending { bytes = bytes.map { ~$0 } }
            var reader = ByteReader(bytes)
            guard let part = try? KeyCoding.decode(&reader, descending: descending) else {
                continue
            }
            if case .value(let value) = part {
                #expect(
                    Self.key(value, descending: descending) == Array(bytes[..<reader.position]),
                    "seed \(seed), round \(round)"
                )
            }
        }
    }

    // MARK: The order that keys must have

    private static func key(_ value: StoredValue, descending: Bool = false) -> [UInt8] {
        var key: [UInt8] = []
        KeyCoding.append(value, descending: descending, to: &key)
        return key
    }

    private static func content(_ value: StoredValue) -> [UInt8]? {
        switch value {
        case .text(let text): Array(text.utf8)
        case .data(let bytes): bytes
        default: nil
        }
    }

    private static func compare(_ left: StoredValue, _ right: StoredValue) -> Int {
        if let left = content(left), let right = content(right) { return bytes(left, right) }
        switch (left, right) {
        case (.null, .null): return 0
        case (.null, _): return -1
        case (_, .null): return 1
        case (.bool(let left), .bool(let right)): return sign(left ? 1 : 0, right ? 1 : 0)
        case (.int(let left), .int(let right)): return sign(left, right)
        case (.float(let left), .float(let right)): return number(Double(left), Double(right))
        case (.double(let left), .double(let right)): return number(left, right)
        case (.date(let left), .date(let right)): return number(left, right)
        case (.uuid(let left), .uuid(let right)): return sign(left, right)
        case (.reference(let left), .reference(let right)): return sign(left, right)
        case (.decimal(let left), .decimal(let right)): return decimal(left, right)
        case (.blob(let left), .blob(let right)):
            let digests = sign(left.digest, right.digest)
            return digests != 0 ? digests : sign(left.length, right.length)
        default: return 0
        }
    }

    private static func sign<T: Comparable>(_ left: T, _ right: T) -> Int {
        left < right ? -1 : left > right ? 1 : 0
    }

    private static func number(_ left: Double, _ right: Double) -> Int {
        if left.isNaN || right.isNaN { return sign(left.isNaN ? 1 : 0, right.isNaN ? 1 : 0) }
        return sign(left, right)
    }

    /// Of contents that are equal in their first 256 bytes, the longer ones count as equal.
    private static func bytes(_ left: [UInt8], _ right: [UInt8]) -> Int {
        let order = ByteReader.compare(Array(left.prefix(256)), Array(right.prefix(256))).signum()
        return order != 0 ? order : sign(left.count > 256 ? 1 : 0, right.count > 256 ? 1 : 0)
    }

    /// By sign, then by the position of the first digit, then digit by digit.
    private static func decimal(_ left: DecimalValue, _ right: DecimalValue) -> Int {
        func rank(_ value: DecimalValue) -> Int {
            value.digits.isEmpty ? 0 : value.isNegative ? -1 : 1
        }
        if rank(left) != rank(right) { return sign(rank(left), rank(right)) }
        let scale = sign(
            Int(left.exponent) + left.digits.count,
            Int(right.exponent) + right.digits.count
        )
        let magnitude = scale != 0 ? scale : ByteReader.compare(left.digits, right.digits).signum()
        return rank(left) < 0 ? -magnitude : rank(left) == 0 ? 0 : magnitude
    }
}
