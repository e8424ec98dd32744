// Coding texts with a symbol table and decoding them again. The only unsafe file of the module.
//
// Invariants
// - A decoder writes no more than its target holds, and reads no more than the coded bytes.
// - Coded bytes are input: a code without a symbol and an escape at the end give an error.
// - A text of n bytes has at most 2 n coded bytes, and n coded bytes at most 8 n bytes of text.

/// Finds the longest symbol that a text begins with.
struct SymbolIndex {
    /// A symbol of 3 to 8 bytes.
    struct Slot {
        var word: UInt64 = 0
        /// Longer than anything: matches nothing.
        var length: UInt32 = Self.none
        var code: UInt32 = 0
        static let none: UInt32 = 15
    }

    static let bucketBits = 9
    static let pairBits = 11

    /// Two slots for each hash of three bytes, the longer symbol first.
    private var slots = [Slot](repeating: Slot(), count: 2 << bucketBits)
    /// For each hash of two bytes the symbol (low), its code and 1.
    private var pairs = [UInt32](repeating: 0, count: 1 << pairBits)
    /// For each byte its code and 256; 0 where the byte is no symbol.
    private var singles = [UInt16](repeating: 0, count: 256)

    /// The index over a table.
    init(_ table: SymbolTable) {
        for code in 0..<table.count {
            let symbol = Symbol(table.words[code], length: Int(table.lengths[code]))
            _ = insert(symbol, code: code)
        }
    }

    /// An index without symbols.
    init() {}

    /// Adds a symbol, unless its place is taken.
    mutating func insert(_ symbol: Symbol, code: Int) -> Bool {
        switch symbol.length {
        case 1:
            singles[Int(symbol.word)] = UInt16(code) | 256
        case 2:
            let place = Self.pair(symbol.word)
            if pairs[place] != 0 { return false }
            pairs[place] = UInt32(symbol.word) | UInt32(code) << 16 | 1 << 24
        default:
            let place = 2 * Self.bucket(symbol.word)
            if slots[place + 1].length != Slot.none { return false }
            let slot = Slot(
                word: symbol.word,
                length: UInt32(symbol.length),
                code: UInt32(code)
            )
            if slots[place].length == Slot.none {
                slots[place] = slot
            } else if slots[place].length < slot.length {
                slots[place + 1] = slots[place]
                slots[place] = slot
            } else {
                slots[place + 1] = slot
            }
        }
        return true
    }

    @inline(__always)
    static func bucket(_ word: UInt64) -> Int {
        Int((UInt32(truncatingIfNeeded: word & 0xFF_FFFF) &* 0x9E37_79B1) >> (32 - 9))
    }

    @inline(__always)
    static func pair(_ word: UInt64) -> Int {
        Int((UInt32(truncatingIfNeeded: word & 0xFFFF) &* 0x9E37_79B1) >> (32 - 11))
    }

    /// Lends the tables to `body`.
    @inline(__always)
    func withView<R>(_ body: (View) -> R) -> R {
        unsafe slots.withUnsafeBufferPointer { slots in
            unsafe pairs.withUnsafeBufferPointer { pairs in
                unsafe singles.withUnsafeBufferPointer { singles in
                    unsafe body(View(slots: slots, pairs: pairs, singles: singles))
                }
            }
        }
    }

    /// The tables during one call. Safe: every place comes from a hash of as many bits as the
    /// table has places.
    @safe struct View {
        let slots: UnsafeBufferPointer<Slot>
        let pairs: UnsafeBufferPointer<UInt32>
        let singles: UnsafeBufferPointer<UInt16>

        init(
            slots: UnsafeBufferPointer<Slot>,
            pairs: UnsafeBufferPointer<UInt32>,
            singles: UnsafeBufferPointer<UInt16>
        ) {
            unsafe self.slots = slots
            unsafe self.pairs = pairs
            unsafe self.singles = singles
        }

        /// The longest symbol in the first `left` bytes of a word: 16 times its code plus its
        /// length, or 0.
        @inline(__always)
        func match(_ word: UInt64, left: Int) -> Int {
            let place = 2 &* SymbolIndex.bucket(word)
            // A bucket is below half the count of slots.
            let first = unsafe slots[place]
            if Self.isMatch(first, word, left) {
                return Int(first.code) &* 16 &+ Int(first.length)
            }
            let second = unsafe slots[place &+ 1]
            if Self.isMatch(second, word, left) {
                return Int(second.code) &* 16 &+ Int(second.length)
            }
            // The hash is below the count of pairs, a byte below that of singles.
            let pair = unsafe pairs[SymbolIndex.pair(word)]
            if UInt64(pair & 0xFFFF) == word & 0xFFFF, pair != 0, left >= 2 {
                return Int(pair >> 16 & 0xFF) &* 16 &+ 2
            }
            let single = unsafe singles[Int(word & 0xFF)]
            return single == 0 ? 0 : Int(single & 0xFF) &* 16 &+ 1
        }

        @inline(__always)
        private static func isMatch(_ slot: Slot, _ word: UInt64, _ left: Int) -> Bool {
            // For an empty slot the shift is meaningless, and the length too great.
            let mask = UInt64.max &>> UInt64(truncatingIfNeeded: 64 &- 8 &* Int(slot.length))
            return (slot.word ^ word) & mask == 0 && Int(slot.length) <= left
        }
    }
}

/// Codes texts with one table.
public struct SymbolEncoder: Sendable {
    private let index: SymbolIndex

    /// An encoder for a table.
    public init(_ table: SymbolTable) {
        index = SymbolIndex(table)
    }

    /// Appends a text's codes.
    /// - Complexity: O(n), some 200 MB/s.
    public func encode(_ text: Span<UInt8>, into target: inout [UInt8]) {
        let needed = 2 * text.count
        target.append(addingCapacity: needed) { free in
            unsafe free.withUnsafeMutableBufferPointer { buffer, initialized in
                guard let base = buffer.baseAddress else { return }
                // The array made room for 2 bytes for each of the text's.
                initialized = index.withView { view in
                    unsafe text.withUnsafeBufferPointer { text in
                        unsafe Self.encode(text, view, base)
                    }
                }
            }
        }
    }

    /// Appends the codes of many texts, which are parts of one array; returns where each ends.
    /// - Complexity: O(n), and the tables are lent only once.
    public func encode(
        _ texts: [Range<Int>],
        of bytes: [UInt8],
        into target: inout [UInt8]
    ) -> [Int] {
        var ends: [Int] = []
        ends.reserveCapacity(texts.count)
        var needed = 0
        for text in texts {
            precondition(text.lowerBound >= 0 && text.upperBound <= bytes.count)
            needed += 2 * text.count
        }
        let start = target.count
        target.append(addingCapacity: needed) { free in
            unsafe free.withUnsafeMutableBufferPointer { buffer, initialized in
                guard let base = buffer.baseAddress else { return }
                initialized = index.withView { view in
                    unsafe bytes.withUnsafeBufferPointer { bytes in
                        var end = 0
                        for text in texts {
                            // Inside the array, and 2 bytes for each of all texts are free.
                            let part = unsafe UnsafeBufferPointer(rebasing: bytes[text])
                            end += unsafe Self.encode(part, view, base + end)
                            ends.append(start + end)
                        }
                        return end
                    }
                }
            }
        }
        return ends
    }

    /// Writes a text's codes into memory of the caller's, which holds twice the text's bytes;
    /// returns how many there are.
    @unsafe public func encode(
        _ text: UnsafeBufferPointer<UInt8>,
        to target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        index.withView { view in unsafe Self.encode(text, view, target) }
    }

    @inline(__always)
    private static func encode(
        _ text: UnsafeBufferPointer<UInt8>,
        _ view: SymbolIndex.View,
        _ target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        var at = 0
        var end = 0
        let count = text.count
        let raw = UnsafeRawBufferPointer(text)
        while at < count {
            let left = count &- at
            var word: UInt64
            if left >= 8 {
                // Eight bytes are there.
                word = unsafe raw.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian
            } else {
                word = 0
                // The bytes up to the end.
                for index in 0..<left {
                    word |= unsafe UInt64(raw[at &+ index]) &<< UInt64(8 &* index)
                }
            }
            let found = view.match(word, left: left)
            // At most two bytes are written for each that is read.
            if found != 0 {
                unsafe target[end] = UInt8(truncatingIfNeeded: found &>> 4)
                end &+= 1
                at &+= found & 15
            } else {
                unsafe target[end] = SymbolTable.escape
                unsafe target[end &+ 1] = UInt8(truncatingIfNeeded: word)
                end &+= 2
                at &+= 1
            }
        }
        return end
    }
}

// The index is never changed once the encoder has it, and holds numbers only.
extension SymbolIndex: Sendable {}

extension SymbolTable {
    /// Appends a coded text's bytes, at most `limit` of them.
    /// - Throws: for a code without a symbol, an escape at the end, a text above the limit.
    public func decode(
        _ coded: Span<UInt8>,
        into target: inout [UInt8],
        limit: Int
    ) throws(SymbolError) {
        let length = try decodedCount(coded)
        guard length <= limit else { throw .textLength }
        var isSound = true
        target.append(addingCapacity: length) { free in
            unsafe free.withUnsafeMutableBufferPointer { buffer, initialized in
                // `length` bytes are free.
                let written = unsafe coded.withUnsafeBufferPointer { coded in
                    unsafe decode(coded, into: buffer)
                }
                isSound = written == length
                initialized = written ?? 0
            }
        }
        if !isSound { throw .code }
    }

    /// Number of bytes of a coded text.
    /// - Throws: for a code without a symbol and an escape at the end.
    public func decodedCount(_ coded: Span<UInt8>) throws(SymbolError) -> Int {
        var sum = 0
        var at = 0
        while at < coded.count {
            let length = Int(lengths[Int(coded[at])])
            at += 1
            sum += length
            if length == 0 {
                guard coded[at - 1] == Self.escape, at < coded.count else { throw .code }
                at += 1
                sum += 1
            }
        }
        return sum
    }

    /// Decodes into memory of the caller's; returns the number of bytes, or nil when the codes are
    /// damaged or the text does not fit. Bytes behind the text may be overwritten up to the end of
    /// the target.
    /// - Complexity: O(n), some 2 GB/s.
    @unsafe public func decode(
        _ coded: UnsafeBufferPointer<UInt8>,
        into target: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        unsafe words.withUnsafeBufferPointer { words in
            unsafe lengths.withUnsafeBufferPointer { lengths in
                unsafe Self.decode(coded, target, words, lengths)
            }
        }
    }

    @inline(__always)
    private static func decode(
        _ coded: UnsafeBufferPointer<UInt8>,
        _ target: UnsafeMutableBufferPointer<UInt8>,
        _ words: UnsafeBufferPointer<UInt64>,
        _ lengths: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        var at = 0
        var end = 0
        let count = coded.count
        let raw = UnsafeMutableRawBufferPointer(target)
        let fastEnd = target.count &- symbolBytesMax
        while at < count, end <= fastEnd {
            let code = unsafe Int(coded[at])
            at &+= 1
            // Both tables have 256 entries, and 8 bytes are free.
            let length = unsafe Int(lengths[code])
            unsafe raw.storeBytes(of: words[code].littleEndian, toByteOffset: end, as: UInt64.self)
            end &+= length
            if length == 0 {
                guard code == Int(escape), at < count else { return nil }
                // One byte is free.
                unsafe target[end] = coded[at]
                at &+= 1
                end &+= 1
            }
        }
        // The last bytes of the target, one by one.
        while at < count {
            let code = unsafe Int(coded[at])
            at &+= 1
            let length = unsafe Int(lengths[code])
            if length == 0 {
                guard code == Int(escape), at < count, end < target.count else { return nil }
                // One byte is free.
                unsafe target[end] = coded[at]
                at &+= 1
                end &+= 1
                continue
            }
            guard end &+ length <= target.count else { return nil }
            for index in 0..<length {
                // The line above made sure of `length` bytes.
                unsafe target[end &+ index] = UInt8(
                    truncatingIfNeeded: words[code] &>> UInt64(8 &* index)
                )
            }
            end &+= length
        }
        return end
    }
}
