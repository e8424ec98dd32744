// FENCE: the symbol tables of the text columns of one tree, in memory as the decoder reads them.
//
// Invariants
// - Never changed once made, so that any thread may read it.
// - A table in memory is 256 words, then 256 lengths: every code has its place.
// - Coded bytes are input: a code without a symbol and an escape at the end are damage, and nothing
//   is written behind the limit that the caller gives, but for 7 bytes.
// Format.md, chapter "Sets of symbol tables".

/// Symbol tables of the text columns of one tree, ready to code and to decode. Immutable.
@safe public final class SymbolSet: Sendable {
    /// The most tables of a set.
    public static let tablesMax = 1024

    /// Column of each table, ascending.
    let columns: [UInt16]
    let tables: [SymbolTable]
    /// The tables as the decoder reads them.
    private let decoders: SymbolDecoders

    /// Bytes of a table in memory.
    static let tableBytes = 256 * 8 + 256
    static let lengthsOffset = 256 * 8

    init(columns: [UInt16], tables: [SymbolTable]) {
        precondition(columns.count == tables.count && columns.count <= Self.tablesMax)
        self.columns = columns
        self.tables = tables
        decoders = SymbolDecoders(tables)
    }

    /// Reads a set that fills a range of bytes.
    /// - Throws: for more than 1,024 tables or 255 symbols, columns that do not ascend, bytes that
    ///   are missing or left.
    public convenience init(
        decoding bytes: [UInt8],
        range: Range<Int>,
        place: FormatPlace
    ) throws(FormatError) {
        var reader = ByteReader(bytes, range: range, place: place)
        let count = Int(try reader.u16("tables"))
        guard count <= Self.tablesMax else {
            throw reader.error("tables", "\(count)", "at most \(Self.tablesMax)")
        }
        var columns: [UInt16] = []
        var tables: [SymbolTable] = []
        for _ in 0..<count {
            let column = try reader.u16("column")
            guard column < RowCoding.columnsMax, column > columns.last ?? 0 || columns.isEmpty
            else {
                throw reader.error("column", "\(column)", "ascending columns")
            }
            columns.append(column)
            tables.append(try SymbolTable(from: &reader))
        }
        try reader.finish("symbol set")
        self.init(columns: columns, tables: tables)
    }

    /// The bytes in a store.
    public func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.u16(UInt16(tables.count))
        for (column, table) in zip(columns, tables) {
            writer.u16(column)
            table.append(to: &writer)
        }
        return writer.bytes
    }

    /// Number of tables.
    public var tableCount: Int { tables.count }

    /// Bytes of memory.
    public var byteCount: Int {
        tables.count * Self.tableBytes
            + tables.reduce(0) { $0 + $1.symbols.count * MemoryLayout<Symbol>.stride }
    }

    /// Learns from sample rows (about 16 KiB of texts per column are enough); nil where no column
    /// gains.
    public static func learned(from rows: LeafRows) -> SymbolSet? {
        nil
    }

    /// The tables' memory, which lives as long as the set.
    @unsafe var memory: UnsafeRawPointer { unsafe UnsafeRawPointer(decoders.memory) }

    /// Decodes `count` bytes at `source` with the table at `table` to `target`, at most `limit`
    /// bytes; returns how many, or nil when the codes are damaged or the text does not fit.
    /// Up to 7 bytes behind the text may be overwritten.
    @inline(__always)
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
            // A table has 256 words and 256 lengths; `at` is below `count`.
            let code = unsafe Int(source.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            let length = unsafe Int(
                table.load(fromByteOffset: lengthsOffset &+ code, as: UInt8.self)
            )
            if end > limit { return nil }
            // At most `limit`, and the caller has 8 bytes more.
            let word = unsafe table.load(fromByteOffset: 8 &* code, as: UInt64.self)
            unsafe target.storeBytes(of: word, toByteOffset: end, as: UInt64.self)
            end &+= length
            if length == 0 {
                guard code == Int(SymbolTable.escape), at < count else { return nil }
                // As above.
                unsafe target.storeBytes(
                    of: source.load(fromByteOffset: at, as: UInt8.self),
                    toByteOffset: end,
                    as: UInt8.self
                )
                at &+= 1
                end &+= 1
            }
        }
        return end <= limit ? end : nil
    }
}

/// Memory of the decoder's tables.
@safe private final class SymbolDecoders {
    @unsafe let memory: UnsafeMutableRawPointer

    init(_ tables: [SymbolTable]) {
        let bytes = max(8, tables.count * SymbolSet.tableBytes)
        // Given back by `deinit`.
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        for (index, table) in tables.enumerated() {
            let base = unsafe memory + index * SymbolSet.tableBytes
            for (code, symbol) in table.symbols.enumerated() {
                // At most 255 symbols: inside the table.
                unsafe base.storeBytes(
                    of: symbol.word.littleEndian,
                    toByteOffset: 8 * code,
                    as: UInt64.self
                )
                unsafe base.storeBytes(
                    of: UInt8(symbol.length),
                    toByteOffset: SymbolSet.lengthsOffset + code,
                    as: UInt8.self
                )
            }
        }
        unsafe self.memory = memory
    }

    deinit {
        // Allocated by `init`.
        unsafe memory.deallocate()
    }
}

// The memory is written by `init` only, before anybody else has it.
extension SymbolDecoders: @unchecked Sendable {}
