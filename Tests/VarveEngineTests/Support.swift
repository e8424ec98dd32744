// A schema of one entity and what the engine's tests share.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A schema of one entity: column 0 an integer, column 1 a text; an index on each.
struct TestDelegate: EngineDelegate {
    static let entity = EntityID(1)
    static let rows = TreeID(16)
    static let byInt = TreeID(17)
    static let byText = TreeID(18)

    struct Deriver: IndexDeriver {
        func tree(of entity: EntityID) throws(FormatError) -> TreeID {
            guard entity == TestDelegate.entity else {
                throw FormatError(
                    place: "schema",
                    field: "entity",
                    found: "\(entity.rawValue)",
                    expected: "1"
                )
            }
            return TestDelegate.rows
        }
        func indexedColumns(of entity: EntityID) -> [ColumnID] { [ColumnID(0), ColumnID(1)] }
        func covers(_ columns: [ColumnID], of entity: EntityID) -> Bool {
            columns.contains { $0.rawValue < 2 }
        }
        func entries(
            entity: EntityID,
            object: ObjectID,
            row: Span<UInt8>,
            changed: [ColumnID]?,
            into keys: inout EntryKeys
        ) throws(FormatError) {
            let view = try RowView(ByteReader.copy(row, 0..<row.count))
            for (column, tree) in [(ColumnID(0), TestDelegate.byInt), (ColumnID(1), .init(18))] {
                if let changed, !changed.contains(column) { continue }
                var key: [UInt8] = []
                KeyCoding.append(try view.value(column) ?? .null, to: &key)
                if key.count > 200 { key.removeSubrange(200...) }
                KeyCoding.appendObjectID(object, to: &key)
                keys.bytes.append(contentsOf: key)
                keys.close(tree)
            }
        }
    }

    func makeDeriver(schema: [UInt8]) throws(FormatError) -> any IndexDeriver { Deriver() }
    func willPublish(_ changes: CommitChanges) {}
    func didPublish(_ changes: CommitChanges) {}
}

func row(_ int: Int64, _ text: String, blob: BlobReference? = nil) -> [UInt8] {
    RowCoding.encode([.int(int), .text(text), blob.map { .blob($0) } ?? .null])
}

func patch(_ int: Int64? = nil, _ text: String? = nil) -> [UInt8] {
    var changes: [(column: ColumnID, value: StoredValue?)] = []
    if let int { changes.append((ColumnID(0), .int(int))) }
    if let text { changes.append((ColumnID(1), .text(text))) }
    return RowPatch.encode(changes)
}

extension Engine {
    static func openTest(
        _ directory: any StoreDirectory,
        mode: StoreOpenMode = .createIfMissing,
        _ adjust: (inout EngineOptions) -> Void = { _ in }
    ) throws -> Engine {
        var options = EngineOptions()
        adjust(&options)
        let engine = try Engine.open(
            .directory(directory, name: "test"),
            mode: mode,
            options: options,
            delegate: TestDelegate()
        )
        if case .readOnly = mode { return engine }
        if engine.snapshot().schema.isEmpty {
            _ = try engine.write { try $0.replaceSchema([1], version: 1) }
        }
        return engine
    }

    /// As `Snapshot.contents`, of the newest commit.
    func contents() throws -> [UInt64: String] { try snapshot().contents() }
}

extension Snapshot {
    /// Every row as (int, text), by object; checks the indexes against the rows on the way.
    func contents() throws -> [UInt64: String] {
        let snapshot = self
        var result: [UInt64: String] = [:]
        var expected: [TreeID: Set<[UInt8]>] = [:]
        var cursor = snapshot.cursor(TestDelegate.rows)
        var hasRow = try cursor.first()
        while hasRow {
            let object = try cursor.trailingObjectID()
            var bytes = try cursor.row().bytes
            for column in try RowCoding.outsideColumns(in: bytes) {
                let value = try snapshot.largeValue(
                    entity: TestDelegate.entity,
                    object: object,
                    column: column
                )
                bytes = try RowCoding.movingInside(
                    bytes,
                    [MovedValue(column: column, isText: true, bytes: value)]
                )
            }
            let view = try RowView(bytes)
            let values = try (0..<2).map { try view.value(ColumnID(UInt16($0))) }
            result[object.rawValue] = "\(values)"
            var keys = EntryKeys()
            try TestDelegate.Deriver().entries(
                entity: TestDelegate.entity,
                object: object,
                row: bytes.span,
                changed: nil,
                into: &keys
            )
            for index in 0..<keys.count {
                expected[keys.tree(index), default: []].insert(Array(keys.bytes[keys.key(index)]))
            }
            hasRow = try cursor.next()
        }
        for tree in [TestDelegate.byInt, TestDelegate.byText] {
            var found: Set<[UInt8]> = []
            var index = snapshot.cursor(tree)
            var hasEntry = try index.first()
            while hasEntry {
                found.insert(index.key)
                hasEntry = try index.next()
            }
            #expect(found == expected[tree] ?? [], "index \(tree.rawValue)")
            #expect(UInt64(found.count) == snapshot.count(tree))
        }
        return result
    }
}
