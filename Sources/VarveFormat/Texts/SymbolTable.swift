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
struct SymbolTable: Hashable, Sendable {
    /// The most symbols of a table.
    static let symbolsMax = 255
    /// The most bytes of a symbol.
    static let symbolBytesMax = 8
    /// The code that says: the next byte stands for itself.
    static let escape: UInt8 = 255

    /// The symbols in the order of their codes.
    let symbols: [Symbol]

    /// A table of symbols, whatever their order; of those beyond the limits there must be none.
    init(symbols: [Symbol]) {
        precondition(symbols.count <= Self.symbolsMax, "more symbols than codes")
        self.symbols = symbols.sorted { ($0.length, $0.word) < ($1.length, $1.word) }
    }

    /// Appends the table as a store keeps it: how many symbols have 1, 2, ... 8 bytes (a byte
    /// each), then the symbols in the order of their codes.
    func append(to writer: inout ByteWriter) {
        var counts = [UInt8](repeating: 0, count: Self.symbolBytesMax)
        for symbol in symbols { counts[symbol.length - 1] += 1 }
        writer.raw(counts)
        for symbol in symbols {
            for index in 0..<symbol.length {
                writer.u8(UInt8(truncatingIfNeeded: symbol.word >> UInt64(8 * index)))
            }
        }
    }

    /// Reads a table.
    /// - Throws: when there are more symbols than codes, or bytes are missing.
    init(from reader: inout ByteReader) throws(FormatError) {
        var counts: [Int] = []
        for _ in 0..<Self.symbolBytesMax { counts.append(Int(try reader.u8("symbol count"))) }
        let sum = counts.reduce(0, +)
        guard sum <= Self.symbolsMax else {
            throw reader.error("symbols", "\(sum)", "at most \(Self.symbolsMax)")
        }
        var symbols: [Symbol] = []
        symbols.reserveCapacity(sum)
        for length in 1...Self.symbolBytesMax {
            for _ in 0..<counts[length - 1] {
                var word: UInt64 = 0
                for index in 0..<length {
                    word |= UInt64(try reader.u8("symbol")) << UInt64(8 * index)
                }
                symbols.append(Symbol(word, length: length))
            }
        }
        // In the order of their codes, whatever their bytes.
        self.symbols = symbols
    }
}

/// One symbol: up to 8 bytes, the first one lowest, zeros above.
struct Symbol: Hashable, Sendable {
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
