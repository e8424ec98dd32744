// The symbol tables of the text columns of one tree: their bytes, and how they are learned.
//
// Invariants
// - Never changed once made, so that any thread may read it.
// - Columns ascend; a column has at most one table.
// Format.md, chapter "Sets of symbol tables".

/// Symbol tables of the text columns of one tree, ready to code and to decode. Immutable.
public final class SymbolSet: Sendable {
    /// The most tables of a set.
    public static let tablesMax = 1024

    /// Column of each table, ascending.
    let columns: [UInt16]
    let tables: [SymbolTable]
    /// The tables as coder and decoder read them.
    let memory: SymbolMemory
    /// For each column the place of its table and 1; 0: it has none.
    private let numbers: [UInt16]

    init(columns: [UInt16], tables: [SymbolTable]) {
        precondition(columns.count == tables.count && columns.count <= Self.tablesMax)
        self.columns = columns
        self.tables = tables
        memory = SymbolMemory(tables: tables.count)
        for (index, table) in tables.enumerated() {
            for (code, symbol) in table.symbols.enumerated() {
                memory.insert(index, symbol, code: code)
            }
        }
        var numbers = [UInt16](repeating: 0, count: Int(columns.last ?? 0) + 1)
        for (index, column) in columns.enumerated() { numbers[Int(column)] = UInt16(index + 1) }
        self.numbers = numbers
    }

    /// Reads a set that fills a range of bytes.
    /// - Throws: for more than 1,024 tables or 255 symbols of one, columns that do not ascend or
    ///   are beyond the last one that a row may have, bytes that are missing or left.
    /// - Complexity: O(bytes).
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
            guard column < RowCoding.columnsMax, columns.last.map({ $0 < column }) ?? true else {
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
        tables.reduce(2 * numbers.count + SymbolMemory.tableBytes) {
            $0 + SymbolMemory.tableBytes + $1.symbols.count * MemoryLayout<Symbol>.stride
        }
    }

    /// The number of a column's table in plans; 0: it has none.
    @inline(__always)
    func number(ofColumn column: Int) -> Int { column < numbers.count ? Int(numbers[column]) : 0 }

    /// Learns from sample rows (about 16 KiB of texts per column are enough); nil where no column
    /// gains. Three texts of four are learned from, and the fourth judges what was learned.
    /// - Complexity: some milliseconds for each text column.
    public static func learned(from rows: LeafRows) -> SymbolSet? {
        var columns: [UInt16] = []
        var tables: [SymbolTable] = []
        for (column, texts) in textColumns(of: rows).enumerated() where !texts.isEmpty {
            if let table = table(learnedFrom: texts, of: rows.bytes) {
                columns.append(UInt16(column))
                tables.append(table)
            }
        }
        return columns.isEmpty ? nil : SymbolSet(columns: columns, tables: tables)
    }

    /// Where the texts of each column lie in the rows; damaged rows have none.
    private static func textColumns(of rows: LeafRows) -> [[Range<Int>]] {
        var columns: [[Range<Int>]] = []
        for index in 0..<rows.count {
            let range = rows.range(index)
            let row = rows.bytes.span.extracting(range)
            guard let layout = try? RowLayout(row) else { continue }
            layout.forEachSlot(in: row) { column, slot in
                guard RowTag.isText(slot.tag) else { return }
                while columns.count <= column { columns.append([]) }
                let body = slot.body
                columns[column].append(
                    range.lowerBound + body.lowerBound..<range.lowerBound + body.upperBound
                )
            }
        }
        return columns
    }

    /// A table for texts, or nil where it would save less than a twentieth.
    private static func table(
        learnedFrom texts: [Range<Int>],
        of bytes: [UInt8]
    ) -> SymbolTable? {
        let sum = texts.reduce(0) { $0 + $1.count }
        if sum < 512 { return nil }
        // So many texts in a row fill the sample, however many there are.
        let step = max(1, sum / SymbolSample.bytesMax)
        var sample = SymbolSample()
        var judges: [Range<Int>] = []
        for index in stride(from: 0, to: texts.count, by: step) {
            if index / step % 4 == 3 {
                judges.append(texts[index])
            } else {
                sample.add(bytes[texts[index]])
            }
        }
        let table = SymbolTable(learningFrom: sample)
        let memory = SymbolMemory(tables: 1)
        for (code, symbol) in table.symbols.enumerated() { memory.insert(0, symbol, code: code) }
        var raw = 0
        var coded = 0
        for judge in judges {
            raw += judge.count
            coded += memory.encode(0, bytes, judge).count
        }
        return 20 * coded < 19 * raw ? table : nil
    }
}
