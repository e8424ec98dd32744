// The stores that fuzzing begins with: each feature, each kind of frame, each class of error.
//
// They are made when they are needed and not kept as files: the same bytes in every run, in the
// format of today, and nothing to bring up to date. Stores of earlier versions are kept in
// Tests/CompatibilityTests, inputs that once failed in tools/fuzz/Corpus.

import VarveTesting

/// A store file by name.
public struct SeedStore: Sendable {
    /// What it shows.
    public let name: String
    /// The bytes of its file.
    public let bytes: [UInt8]

    /// All of them, made once.
    public static let all: [SeedStore] = {
        do { return try SeedMaker.all() } catch { fatalError("the seed stores: \(error)") }
    }()
}

/// Everything from one number: the same bytes in every run.
final class SeedMaker {
    let disk = SimulatedDisk()
    private(set) var store: RecordStore
    private var adjust: (inout EngineOptions) -> Void
    private var random = SeededRandom(seed: 5)
    private var pending: [PendingBlob] = []
    private var next: UInt64 = 100

    static let schema = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "Item",
                attributes: types.map { name, type in
                    AttributeDescription(
                        name: name,
                        type: type,
                        isOptional: true,
                        externalLimit: type == .blob ? 900 : nil
                    )
                },
                relationships: [
                    RelationshipDescription(name: "group", target: "Group", inverse: "items"),
                    RelationshipDescription(
                        name: "tags",
                        target: "Group",
                        isToMany: true,
                        isOrdered: true
                    ),
                ],
                indexes: [
                    IndexDescription("text"), IndexDescription("int", "text"),
                    IndexDescription("decimal"),
                    IndexDescription([
                        IndexDescription.Term("double", isDescending: true),
                        IndexDescription.Term("data"),
                    ]),
                ]
            ),
            EntityDescription(
                name: "Group",
                attributes: [
                    AttributeDescription(name: "name", type: .text, defaultValue: .text("none"))
                ],
                relationships: [
                    RelationshipDescription(
                        name: "items",
                        target: "Item",
                        inverse: "group",
                        isToMany: true
                    )
                ],
                uniqueConstraints: [UniqueConstraintDescription(["name"])]
            ),
        ]
    )

    static let types: [(String, AttributeType)] = [
        ("bool", .bool), ("int", .int64), ("small", .uint8), ("wide", .uint64), ("float", .float),
        ("double", .double), ("date", .date), ("text", .text), ("data", .data), ("uuid", .uuid),
        ("decimal", .decimal), ("url", .url), ("blob", .blob),
    ]

    init(_ adjust: @escaping (inout EngineOptions) -> Void = { _ in }) throws {
        self.adjust = adjust
        store = try Self.open(disk, Self.schema, adjust)
    }

    private static func open(
        _ disk: SimulatedDisk,
        _ schema: SchemaDescription,
        _ adjust: (inout EngineOptions) -> Void
    ) throws -> RecordStore {
        var options = StoreChecks.options(.createIfMissing)
        options.engine.inlineValueBytesMax = 256
        adjust(&options.engine)
        return try RecordStore.open(disk.location(), schema: schema, options: options)
    }

    var bytes: [UInt8] {
        let state = disk.state
        guard let file = state.file("test.varve") else { return [] }
        return state.files[file]?.cache ?? []
    }

    func values(_ entity: RecordEntity, _ fields: [(String, StoredValue)]) -> [ColumnValue] {
        fields.compactMap { name, value in
            if let attribute = entity.attribute(named: name) {
                return ColumnValue(attribute.column, value)
            }
            guard case .column(let column, _)? = entity.relationship(named: name)?.storage else {
                return nil
            }
            return ColumnValue(column, value)
        }
    }

    func entity(_ name: String) throws -> RecordEntity {
        guard let entity = try store.schema.entity(named: name) else {
            throw RecordError.unknownEntity(name)
        }
        return entity
    }

    /// One commit with these objects.
    func put(_ name: String, _ objects: [(UInt64, [(String, StoredValue)])]) throws {
        let entity = try entity(name)
        _ = try store.write(author: "seed") { transaction in
            for (id, fields) in objects {
                try transaction.insert(entity.id, ObjectID(id), values(entity, fields))
            }
        }
    }

    func items(_ count: Int, text: Int = 6) throws {
        var objects: [(UInt64, [(String, StoredValue)])] = []
        for _ in 0..<count {
            next += 1
            let word = String(repeating: "k\(next * 7 % 31)", count: max(1, text / 3))
            objects.append(
                (
                    next,
                    [("text", .text(word)), ("int", .int(Int64(next) % 5)), ("bool", .bool(true))]
                )
            )
        }
        try put("Item", objects)
    }

    func blob(_ count: Int) throws -> StoredValue {
        let writer = try store.engine.makeBlobWriter(externalLimit: 900)
        try writer.append(random.bytes(count))
        let blob = try writer.finish()
        pending.append(blob)
        return .blob(blob.reference)
    }

    func delete(_ name: String, _ ids: ClosedRange<UInt64>) throws {
        let entity = try entity(name)
        _ = try store.write { transaction in
            for id in ids { _ = try transaction.deleteIfPresent(entity.id, ObjectID(id)) }
        }
    }

    /// A row with a value of every type.
    static let everything: [(String, StoredValue)] = [
        ("bool", .bool(false)), ("int", .int(.min)), ("small", .int(200)), ("wide", .int(.max)),
        ("float", .float(-0.5)), ("double", .double(.infinity)), ("date", .date(-1)),
        ("text", .text("a\u{0}é")), ("data", .data([0, 255, 0])),
        ("uuid", .uuid(UUIDValue(high: 1, low: 2))),
        ("decimal", .decimal(DecimalValue(isNegative: true, exponent: -2, digits: [1, 2, 5]))),
        ("url", .text("https://example.org")),
    ]

    /// Another process, with another schema when one is given.
    func reopen(_ schema: SchemaDescription = SeedMaker.schema, kills: Bool = false) throws {
        if !kills { try store.close() }
        disk.kill()
        store = try Self.open(disk, schema, adjust)
    }
}

extension SeedMaker {
    static func all() throws -> [SeedStore] {
        var seeds: [SeedStore] = []
        func add(
            _ name: String,
            closes: Bool = true,
            _ adjust: @escaping (inout EngineOptions) -> Void = { _ in },
            _ work: (SeedMaker) throws -> Void
        ) throws {
            let maker = try SeedMaker(adjust)
            try work(maker)
            let open = maker.bytes
            try maker.store.close()
            seeds.append(SeedStore(name: name, bytes: closes ? maker.bytes : open))
            maker.disk.kill()
        }
        try add("empty") { _ in }
        try add("types") { try $0.put("Item", [(1, everything)]) }
        try add("open-delta", closes: false) { try $0.items(3) }
        try add("open-checkpoint", closes: false) {
            try $0.items(3)
            try $0.store.engine.checkpoint()
            try $0.items(2)
        }
        try add("tree") { try $0.items(60) }
        try add("three-levels", { $0.nodeWeightMax = 256 }) { try $0.items(120) }
        try add("deltas") { for _ in 0..<6 { try $0.items(2) } }
        try add("tree-commit", { $0.deltaBytesMax = 200 }) {
            try $0.items(20)
            try $0.items(3)
        }
        try add("deleted") {
            try $0.items(12)
            try $0.delete("Item", 101...108)
        }
        try add("emptied") {
            try $0.items(5)
            try $0.delete("Item", 101...105)
        }
        try add("updated") { maker in
            try maker.items(4)
            let item = try maker.entity("Item")
            _ = try maker.store.write { transaction in
                try transaction.update(
                    item.id,
                    ObjectID(102),
                    maker.values(item, [("text", .text("changed")), ("int", .null)])
                )
            }
        }
        try add("large-values") {
            let long = String(repeating: "long ", count: 200)
            try $0.put(
                "Item",
                [
                    (1, [("text", .text(long))]),
                    (2, [("data", .data([UInt8](repeating: 7, count: 700)))]),
                ]
            )
            try $0.store.engine.checkpoint()
            try $0.delete("Item", 2...2)
        }
        try add("cut-keys") {
            try $0.put(
                "Item",
                [
                    (1, [("text", .text(String(repeating: "x", count: 256)))]),
                    (2, [("data", .data([UInt8](repeating: 0, count: 250)))]),
                ]
            )
        }
        try add("blobs-in-log") {
            let blob = try $0.blob(300)
            try $0.put("Item", [(1, [("blob", blob)]), (2, [("blob", blob)])])
            try $0.store.engine.checkpoint()
            try $0.delete("Item", 1...1)
        }
        try add("blob-files") {
            try $0.put("Item", [(1, [("blob", try $0.blob(1500))])])
            try $0.delete("Item", 1...1)
        }
        try add("links") { try $0.link() }
        try add("links-in-pages") {
            try $0.link()
            try $0.store.engine.checkpoint()
        }
        try add("filtered") {
            try $0.link()
            try $0.put("Item", [(40, everything), (41, [("text", .text("The Sea, The Sea"))])])
            try $0.items(12)
        }
        try add("unique") {
            try $0.put("Group", [(1, [("name", .text("a"))]), (2, [("name", .text("b"))])])
        }
        try add("compressible") {
            try $0.put("Item", [(1, [("data", .data([UInt8](repeating: 0, count: 5000)))])])
        }
        try add("killed", closes: false) {
            try $0.items(3)
            try $0.reopen(kills: true)
            try $0.items(1)
        }
        try add("settled") {
            try $0.items(3)
            try $0.items(3)
            try $0.reopen(kills: true)
        }
        try add("reopened") {
            try $0.items(3)
            try $0.reopen()
            try $0.items(3)
        }
        try add("relaxed", closes: false) { maker in
            let group = try maker.entity("Group")
            for number in 0..<3 {
                _ = try maker.store.write(durability: .relaxed) { transaction in
                    try transaction.insert(
                        group.id,
                        ObjectID(UInt64(50 + number)),
                        maker.values(group, [("name", .text("\(number)"))])
                    )
                }
            }
        }
        try add("compacted") {
            try $0.items(10)
            try $0.items(10)
            _ = try $0.store.compact()
            try $0.items(1)
        }
        try add("history", { $0.retention = .all }) {
            for _ in 0..<4 { try $0.items(4) }
            _ = try $0.store.compact()
            try $0.items(2)
        }
        try add("packed", { $0.packsAnyLeaf = true }) {
            try $0.put("Item", [(1, everything), (200, everything)])
            try $0.items(90, text: 60)
            _ = try $0.store.compact()
            try $0.items(2)
        }
        try add("migrated") {
            try $0.items(4)
            try $0.reopen(Self.second)
        }
        try add(
            "spilled",
            {
                $0.sortBytesMax = 1 << 10; $0.appendedBytesMax = 2 << 10;
                $0.changedBytesMax = 3 << 10
            }
        ) {
            try $0.items(100)
        }
        return seeds + errors(of: seeds)
    }

    /// Version 2: an attribute and an index more, an attribute less.
    private static var second: SchemaDescription {
        var schema = schema
        schema.version = 2
        schema.entities[1].attributes.append(
            AttributeDescription(name: "rank", type: .int32, defaultValue: .int(3))
        )
        schema.entities[1].indexes.append(IndexDescription("rank"))
        schema.entities[0].attributes.removeAll { $0.name == "small" }
        return schema
    }

    private func link() throws {
        let group = try entity("Group")
        let item = try entity("Item")
        _ = try store.write { transaction in
            for id in UInt64(1)...3 {
                try transaction.insert(
                    group.id,
                    ObjectID(id),
                    values(group, [("name", .text("group \(id)"))])
                )
            }
            for id in UInt64(10)...13 {
                let reference = StoredValue.reference(ObjectID(id % 3 + 1))
                try transaction.insert(item.id, ObjectID(id), values(item, [("group", reference)]))
            }
            if let tags = item.relationship(named: "tags") {
                try transaction.setOrder(
                    item,
                    tags,
                    of: ObjectID(10),
                    [ObjectID(3), ObjectID(1), ObjectID(2)]
                )
            }
        }
    }

    /// Each class of error: one byte, one field, one piece.
    private static func errors(of seeds: [SeedStore]) -> [SeedStore] {
        guard let tree = seeds.first(where: { $0.name == "tree" })?.bytes,
            let delta = seeds.first(where: { $0.name == "open-delta" })?.bytes,
            let log = LogParts(tree), let open = LogParts(delta)
        else { return [] }
        func changed(_ bytes: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
            var bytes = bytes
            change(&bytes)
            return bytes
        }
        func assembled(_ log: LogParts, _ change: (inout LogParts) -> Void) -> [UInt8] {
            var log = log
            change(&log)
            return log.assembled(compresses: true)
        }
        let last = delta.count - (delta.reversed().firstIndex { $0 != 0 } ?? 0)
        let errors: [(String, [UInt8])] = [
            ("not-a-store", Array("SQLite format 3\u{0}".utf8)),
            ("first-header-damaged", changed(tree) { $0[30] ^= 1 }),
            ("second-header-damaged", changed(tree) { $0[4126] ^= 1 }),
            (
                "both-headers-damaged",
                changed(tree) {
                    $0[30] ^= 1; $0[4126] ^= 1
                }
            ),
            (
                "reader-too-old",
                assembled(log) {
                    $0.head[12] = 9; $0.head[4108] = 9
                }
            ),
            (
                "writer-too-old",
                assembled(log) {
                    $0.head[16] = 9; $0.head[4112] = 9
                }
            ),
            ("page-damaged", changed(tree) { $0[8192 + 400] ^= 1 }),
            ("newest-rotten", changed(delta) { $0[last - 20] ^= 1 }),
            ("newest-torn", Array(delta[..<(last - 20)])),
            ("cut-short", Array(tree[..<(tree.count / 2)])),
            ("headers-only", Array(tree[..<8192])),
            ("garbage-behind", tree + [1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ("reader-feature", assembled(open) { $0.parts[$0.parts.count - 1].payload[84] = 1 }),
            ("writer-feature", assembled(open) { $0.parts[$0.parts.count - 1].payload[86] = 1 }),
            ("unknown-flag", assembled(open) { $0.parts[$0.parts.count - 1].flags |= 64 }),
            (
                "unknown-layout",
                assembled(log) { log in
                    if let page = log.parts.firstIndex(where: \.isPage) {
                        log.parts[page].payload[5] = 1
                    }
                }
            ),
            (
                "page-of-another-tree",
                assembled(log) { log in
                    if let page = log.parts.firstIndex(where: \.isPage) {
                        log.parts[page].payload[0] ^= 1
                    }
                }
            ),
            ("commit-missing", assembled(open) { $0.parts.remove(at: $0.parts.count - 2) }),
        ]
        return errors.map { SeedStore(name: $0.0, bytes: $0.1) }
    }
}
