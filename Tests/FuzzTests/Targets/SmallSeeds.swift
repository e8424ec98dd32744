// The inputs that the targets of small inputs begin with: one for each thing they can do.

import VarveTesting

enum SmallSeeds {
    typealias Seeds = [(name: String, bytes: [UInt8])]

    /// A number of a seed store, flags, edits.
    @Sendable static func tail() -> Seeds {
        var seeds: Seeds = []
        for store in UInt8(0)..<UInt8(truncatingIfNeeded: SeedStore.all.count) {
            switch store % 3 {
            case 0: seeds.append(("edit-\(store)", [store, 0, 0, 20, 0, 1]))
            case 1: seeds.append(("cut-\(store)", [store, 0, 2, 40, 0]))
            default: seeds.append(("page-\(store)", [store, 1, 6, 8, 0, 0, 0, 0, 0, 0, 0, 9]))
            }
        }
        seeds.append(("sector", [2, 0, 5, 0, 3, 0, 1]))
        seeds.append(("behind", [2, 0, 4, 5, 70, 86, 1, 2, 9]))
        return seeds
    }

    /// The number of a decoder, and what it reads.
    @Sendable static func record() -> Seeds {
        let values: [StoredValue?] = [
            .null, .bool(true), nil, .int(-2), .int(1 << 40), .double(1.5), .float(2), .date(0),
            .text("h\u{e9}"), .data([0, 1]), .uuid(UUIDValue(high: 1, low: 2)),
            .decimal(DecimalValue(isNegative: true, exponent: -2, digits: [1, 2, 5])),
            .reference(ObjectID(7)), .text(String(repeating: "a", count: 300)),
        ]
        let row = RowCoding.encode(values)
        var seeds: Seeds = [("row", [0] + row)]
        if let outside = try? RowCoding.movingOutside(row, above: 256).row {
            seeds.append(("outside-row", [0] + outside))
        }
        let patch = RowPatch.encode([(ColumnID(1), .int(5)), (ColumnID(8), nil)])
        seeds.append(("patch", [2, UInt8(min(row.count, 255))] + row.prefix(255) + patch))
        let packed = BlockCompression.compressAlways([UInt8](repeating: 7, count: 1000)) ?? []
        seeds.append(("block", [5, 0xE8, 3, 0, 0] + packed))
        for store in SeedStore.all {
            guard let log = LogParts(store.bytes) else { continue }
            for (index, part) in log.parts.enumerated() where part.payload.count < 2000 {
                let name = "\(store.name)-\(index)"
                let body = Array(part.payload.dropFirst(part.front))
                switch part.kind {
                case 5: seeds.append((name, [7] + part.payload))
                case 1: seeds.append((name, [9] + body))
                case 2, 3: seeds.append((name, [8] + body))
                default: seeds.append((name, [6] + part.payload))
                }
            }
        }
        if let schema = storedSchema() { seeds.append(("schema", [3] + schema)) }
        return seeds
    }

    private static func storedSchema() -> [UInt8]? {
        guard let store = SeedStore.all.first(where: { $0.name == "types" }) else { return nil }
        let disk = StoreChecks.disk(store.bytes)
        let options = StoreChecks.options(.readOnly)
        let opened = try? RecordStore.openAsStored(disk.location(), options: options)
        return opened?.engine.snapshot().schema
    }

    @Sendable static func key() -> Seeds {
        var seeds: Seeds = []
        for (number, value) in SeedMaker.everything.enumerated() {
            var key: [UInt8] = []
            KeyCoding.append(value.1, to: &key)
            let bytes = [0, UInt8(number % 10), 1, 2, 3, 4, 5, 6, 7, 8, UInt8(number % 10), 9]
            seeds.append((value.0, bytes + [1, 0, 5, 6, 7, 8, 9] + key))
        }
        return seeds
    }

    /// Kinds, names, contents.
    @Sendable static func names() -> Seeds {
        let names = [
            "", "..", "new-0123456789abcdef", "NEW-0123456789ABCDEF", "new-0123456789abcdeg",
            String(repeating: "a", count: 64), String(repeating: "A", count: 64),
            String(repeating: "0", count: 63), "a b\n", "\u{e9}\u{0301}", "store.varve-new-",
        ]
        var seeds: Seeds = names.enumerated().map { number, name in
            let text = Array(name.utf8)
            return ("name-\(number)", [UInt8(number), UInt8(number % 6), UInt8(text.count)] + text)
        }
        for kind in UInt8(0)..<6 { seeds.append(("own-\(kind)", [kind, 6 + kind, 0])) }
        return seeds
    }

    /// Steps: see `ModelTarget`.
    @Sendable static func model() -> Seeds {
        var seeds: Seeds = []
        for number in UInt8(0)..<16 {
            var random = SeededRandom(seed: UInt64(number))
            seeds.append(("steps-\(number)", random.bytes(20 + Int(number) * 12)))
        }
        return seeds
    }

    @Sendable static func predicate() -> Seeds {
        let filters = [
            "text == \"a\"", "int >= -5 && bool = true",
            "text.contains('SEA', ignoringCase: true)\n-text int",
            "group.name.hasPrefix('group')", "tags.count > 1", "blob.length < 900",
            "uuid == 00000000-0000-0001-0000-000000000002", "date > 2000-12-31T00:00Z",
            "decimal == -1.25\ndecimal", "id == Item:40", "group != null && id < Item:100",
            "data == null", "wide <= 18446744073709551615", "double != nan\ngroup.name -double",
            "!(tags.any { text in [\"a\"] }) || int in -5..<7",
            "date.year(in: \"Europe/Berlin\") == 2001 || `text` == text",
        ]
        return filters.enumerated().map { ("filter-\($0.offset)", Array($0.element.utf8)) }
    }
}
