// FENCE: tables of symbols in memory, coding texts with them and decoding them again.
//
// Invariants
// - Each table has a place for every code, every byte and every hash, so that no place needs a
//   check: 256 words and lengths, two slots for each hash of 3 bytes (the longer symbol first), one
//   for each hash of 2 bytes, one for each byte. An empty slot is 0.
// - Coded bytes are input: a code without a symbol and an escape at the end are damage. A decoder
//   writes nothing behind its limit, but for 8 bytes.
// - A text of n bytes has at most 2 n coded bytes, and n coded bytes at most 8 n bytes of text.

/// Tables of symbols. Not changed any more once somebody else has them.
@safe final class SymbolMemory {
    /// Bytes of one table.
    static let tableBytes = singles + 256 * 2
    private static let lengths = 256 * 8
    private static let slots = lengths + 256
    private static let pairs = slots + 2 * 2 << bucketBits
    private static let singles = pairs + 2 << pairBits
    private static let bucketBits = 9
    private static let pairBits = 11

    /// Where the tables lie, one after the other.
    @unsafe let base: UnsafeMutableRawPointer
    private let count: Int

    /// Room for so many tables, without symbols.
    init(tables: Int) {
        count = tables
        let bytes = max(1, tables) * Self.tableBytes
        // Given back by `deinit`.
        unsafe base = .allocate(byteCount: bytes, alignment: 64)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    }

    deinit {
        // Allocated by `init`.
        unsafe base.deallocate()
    }

    /// Takes all symbols out of a table.
    func clear(_ table: Int) {
        precondition(table >= 0 && table < count)
        let start = unsafe base + table * Self.tableBytes
        // All bytes of one table.
        unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: Self.tableBytes)
    }

    /// Gives a code its symbol, for decoding.
    private func set(_ table: Int, _ symbol: Symbol, code: Int) {
        precondition(table >= 0 && table < count && code >= 0 && code < SymbolTable.symbolsMax)
        let start = unsafe base + table * Self.tableBytes
        // A word and a length for each code.
        unsafe start.storeBytes(
            of: symbol.word.littleEndian,
            toByteOffset: 8 * code,
            as: UInt64.self
        )
        unsafe start.storeBytes(
            of: UInt8(symbol.length),
            toByteOffset: Self.lengths + code,
            as: UInt8.self
        )
    }

    /// Adds a symbol; false where the coder's place for it is taken. The decoder knows it anyway.
    @discardableResult func insert(_ table: Int, _ symbol: Symbol, code: Int) -> Bool {
        precondition(table >= 0 && table < count)
        let start = unsafe base + table * Self.tableBytes
        let entry = UInt16(code) | UInt16(symbol.length) << 8
        var place: Int
        switch symbol.length {
        case 1: place = Self.singles + 2 * Int(symbol.word)
        case 2: place = Self.pairs + 2 * Self.pair(symbol.word)
        default: place = Self.slots + 4 * Self.bucket(symbol.word)
        }
        // Hashes have as many bits as the table has places.
        let taken = unsafe start.load(fromByteOffset: place, as: UInt16.self).littleEndian
        var isFree = taken == 0
        if taken != 0, symbol.length > 2 {
            // The second place of the bucket; the longer symbol goes first.
            isFree = unsafe start.load(fromByteOffset: place + 2, as: UInt16.self) == 0
            if isFree, taken >> 8 < entry >> 8 {
                unsafe start.storeBytes(
                    of: taken.littleEndian,
                    toByteOffset: place + 2,
                    as: UInt16.self
                )
            } else {
                place += 2
            }
        }
        if isFree {
            // As above.
            unsafe start.storeBytes(of: entry.littleEndian, toByteOffset: place, as: UInt16.self)
        }
        set(table, symbol, code: code)
        return isFree
    }

    @inline(__always)
    private static func bucket(_ word: UInt64) -> Int {
        Int((UInt32(truncatingIfNeeded: word & 0xFF_FFFF) &* 0x9E37_79B1) >> (32 - 9))
    }

    @inline(__always)
    private static func pair(_ word: UInt64) -> Int {
        Int((UInt32(truncatingIfNeeded: word & 0xFFFF) &* 0x9E37_79B1) >> (32 - 11))
    }

    /// The longest symbol in the first `left` bytes of a word: its code plus 256 times its length;
    /// 0: there is none.
    @inline(__always)
    @unsafe static func match(_ table: UnsafeRawPointer, _ word: UInt64, left: Int) -> Int {
        let bucket = slots &+ 4 &* bucket(word)
        // Hashes and codes have as many bits as the table has places.
        let both = unsafe table.load(fromByteOffset: bucket, as: UInt32.self).littleEndian
        if both != 0 {
            let first = Int(both & 0xFFFF)
            if unsafe isMatch(table, first, word, left) { return first }
            let second = Int(both >> 16)
            if second != 0, unsafe isMatch(table, second, word, left) { return second }
        }
        if left >= 2 {
            // As above.
            let place = pairs &+ 2 &* pair(word)
            let entry = unsafe Int(
                table.load(fromByteOffset: place, as: UInt16.self).littleEndian
            )
            if entry != 0, unsafe isMatch(table, entry, word, left) { return entry }
        }
        let place = singles &+ 2 &* Int(truncatingIfNeeded: word & 0xFF)
        return unsafe Int(table.load(fromByteOffset: place, as: UInt16.self).littleEndian)
    }

    @inline(__always)
    private static func isMatch(
        _ table: UnsafeRawPointer,
        _ entry: Int,
        _ word: UInt64,
        _ left: Int
    ) -> Bool {
        // One of 256 codes.
        let symbol = unsafe table.load(fromByteOffset: 8 &* (entry & 255), as: UInt64.self)
            .littleEndian
        let length = entry &>> 8
        let mask = UInt64.max &>> UInt64(truncatingIfNeeded: 64 &- 8 &* length)
        return (symbol ^ word) & mask == 0 && length <= left
    }

    /// Codes `count` bytes at `source`, of which `readable` may be read, to `target`, which has
    /// room for twice as many; returns how many there are.
    /// - Complexity: O(count), some 200 MB/s.
    @unsafe static func encode(
        _ table: UnsafeRawPointer,
        _ source: UnsafeRawPointer,
        _ count: Int,
        readable: Int,
        _ target: UnsafeMutableRawPointer
    ) -> Int {
        var at = 0
        var end = 0
        while at < count {
            let left = count &- at
            var word: UInt64
            if readable &- at >= 8 {
                // Eight bytes are there.
                word = unsafe source.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian
            } else {
                word = 0
                for index in 0..<left {
                    // The bytes up to the end.
                    let byte = unsafe source.load(fromByteOffset: at &+ index, as: UInt8.self)
                    word |= UInt64(byte) &<< UInt64(8 &* index)
                }
            }
            let found = unsafe match(table, word, left: left)
            // At most two bytes are written for each that is read.
            if found != 0 {
                unsafe target.storeBytes(
                    of: UInt8(truncatingIfNeeded: found),
                    toByteOffset: end,
                    as: UInt8.self
                )
                end &+= 1
                at &+= found &>> 8
            } else {
                unsafe target.storeBytes(of: SymbolTable.escape, toByteOffset: end, as: UInt8.self)
                unsafe target.storeBytes(
                    of: UInt8(truncatingIfNeeded: word),
                    toByteOffset: end &+ 1,
                    as: UInt8.self
                )
                end &+= 2
                at &+= 1
            }
        }
        return end
    }

    /// Decodes `count` bytes at `source` to `target`, at most `limit` bytes; returns how many, or
    /// nil when the codes are damaged or the text does not fit. Up to 8 bytes behind the limit may
    /// be overwritten.
    /// - Complexity: O(count), some 2 GB/s.
    @inline(never)
    @unsafe static func decode(
        _ table: UnsafeRawPointer,
        _ source: UnsafeRawPointer,
        _ count: Int,
        _ target: UnsafeMutableRawPointer,
        _ limit: Int
    ) -> Int? {
        var at = 0
        var end = 0
        while at < count {
            if end > limit { return nil }
            // Four codes at once: the fourth symbol begins at most 24 bytes behind the end.
            if at &+ 4 <= count, end &+ 24 <= limit {
                let next = unsafe decodeFour(table, source + at, target, end)
                if next >= 0 {
                    end = next
                    at &+= 4
                    continue
                }
            }
            // `at` is below `count`, and a table has 256 words and 256 lengths.
            let code = unsafe Int(source.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            let length = unsafe put(table, code, target, end)
            end &+= length
            if length == 0 {
                guard code == Int(SymbolTable.escape), at < count else { return nil }
                // At most at the limit, and the caller has 8 bytes more.
                let byte = unsafe source.load(fromByteOffset: at, as: UInt8.self)
                unsafe target.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
                at &+= 1
                end &+= 1
            }
        }
        return end <= limit ? end : nil
    }

    /// Puts the symbols of four codes behind the text so far; where that ends, or a number below 0
    /// where a code has no symbol.
    @inline(__always)
    private static func decodeFour(
        _ table: UnsafeRawPointer,
        _ source: UnsafeRawPointer,
        _ target: UnsafeMutableRawPointer,
        _ start: Int
    ) -> Int {
        // The caller has compared: four codes are there.
        let four = unsafe source.loadUnaligned(as: UInt32.self).littleEndian
        let first = Int(four & 255)
        let second = Int(four &>> 8 & 255)
        let third = Int(four &>> 16 & 255)
        let fourth = Int(four &>> 24)
        // And room for four symbols; what those of no length put there is overwritten.
        let one = unsafe put(table, first, target, start)
        let afterOne = start &+ one
        let two = unsafe put(table, second, target, afterOne)
        let afterTwo = afterOne &+ two
        let three = unsafe put(table, third, target, afterTwo)
        let afterThree = afterTwo &+ three
        let last = unsafe put(table, fourth, target, afterThree)
        let lacks = (one &- 1) | (two &- 1) | (three &- 1) | (last &- 1)
        return lacks < 0 ? -1 : afterThree &+ last
    }

    /// Puts a code's symbol at a place, and zeros up to 8 bytes; its length, 0: it has none.
    @inline(__always)
    private static func put(
        _ table: UnsafeRawPointer,
        _ code: Int,
        _ target: UnsafeMutableRawPointer,
        _ end: Int
    ) -> Int {
        // A table has 256 words and 256 lengths; the caller has room for 8 bytes.
        let word = unsafe table.load(fromByteOffset: 8 &* code, as: UInt64.self)
        unsafe target.storeBytes(of: word, toByteOffset: end, as: UInt64.self)
        return unsafe Int(table.load(fromByteOffset: lengths &+ code, as: UInt8.self))
    }
}

// Written only while one thread has it; see `SymbolSet`.
extension SymbolMemory: @unchecked Sendable {}

extension SymbolMemory {
    /// Codes a part of an array with a table.
    func encode(_ table: Int, _ bytes: [UInt8], _ range: Range<Int>) -> [UInt8] {
        precondition(table >= 0 && table < count)
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        // The room is twice the text's bytes; the buffers live during the closures.
        return unsafe [UInt8](unsafeUninitializedCapacity: 2 * range.count + 1) { target, count in
            unsafe bytes.withUnsafeBytes { bytes in
                guard let source = bytes.baseAddress, let target = target.baseAddress else {
                    return
                }
                count = unsafe Self.encode(
                    base + table * Self.tableBytes,
                    source + range.lowerBound,
                    range.count,
                    readable: bytes.count - range.lowerBound,
                    UnsafeMutableRawPointer(target)
                )
            }
        }
    }

    /// Decodes an array of at most 64 KiB; nil where it is damaged or the text is longer.
    func decode(_ table: Int, _ coded: [UInt8], limit: Int) -> [UInt8]? {
        precondition(table >= 0 && table < count)
        var isSound = true
        // The room is what the decoder may overwrite.
        let text = unsafe [UInt8](unsafeUninitializedCapacity: limit + 8) { target, count in
            unsafe coded.withUnsafeBytes { bytes in
                guard let source = bytes.baseAddress, let target = target.baseAddress else {
                    return
                }
                let length = unsafe Self.decode(
                    base + table * Self.tableBytes,
                    source,
                    bytes.count,
                    UnsafeMutableRawPointer(target),
                    limit
                )
                isSound = length != nil
                count = length ?? 0
            }
        }
        return isSound ? text : nil
    }

    /// The longest symbol that a word's first bytes begin with; see `match`.
    @inline(__always)
    func match(_ word: UInt64, left: Int) -> Int {
        // The first table.
        unsafe Self.match(base, word, left: left)
    }
}
