// Learning a symbol table from a sample of a column's texts.
//
// In each of five generations the sample is coded with the symbols so far, and what was used is
// counted: each symbol, and each pair of neighbours. The symbols of the next generation are those
// symbols and joined pairs that stand for the most bytes.
//
// Invariants
// - The same sample gives the same table.

/// Texts that a table is learned from.
struct SymbolSample {
    /// The most bytes of a sample; what is added beyond is left out.
    static let bytesMax = 16 * 1024

    private(set) var bytes: [UInt8] = []
    private(set) var ends: [Int] = []

    /// Adds a text, of which the front is taken when the sample gets full.
    mutating func add(_ text: ArraySlice<UInt8>) {
        let front = text.prefix(Self.bytesMax - bytes.count)
        if front.isEmpty { return }
        bytes += front
        ends.append(bytes.count)
    }
}

extension SymbolTable {
    private static let generations = 5

    /// Learns a table.
    /// - Complexity: O(sample), some milliseconds.
    init(learningFrom sample: SymbolSample) {
        var symbols: [Symbol] = []
        let index = SymbolMemory(tables: 1)
        for generation in 1...Self.generations {
            var counts = SymbolCounts()
            counts.count(sample, index)
            let joins = generation < Self.generations
            symbols = Self.best(counts.candidates(symbols, joins: joins), index)
        }
        self.init(symbols: symbols)
    }

    /// The symbols that stand for the most bytes; puts them into the index.
    private static func best(_ candidates: [Symbol: Int], _ index: SymbolMemory) -> [Symbol] {
        let ordered = candidates.sorted {
            if $0.value != $1.value { return $0.value > $1.value }
            return ($0.key.length, $0.key.word) > ($1.key.length, $1.key.word)
        }
        var symbols: [Symbol] = []
        index.clear(0)
        for (symbol, _) in ordered {
            if symbols.count == symbolsMax { break }
            if index.insert(0, symbol, code: symbols.count) { symbols.append(symbol) }
        }
        return symbols
    }
}

/// How often the codes of a sample, and pairs of neighbours, are used. A byte without a symbol
/// counts as code 256 and the byte.
private struct SymbolCounts {
    private static let codes = 512
    /// What a symbol of one byte counts for. By its bytes it would be 1; but a byte without a
    /// symbol takes two, and slows the decoder down.
    private static let singleByteWeight = 4

    private var singles = [Int](repeating: 0, count: codes)
    private var pairs = [UInt16](repeating: 0, count: codes * codes)
    /// Pairs that are not 0.
    private var used: [Int] = []

    mutating func count(_ sample: SymbolSample, _ index: SymbolMemory) {
        let bytes = sample.bytes + [UInt8](repeating: 0, count: 8)
        var at = 0
        for end in sample.ends {
            var previous = -1
            while at < end {
                let found = index.match(ByteReader.load64(bytes, at), left: end - at)
                let code = found == 0 ? 256 + Int(bytes[at]) : found & 255
                let length = found == 0 ? 1 : found >> 8
                add(code, after: previous)
                if length > 1 {
                    // The first byte alone, too, or single bytes would die out.
                    add(256 + Int(bytes[at]), after: -1)
                    if previous >= 0 { addPair(previous, 256 + Int(bytes[at])) }
                }
                previous = code
                at += length
            }
        }
    }

    /// Each symbol with the number of bytes that it would stand for.
    func candidates(_ symbols: [Symbol], joins: Bool) -> [Symbol: Int] {
        var gains: [Symbol: Int] = [:]
        func symbol(_ code: Int) -> Symbol {
            code < 256 ? symbols[code] : Symbol(UInt64(code - 256), length: 1)
        }
        for code in 0..<Self.codes where singles[code] > 0 {
            let symbol = symbol(code)
            let weight = symbol.length == 1 ? Self.singleByteWeight : symbol.length
            gains[symbol, default: 0] += singles[code] * weight
        }
        if !joins { return gains }
        for pair in used where pairs[pair] > 1 {
            let joined = symbol(pair / Self.codes).followed(by: symbol(pair % Self.codes))
            gains[joined, default: 0] += Int(pairs[pair]) * joined.length
        }
        return gains
    }

    private mutating func add(_ code: Int, after previous: Int) {
        singles[code] += 1
        if previous >= 0 { addPair(previous, code) }
    }

    private mutating func addPair(_ first: Int, _ second: Int) {
        let pair = first * Self.codes + second
        if pairs[pair] == 0 { used.append(pair) }
        // A sample has fewer pairs than the type holds.
        pairs[pair] &+= 1
    }
}
