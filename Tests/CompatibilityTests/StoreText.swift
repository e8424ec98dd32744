// What a store holds, as text that no version may spell otherwise: rows, indexes, commits.
//
// tools/read-store.py writes the part about rows in the same way.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

@testable import VarveEngine

enum StoreText {
    /// Every row of every entity, hidden ones too: what tools/read-store.py says.
    static func rows(_ store: RecordStore, _ snapshot: RecordSnapshot) throws -> [String] {
        let header = snapshot.storage.state.generation.header
        var lines = [
            "store \(hex(header.storeID.high, 16))\(hex(header.storeID.low, 16)) generation "
                + "\(header.generation)",
            "commit \(snapshot.number.rawValue) schema \(snapshot.schema.version)",
        ]
        for entity in snapshot.schema.all {
            lines.append(entity.name + (entity.isHiddenLink ? " (hidden)" : ""))
            var cursor = snapshot.storage.cursor(entity.tree)
            var hasRow = try cursor.first()
            while hasRow {
                let id = try cursor.trailingObjectID()
                let version = try cursor.row().version.rawValue
                let row = try snapshot.rows(entity.id, [id])[0]
                var values: [String] = []
                for column in (0..<entity.columnCount).map({ ColumnID(UInt16($0)) }) {
                    let name = entity.column(column)?.name
                    guard let row, name != nil || entity.isHiddenLink else { continue }
                    let value = try snapshot.value(of: row, column)
                    let isUnsigned =
                        if case .attribute(let attribute)? = entity.column(column) {
                            attribute.type == .uint64
                        } else {
                            false
                        }
                    values.append(
                        (name ?? "column \(column.rawValue)") + "="
                            + (try spell(value, isUnsigned, snapshot))
                    )
                }
                lines.append("  \(id.rawValue) (c\(version)): \(values.joined(separator: " "))")
                hasRow = try cursor.next()
            }
        }
        return lines
    }

    /// Number of entries of every tree, with a hash over those whose bytes no place in the file
    /// changes.
    static func trees(_ snapshot: RecordSnapshot) throws -> [String] {
        var lines = ["-- trees"]
        let state = snapshot.storage.state
        for tree in state.trees.keys {
            var line = "tree \(tree.rawValue): \(snapshot.storage.count(tree)) entries"
            if tree.rawValue == 0 || tree.rawValue >= TreeID.firstFree.rawValue {
                var hash: UInt64 = 0
                var cursor = snapshot.storage.cursor(tree)
                var hasEntry = try cursor.first()
                while hasEntry {
                    hash = FrameHash.xxh64(cursor.key + cursor.value, seed: hash)
                    hasEntry = try cursor.next()
                }
                line += " \(hex(hash, 16))"
            }
            lines.append(line)
        }
        return lines
    }

    /// Every commit that the file keeps, and a hash of the rows as of it.
    static func commits(_ store: RecordStore) throws -> [String] {
        var lines = ["-- commits"]
        for commit in try store.commits(1000) {
            let counts = commit.counts.map {
                "\($0.entity.rawValue):+\($0.added)~\($0.changed)-\($0.deleted)"
            }
            var line =
                "c\(commit.number.rawValue) \"\(commit.author)\" \(commit.form.rawValue) at "
                + "\(commit.timeMicroseconds) \(counts.joined(separator: " "))"
            do {
                let rows = try rows(store, try store.snapshot(at: commit.number))
                // Not the store and generation, which the first line names.
                let text = Array(rows.dropFirst().joined(separator: "\n").utf8)
                line += " rows \(hex(FrameHash.xxh64(text), 16))"
            } catch RecordError.engine(let error) where error.code == .notRetained {
                line += " rows not kept"
            }
            lines.append(line)
        }
        return lines
    }

    private static func spell(
        _ value: StoredValue,
        _ isUnsigned: Bool,
        _ snapshot: RecordSnapshot
    ) throws -> String {
        switch value {
        case .null: return "null"
        case .bool(let value): return "\(value)"
        case .int(let value):
            return isUnsigned ? "\(UInt64(bitPattern: value) ^ 1 << 63)" : "\(value)"
        case .float(let value): return "float(\(hex(UInt64(value.bitPattern), 8)))"
        case .double(let value): return "double(\(hex(value.bitPattern, 16)))"
        case .date(let value): return "date(\(hex(value.bitPattern, 16)))"
        case .text(let text):
            let bytes = Array(text.utf8)
            if bytes.count > 40 {
                return "text(\(bytes.count) bytes, \(hex(FrameHash.xxh64(bytes), 16)))"
            }
            let characters = text.unicodeScalars.map { scalar -> String in
                let isPlain = scalar.value >= 32 && scalar.value < 127
                return isPlain && scalar != "\"" && scalar != "\\"
                    ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
            }
            return "\"\(characters.joined())\""
        case .data(let bytes):
            return bytes.count > 40
                ? "data(\(bytes.count) bytes, \(hex(FrameHash.xxh64(bytes), 16)))"
                : "data(\(bytes.map { hex(UInt64($0), 2) }.joined()))"
        case .uuid(let id): return "uuid(\(hex(id.high, 16))\(hex(id.low, 16)))"
        case .decimal(let value):
            let digits = value.digits.isEmpty ? "0" : value.digits.map { "\($0)" }.joined()
            return "\(value.isNegative ? "-" : "")\(digits)e\(value.exponent)"
        case .reference(let id): return "#\(id.rawValue)"
        case .blob(let reference):
            guard let reader = try snapshot.storage.blob(reference) else { return "no blob" }
            let content = try reader.readAll()
            return "blob(\(content.count), \(hex(FrameHash.xxh64(content), 16)))"
        }
    }

    private static func hex(_ value: UInt64, _ digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
