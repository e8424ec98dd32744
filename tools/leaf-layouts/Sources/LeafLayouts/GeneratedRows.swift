// Rows that are made from a seed: contacts, numbers, wide rows and prose.

extension Dataset {
    /// People in several scripts, with UUIDs, dates, sparse optionals and small enums.
    public static func contacts(rows: Int, seed: UInt64) -> Dataset {
        var chance = SeededGenerator(seed: seed)
        let names = (0..<Vocabulary.scriptCount).map {
            Vocabulary(script: $0, count: 1500, &chance)
        }
        let latin = Vocabulary(script: 0, count: 3000, &chance)
        let types: [ColumnType] = [
            .uuid, .text, .text, .text, .text, .double, .double, .bool, .int, .int, .text, .text,
            .double,
        ]
        var builder = DatasetBuilder("contacts", types, seed: seed)
        let groups = ["family", "friends", "work", "school", "club"]
        var created = 7.0e8
        for _ in 0..<rows {
            // Latin names are three fifths.
            let script = chance.percent(60) ? 0 : chance.below(Vocabulary.scriptCount)
            let first = names[script].word(&chance)
            let last = names[script].any(&chance)
            builder.uuid(chance.next(), chance.next())
            builder.text(first)
            builder.text(last)
            let mail = "\(latin.word(&chance)).\(latin.any(&chance))@\(latin.word(&chance)).example"
            builder.text(chance.percent(80) ? mail : nil)
            let phone =
                "+\(1 + chance.below(98)) \(100 + chance.below(900)) \(chance.below(10_000_000))"
            builder.text(chance.percent(70) ? phone : nil)
            // A birthday at midnight, and when the row was made: microseconds.
            let birthday = Double(chance.below(25_000) - 18_000) * 86_400
            builder.double(chance.percent(40) ? birthday : nil)
            created += Double(chance.below(40_000_000)) / 1_000_000
            builder.double((created * 1_000_000).rounded() / 1_000_000)
            builder.bool(chance.percent(8))
            builder.int(Int64(chance.below(6)))
            builder.int(chance.percent(5) ? Int64(chance.below(100_000)) : nil)
            builder.text(chance.percent(50) ? groups[chance.below(groups.count)] : nil)
            builder.text(chance.percent(6) ? latin.prose(20 + chance.below(80), &chance) : nil)
            builder.double(chance.percent(10) ? Double(chance.below(500)) / 100 : nil)
            builder.endRow()
        }
        return builder.finish(filter: 8, above: 2)
    }

    /// Numbers, flags and dates only; with other entities' IDs between the keys if asked for.
    public static func numbers(rows: Int, isBesideOthers: Bool = false, seed: UInt64) -> Dataset {
        var chance = SeededGenerator(seed: seed)
        let types: [ColumnType] = [.int, .int, .double, .double, .bool, .int, .int]
        let name = isBesideOthers ? "numbers beside other entities" : "numbers"
        let keyStep = isBesideOthers ? 12 : 1
        var builder = DatasetBuilder(name, types, seed: seed, keyStep: keyStep)
        var time = 7.5e8
        for row in 0..<rows {
            builder.int(Int64(chance.below(1000)))
            builder.int(Int64(row / 4 + chance.below(50)))
            time += Double(1 + chance.below(120))
            builder.double(time)
            builder.double(Double(chance.below(100_000)) / 100)
            builder.bool(chance.percent(30))
            builder.int(chance.percent(90) ? Int64(chance.below(5)) : nil)
            builder.int(Int64(chance.below(2_000_000)) - 1_000_000)
            builder.endRow()
        }
        return builder.finish(filter: 0, above: 500)
    }

    /// Sixty columns, half of them mostly nil.
    public static func wide(rows: Int, seed: UInt64) -> Dataset {
        var chance = SeededGenerator(seed: seed)
        let words = Vocabulary(script: 0, count: 2000, &chance)
        let kinds: [ColumnType] = [.int, .text, .bool, .double, .int, .double]
        let types = (0..<60).map { kinds[$0 % kinds.count] }
        var builder = DatasetBuilder("60 columns", types, seed: seed)
        for row in 0..<rows {
            for column in 0..<60 {
                let isSparse = column >= 30
                if isSparse && !chance.percent(column % 4 == 0 ? 15 : 4) {
                    builder.null()
                    continue
                }
                switch column % kinds.count {
                case 0: builder.int(Int64(chance.below(2 << (column / 3))))
                case 1: builder.text(words.word(&chance))
                case 2: builder.bool(chance.percent(30))
                case 3: builder.double(Double(chance.below(100_000)) / 100)
                case 4: builder.int(Int64(row + chance.below(1000)))
                default: builder.double(7.0e8 + Double(row * 60 + chance.below(3600)))
                }
            }
            builder.endRow()
        }
        return builder.finish(filter: 4, above: Int64(rows / 2))
    }

    /// Texts of 40 to 300 bytes, or of 300 to 3,000.
    public static func prose(rows: Int, isLong: Bool, seed: UInt64) -> Dataset {
        var chance = SeededGenerator(seed: seed)
        let words = Vocabulary(script: 0, count: 8000, &chance)
        let name = isLong ? "long prose" : "prose"
        var builder = DatasetBuilder(name, [.int, .double, .text], seed: seed)
        for row in 0..<rows {
            builder.int(Int64(chance.below(4000)))
            builder.double(8e8 + Double(row * 61 + chance.below(60)))
            let bytes = isLong ? 300 + chance.below(2700) : 40 + chance.below(260)
            builder.text(words.prose(bytes, &chance))
            builder.endRow()
        }
        return builder.finish(filter: 0, above: 2000)
    }
}
