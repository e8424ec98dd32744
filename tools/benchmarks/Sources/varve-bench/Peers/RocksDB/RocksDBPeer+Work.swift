// RocksDB in the workloads about many rows: late indexes, scans, changes, opening, a reader beside
// a writer, questions.

import BenchmarkHarness

// Workload a
extension RocksDBPeer: LateIndexPeer {
    /// Rows and indexes as three sorted files, taken in together.
    func insertThenIndex(_ items: [Item]) throws {
        func keyFile(_ keys: SortedKeys) -> (RocksDBDatabase.FileWriter) throws -> Void {
            { file in
                try keys.forEach { try file.put($0, UnsafeRawBufferPointer(start: nil, count: 0)) }
            }
        }
        let timestamps = SortedKeys.timestamps(items, prefix: [Range.timestamps.rawValue])
        let titles = SortedKeys.titles(items, prefix: [Range.titles.rawValue])
        try database.ingest(directory, [rowFile(items), keyFile(timestamps), keyFile(titles)])
    }
}

// Workload d
extension RocksDBPeer: OrderedScanPeer {
    func scanSorted() throws -> RowFold { try page(offset: 0, limit: .max) }

    func page(offset: Int, limit: Int) throws -> RowFold {
        try database.snapshot { view in
            var fold = RowFold()
            var left = offset
            try eachSorted(view) { id in
                if left > 0 {
                    left -= 1
                    return true
                }
                try get(view, id, as: 0, into: &fold)
                return fold.rows < limit
            }
            return fold
        }
    }
}

extension RocksDBPeer {
    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        try database.snapshot { view in
            var key: [UInt8] = []
            var fold = RowFold()
            try eachSorted(view, from: Self.timestampKey(timestamp, .min, &key)) { id in
                try get(view, id, as: 0, into: &fold)
                return fold.rows < limit
            }
            return fold
        }
    }
}

// Workloads f and j
extension RocksDBPeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try changeRows(changes) { batch, change, bytes, _ in
            PackedRow.set(count: change.value, in: &bytes)
            return true
        }
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        var key: [UInt8] = []
        try changeRows(changes) { batch, change, bytes, row in
            let old = row.timestamp
            batch.remove(Self.timestampKey(old, change.id, &key))
            batch.put(Self.timestampKey(change.value, change.id, &key), [])
            PackedRow.set(timestamp: change.value, in: &bytes)
            return true
        }
    }

    func delete(_ ids: [Int64]) throws {
        var key: [UInt8] = []
        try changeRows(ids.map { RowChange(id: $0, value: ()) }) { batch, change, _, row in
            batch.remove(Self.timestampKey(row.timestamp, change.id, &key))
            batch.remove(Self.titleKey(Array(row.title), change.id, &key))
            batch.remove(Self.rowKey(change.id, &key))
            return false
        }
    }

    /// Reads each row, lets `body` change its bytes, and keeps them if it says so.
    private func changeRows<Value>(
        _ changes: [RowChange<Value>],
        _ body: (RocksDBDatabase.Batch, RowChange<Value>, inout [UInt8], PackedRow) -> Bool
    ) throws {
        let view = database.newest
        try database.commit { batch in
            var key: [UInt8] = []
            for change in changes {
                let row = Self.rowKey(change.id, &key)
                _ = try row.withUnsafeBytes { bytes in
                    try view.value(bytes) { value in
                        var changed = Array(value)
                        if body(batch, change, &changed, PackedRow(bytes: value)) {
                            batch.put(row, changed)
                        }
                    }
                }
            }
        }
    }

    func compact() throws { try database.settle() }
}

// Workload h
extension RocksDBPeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String { String(id) }

    func read(savedName: String) throws -> RowFold { try read(ids: [Int64(savedName) ?? 0]) }
}

// Workload i
extension RocksDBPeer: MixedPeer {
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        { [self] in try readIsolated(ids: $0) }
    }
}

// Workload k
extension RocksDBPeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        try database.snapshot { view in
            var key: [UInt8] = []
            let start = Self.timestampKey(timestamps.lowerBound, .min, &key)
            let end = Self.timestampKey(timestamps.upperBound, .max, &key)
            var count = 0
            try end.withUnsafeBytes { end in
                try view.scan(from: start) { key, _ in
                    guard KeyBytes.compare(key, end) <= 0 else { return false }
                    count += 1
                    return true
                }
            }
            return count
        }
    }

    func rows(count: Int) throws -> RowFold {
        try database.snapshot { view in
            var fold = RowFold()
            try eachRow(view) { if $0.count == count { $0.fold(id: 0, into: &fold) } }
            return fold
        }
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        try database.snapshot { view in
            var lower = 0.0
            try view.scan(from: [Range.timestamps.rawValue]) { key, _ in
                lower = KeyBytes.timestamp(key, at: 1)
                return false
            }
            guard let last = try view.keyBefore([Range.titles.rawValue]) else {
                throw BenchmarkError("RocksDB: no rows")
            }
            return lower...last.withUnsafeBytes { KeyBytes.timestamp($0, at: 1) }
        }
    }

    func distinctCounts() throws -> Int {
        try database.snapshot { view in
            var found: Set<Int64> = []
            try eachRow(view) { found.insert($0.count) }
            return found.count
        }
    }

    private func eachRow(_ view: RocksDBView, _ body: (PackedRow) -> Void) throws {
        try view.scan(from: [Range.rows.rawValue]) { key, value in
            guard key[0] == Range.rows.rawValue else { return false }
            body(PackedRow(bytes: value()))
            return true
        }
    }
}
