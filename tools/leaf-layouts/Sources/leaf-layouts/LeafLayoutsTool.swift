// The command: measures leaf layouts on cities, paragraphs of files and generated rows.
//
//     leaf-layouts [--cities FILE] [--text FILE]... [--rows N] [--seed N] [--only NAME]

internal import LeafLayouts

/// What the command line says.
private struct Options {
    var cities: String?
    var texts: [String] = []
    var rows = 40_000
    var seed: UInt64 = 20_260
    var only: String?

    /// Nil when the arguments are not understood.
    init?(_ arguments: some Sequence<String>) {
        var iterator = arguments.makeIterator()
        while let option = iterator.next() {
            guard let value = iterator.next() else { return nil }
            switch option {
            case "--cities": cities = value
            case "--text": texts.append(value)
            case "--only": only = value
            case "--rows":
                guard let rows = Int(value), rows > 0 else { return nil }
                self.rows = rows
            case "--seed":
                guard let seed = UInt64(value) else { return nil }
                self.seed = seed
            default: return nil
            }
        }
    }

    /// The datasets, made when their turn comes.
    func datasets() -> [(name: String, make: () throws -> Dataset)] {
        let (rows, seed) = (rows, seed)
        var sets: [(name: String, make: () throws -> Dataset)] = []
        if let cities {
            sets.append(
                ("cities", { try .cities(path: cities, alternateNames: false, seed: seed) })
            )
            sets.append(
                ("alternates", { try .cities(path: cities, alternateNames: true, seed: seed) })
            )
        }
        sets.append(("contacts", { .contacts(rows: rows, seed: seed) }))
        sets.append(("numbers", { .numbers(rows: rows, seed: seed) }))
        sets.append(("beside", { .numbers(rows: rows, isBesideOthers: true, seed: seed) }))
        sets.append(("wide", { .wide(rows: rows / 2, seed: seed) }))
        sets.append(("prose", { .prose(rows: rows, isLong: false, seed: seed) }))
        sets.append(("long", { .prose(rows: rows / 8, isLong: true, seed: seed) }))
        let texts = texts
        if !texts.isEmpty {
            sets.append(("paragraphs", { try .paragraphs(paths: texts, seed: seed) }))
        }
        return sets
    }
}

@main
private enum LeafLayoutsTool {
    static func main() throws {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            print(
                "leaf-layouts [--cities FILE] [--text FILE]... [--rows N] [--seed N] [--only NAME]"
            )
            return
        }
        print("Seed \(options.seed). Processor time, medians of 5 alternating rounds.\n")
        for (name, make) in options.datasets() {
            if let only = options.only, name != only { continue }
            let data = try make()
            // A file without alternate names.
            if data.count == 0 { continue }
            let raw = (data.rows.count - 8) / data.count
            print("## \(data.name): \(data.count) rows, \(raw) raw bytes each\n")
            let heads = [
                "Layout", "bytes a row", "rows a leaf", "encode MB/s", "row ns", "packed row ns",
                "filter ns a row", "pass ns a row", "learn ms",
            ]
            print("| " + heads.joined(separator: " | ") + " |")
            print("|" + String(repeating: "---|", count: heads.count))
            for result in try Measuring(data, seed: options.seed).run(layouts()) {
                print(line(result))
            }
            print("")
        }
        if !options.texts.isEmpty && options.only == nil { try printBlocks(options.texts) }
    }

    /// What symbols and LZ4 make of large pieces of the files.
    private static func printBlocks(_ paths: [String]) throws {
        print("## Pieces of files\n\n| bytes | symbols | LZ4 |\n|---|---|---|")
        for block in TextBlocks.measure(try textBytes(paths: paths)) {
            print("| \(block.size) | \(hundredths(block.symbols)) | \(hundredths(block.blocks)) |")
        }
        print("")
    }

    private static func layouts() -> [any LeafLayout] {
        [
            BlockLeaves("A: LZ4, 8 KiB", blockBytes: 8192, blocks: 1),
            BlockLeaves("B: LZ4, 4 x 2 KiB", blockBytes: 2048, blocks: 4),
            TupleLeaves("C: tuples, 60", rows: 60, codesTexts: false),
            TupleLeaves("C: tuples, 120", rows: 120, codesTexts: false),
            TupleLeaves("C: tuples, 300", rows: 300, codesTexts: false),
            TupleLeaves("D: tuples, symbols, 60", rows: 60, codesTexts: true),
            TupleLeaves("D: tuples, symbols, 120", rows: 120, codesTexts: true),
            TupleLeaves("D: tuples, symbols, 300", rows: 300, codesTexts: true),
            TupleLeaves(
                "F: D and dictionaries, 120",
                rows: 120,
                codesTexts: true,
                hasDictionaries: true
            ),
            TupleLeaves(
                "F: D and dictionaries, 250",
                rows: 250,
                codesTexts: true,
                hasDictionaries: true
            ),
            TupleLeaves(
                "F, learned from 2,000 rows",
                rows: 120,
                codesTexts: true,
                hasDictionaries: true,
                learnsFromFirstRows: 2000
            ),
            ColumnLeaves("E: columns, symbols, 120", rows: 120),
        ]
    }

    private static func line(_ result: Measurement) -> String {
        let cells = [
            result.layout, tenths(result.bytesPerRow), tenths(result.rowsPerLeaf),
            tenths(result.encodedMegabytes), tenths(result.rowNanoseconds),
            tenths(result.packedRowNanoseconds),
            hundredths(result.filterNanoseconds), tenths(result.scanNanoseconds),
            tenths(result.learningMilliseconds),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private static func tenths(_ value: Double) -> String {
        "\((value * 10).rounded() / 10)"
    }

    private static func hundredths(_ value: Double) -> String {
        "\((value * 100).rounded() / 100)"
    }
}
