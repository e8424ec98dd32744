// Symbol tables for the text columns of a dataset.

internal import SymbolTables

/// A table for each text column, or nil where coding does not pay.
struct ColumnTables {
    private(set) var tables: [SymbolTable?]
    private(set) var encoders: [SymbolEncoder?]
    private(set) var bytes = 0

    /// No tables: texts stay as they are.
    init(none data: Dataset) {
        tables = data.types.map { _ in nil }
        encoders = data.types.map { _ in nil }
    }

    /// Learns from rows all over the dataset, or all over its first rows, and judges by others.
    init(_ data: Dataset, firstRows: Int = .max) throws(LeafError) {
        self.init(none: data)
        let rows = 0..<min(firstRows, data.count)
        var sizes = [Int](repeating: 0, count: data.types.count)
        try Self.forEachText(data, rows) { column, text in sizes[column] += text.count }
        for column in data.types.indices where data.types[column] == .text {
            // A text in so many fills the sample.
            let step = max(1, sizes[column] / SymbolSample.bytesMax)
            var sample = SymbolSample()
            var seen = 0
            var others: [Range<Int>] = []
            try Self.forEachText(data, rows) { place, text in
                guard place == column else { return }
                if seen % step == 0 { sample.add(data.rows.span.extracting(text)) }
                if seen % step == step / 2 { others.append(text) }
                seen += 1
            }
            let table = SymbolTable(learningFrom: sample)
            let encoder = SymbolEncoder(table)
            var raw = 0
            var coded: [UInt8] = []
            for text in others {
                raw += text.count
                encoder.encode(data.rows.span.extracting(text), into: &coded)
            }
            let size = table.encoded().count
            // Twice, as a store would keep it.
            if coded.count * sizes[column] / max(1, raw) + 2 * size < sizes[column] * 19 / 20 {
                tables[column] = table
                encoders[column] = encoder
                bytes += 2 * size
            }
        }
    }

    private static func forEachText(
        _ data: Dataset,
        _ rows: Range<Int>,
        _ body: (Int, Range<Int>) -> Void
    ) throws(LeafError) {
        try ByteView.lend(data.rows) { (view) throws(LeafError) in
            for row in rows {
                try PackedRow.forEach(view, data.range(row).lowerBound) { column, value in
                    if case .text(let at, let length) = value { body(column, at..<at + length) }
                }
            }
        }
    }
}
