// The symbols that the texts of one column are coded with, and their bytes in a store.
//
// The idea is that of P. Boncz, T. Neumann and V. Leis, "FSST: Fast Random Access String
// Compression" (VLDB 2020): a code of one byte stands for 1 to 8 bytes of text, code 255 says that
// the next byte stands for itself. The table is static, so each text is decoded alone.
//
// Invariants
// - At most 255 symbols of 1 to 8 bytes, in the order of their lengths.
// - A code without a symbol has length 0: the decoder refuses it.

/// The symbols of one column.
public struct SymbolTable: Hashable, Sendable {
    /// The most symbols of a table.
    public static let symbolsMax = 255
    /// The most bytes of a symbol.
    public static let symbolBytesMax = 8
    /// The code that says: the next byte stands for itself.
    public static let escape: UInt8 = 255
    /// The most bytes that `encoded()` gives.
    public static let encodedBytesMax = symbolBytesMax + symbolsMax * symbolBytesMax

    /// Bytes of each code's symbol, the first one lowest; 256 words.
    let words: [UInt64]
    /// Bytes of each code's symbol, 0 where there is none; 256 lengths.
    let lengths: [UInt8]
    /// Number of symbols.
    public let count: Int

    /// A table of symbols, whatever their order; of those beyond the limits there must be none.
    init(symbols: [Symbol]) {
        precondition(symbols.count <= Self.symbolsMax, "more symbols than codes")
        var words = [UInt64](repeating: 0, count: 256)
        var lengths = [UInt8](repeating: 0, count: 256)
        let ordered = symbols.sorted { ($0.length, $0.word) < ($1.length, $1.word) }
        for (code, symbol) in ordered.enumerated() {
            words[code] = symbol.word
            lengths[code] = UInt8(symbol.length)
        }
        self.words = words
        self.lengths = lengths
        count = symbols.count
    }

    /// The bytes of a code's symbol; empty for a code without one.
    public func symbol(_ code: UInt8) -> [UInt8] {
        let word = words[Int(code)]
        return (0..<Int(lengths[Int(code)])).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }

    /// The table as a store keeps it: how many symbols have 1, 2, ... 8 bytes (a byte each), then
    /// the symbols in the order of their codes.
    public func encoded() -> [UInt8] {
        var counts = [UInt8](repeating: 0, count: Self.symbolBytesMax)
        var bytes: [UInt8] = []
        for code in 0..<count {
            counts[Int(lengths[code]) - 1] += 1
            bytes += symbol(UInt8(code))
        }
        return counts + bytes
    }

    /// Reads a table that fills the bytes.
    /// - Throws: when there are more symbols than codes, or bytes are missing or left.
    public init(decoding bytes: Span<UInt8>) throws(SymbolError) {
        guard bytes.count >= Self.symbolBytesMax else { throw .tableLength(bytes.count) }
        var count = 0
        var total = Self.symbolBytesMax
        for length in 1...Self.symbolBytesMax {
            count += Int(bytes[length - 1])
            total += Int(bytes[length - 1]) * length
        }
        guard count <= Self.symbolsMax else { throw .tooManySymbols(count) }
        guard total == bytes.count else { throw .tableLength(bytes.count) }
        var words = [UInt64](repeating: 0, count: 256)
        var lengths = [UInt8](repeating: 0, count: 256)
        var code = 0
        var at = Self.symbolBytesMax
        for length in 1...Self.symbolBytesMax {
            for _ in 0..<Int(bytes[length - 1]) {
                for index in 0..<length {
                    words[code] |= UInt64(bytes[at + index]) << UInt64(8 * index)
                }
                lengths[code] = UInt8(length)
                code += 1
                at += length
            }
        }
        self.words = words
        self.lengths = lengths
        self.count = count
    }
}

/// One symbol: up to 8 bytes, the first one lowest, zeros above.
struct Symbol: Hashable {
    var word: UInt64
    var length: Int

    /// The symbol of the first bytes of a word.
    init(_ word: UInt64, length: Int) {
        self.word = word & (UInt64.max >> UInt64(64 - 8 * length))
        self.length = length
    }

    /// This symbol and the one after it, cut off behind 8 bytes.
    func followed(by next: Symbol) -> Symbol {
        let sum = min(length + next.length, SymbolTable.symbolBytesMax)
        return Symbol(word | next.word << UInt64(8 * length), length: sum)
    }
}

/// What is wrong with a table or with a coded text.
public enum SymbolError: Error, Hashable {
    /// The table has as many bytes, which is not what its counts say.
    case tableLength(Int)
    /// The table has as many symbols.
    case tooManySymbols(Int)
    /// A code without a symbol, or an escape with nothing behind it.
    case code
    /// The text has more bytes than the caller takes.
    case textLength
}
