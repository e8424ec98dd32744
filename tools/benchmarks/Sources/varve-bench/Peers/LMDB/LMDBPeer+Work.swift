// LMDB in the workloads about many rows: late indexes, scans, changes, opening, a reader beside a
// writer, questions.

import BenchmarkHarness
import Foundation

// Workload a
extension LMDBPeer: LateIndexPeer {
    /// Index keys are sorted in memory and appended.
    func insertThenIndex(_ items: [Item]) throws {
        try store.write { transaction in
            try openIndexes(transaction)
            var row: [UInt8] = []
            for item in items {
                row.removeAll(keepingCapacity: true)
                PackedRow.append(item, to: &row)
                try putRow(transaction, item.id, row, LMDBLibrary.append)
            }
            for (database, keys) in [
                (byTimestamp, SortedKeys.timestamps(items)), (byTitle, SortedKeys.titles(items)),
            ] {
                try keys.forEach {
                    let nothing = LMDBTransaction.nothing
                    try transaction.put(database, $0, nothing, LMDBLibrary.append)
                }
            }
        }
    }
}

// Workload d
extension LMDBPeer: OrderedScanPeer {
    func scanSorted() throws -> RowFold { try page(offset: 0, limit: .max) }

    func page(offset: Int, limit: Int) throws -> RowFold {
        try store.read { transaction in
            var fold = RowFold()
            var left = offset
            try transaction.scan(byTimestamp) { key, _ in
                if left > 0 {
                    left -= 1
                    return true
                }
                try get(transaction, KeyBytes.trailingID(key), as: 0, into: &fold)
                return fold.rows < limit
            }
            return fold
        }
    }
}

extension LMDBPeer {
    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        try store.read { transaction in
            var start: [UInt8] = []
            KeyBytes.append(timestamp: timestamp, id: .min, to: &start)
            var fold = RowFold()
            try transaction.scan(byTimestamp, from: start) { key, _ in
                try get(transaction, KeyBytes.trailingID(key), as: 0, into: &fold)
                return fold.rows < limit
            }
            return fold
        }
    }
}

// Workloads f and j
extension LMDBPeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try store.write { transaction in
            for change in changes {
                guard let row = try row(transaction, change.id) else { continue }
                var bytes = Array(row)
                PackedRow.set(count: change.value, in: &bytes)
                try putRow(transaction, change.id, bytes, 0)
            }
        }
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        try store.write { transaction in
            var key: [UInt8] = []
            for change in changes {
                guard let row = try row(transaction, change.id) else { continue }
                var bytes = Array(row)
                let old = PackedRow(bytes: row).timestamp
                PackedRow.set(timestamp: change.value, in: &bytes)
                try putRow(transaction, change.id, bytes, 0)
                key.removeAll(keepingCapacity: true)
                KeyBytes.append(timestamp: old, id: change.id, to: &key)
                try key.withUnsafeBytes { try transaction.delete(byTimestamp, $0) }
                try putTimestamp(transaction, change.value, change.id, &key)
            }
        }
    }

    func delete(_ ids: [Int64]) throws {
        try store.write { transaction in
            var key: [UInt8] = []
            for id in ids {
                guard let row = try row(transaction, id) else { continue }
                let item = PackedRow(bytes: row)
                let title = Array(item.title)
                key.removeAll(keepingCapacity: true)
                KeyBytes.append(timestamp: item.timestamp, id: id, to: &key)
                try key.withUnsafeBytes { try transaction.delete(byTimestamp, $0) }
                key.removeAll(keepingCapacity: true)
                KeyBytes.append(title: title, id: id, to: &key)
                try key.withUnsafeBytes { try transaction.delete(byTitle, $0) }
                var number = UInt64(bitPattern: id)
                try withUnsafeBytes(of: &number) { try transaction.delete(rows, $0) }
            }
        }
    }

    /// A compacted copy takes the place of the file, as LMDB's own tool does it.
    func compact() throws {
        let copy = directory + "/compacted.lmdb"
        try store.copyCompacted(to: copy)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy))
        try file.synchronize()
        try file.close()
        store.close()
        guard rename(copy, directory + "/items.lmdb") == 0 else {
            throw BenchmarkError("LMDB: cannot rename: errno \(errno)")
        }
    }
}

// Workload h
extension LMDBPeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String { String(id) }

    func read(savedName: String) throws -> RowFold { try read(ids: [Int64(savedName) ?? 0]) }
}

// Workload i
extension LMDBPeer: MixedPeer {
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        { [self] in try readIsolated(ids: $0) }
    }
}

// Workload k
extension LMDBPeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        try store.read { transaction in
            var start: [UInt8] = []
            var end: [UInt8] = []
            KeyBytes.append(timestamp: timestamps.lowerBound, id: .min, to: &start)
            KeyBytes.append(timestamp: timestamps.upperBound, id: .max, to: &end)
            var count = 0
            try end.withUnsafeBytes { end in
                try transaction.scan(byTimestamp, from: start) { key, _ in
                    guard KeyBytes.compare(key, end) <= 0 else { return false }
                    count += 1
                    return true
                }
            }
            return count
        }
    }

    func rows(count: Int) throws -> RowFold {
        try store.read { transaction in
            var fold = RowFold()
            try transaction.scan(rows) { _, value in
                let row = PackedRow(bytes: value)
                if row.count == count { row.fold(id: 0, into: &fold) }
                return true
            }
            return fold
        }
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        try store.read { transaction in
            guard let ends = try transaction.ends(byTimestamp) else {
                throw BenchmarkError("LMDB: no rows")
            }
            return ends.first.withUnsafeBytes {
                KeyBytes.timestamp($0)
            }...ends.last.withUnsafeBytes { KeyBytes.timestamp($0) }
        }
    }

    func distinctCounts() throws -> Int {
        try store.read { transaction in
            var found: Set<Int64> = []
            try transaction.scan(rows) { _, value in
                found.insert(PackedRow(bytes: value).count)
                return true
            }
            return found.count
        }
    }
}
