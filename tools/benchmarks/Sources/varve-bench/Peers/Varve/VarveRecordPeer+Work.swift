// Varve's records layer in the workloads about many rows: late indexes, scans, changes, opening, a
// reader beside a writer, questions.

import BenchmarkHarness
import VarveTesting

// Workload a
extension VarveRecordPeer: LateIndexPeer {
    func insertThenIndex(_ items: [Item]) throws {
        try insert(items)
        try reopenWithIndexes()
    }
}

// Workload d
extension VarveRecordPeer: OrderedScanPeer {
    func scanSorted() throws -> RowFold { try fold(sorted) }

    func page(offset: Int, limit: Int) throws -> RowFold {
        var query = sorted
        query.offset = offset
        query.limit = limit
        return try fold(query)
    }

    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        var query = sorted
        query.predicate = .compare(PropertyPath("timestamp"), .greaterOrEqual, .double(timestamp))
        query.limit = limit
        return try fold(query)
    }
}

// Workloads f and j
extension VarveRecordPeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try update(changes) { $0.set(columns.count, int: Int64($1)) }
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        try update(changes) { $0.set(columns.timestamp, double: $1) }
    }

    private func update<Value>(
        _ changes: [RowChange<Value>],
        _ set: (inout RecordRow, Value) -> Void
    ) throws {
        _ = try store.write { transaction in
            var row = RecordRow(record)
            for change in changes {
                row.begin()
                set(&row, change.value)
                try transaction.update(&row, ids[Int(change.id) - 1])
            }
        }
    }

    func delete(_ numbers: [Int64]) throws {
        _ = try store.write { transaction in
            for number in numbers { try transaction.delete(entity, ids[Int(number) - 1]) }
        }
    }

    func compact() throws { _ = try store.compact() }
}

// Workload h
extension VarveRecordPeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String {
        try prepareToRead(rows: rows)
        return "\(ids[Int(id) - 1].rawValue) \(id)"
    }

    func read(savedName: String) throws -> RowFold {
        var fold = RowFold()
        let words = savedName.split(separator: " ")
        let id = ObjectID(UInt64(words[0]) ?? 0)
        let number = Int64(words[1]) ?? 0
        _ = try store.snapshot().withRow(record, id) { _, layout, row throws(RecordError) in
            try add(layout, row, as: number, to: &fold)
        }
        return fold
    }
}

// Workload i
extension VarveRecordPeer: MixedPeer {
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        { [self] in try readIsolated(ids: $0) }
    }
}

// Workload k
extension VarveRecordPeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        let path = PropertyPath("timestamp")
        return try store.snapshot().count(
            RecordQuery(
                entity: entity,
                predicate: .and([
                    .compare(path, .greaterOrEqual, .double(timestamps.lowerBound)),
                    .compare(path, .lessOrEqual, .double(timestamps.upperBound)),
                ])
            )
        )
    }

    func rows(count: Int) throws -> RowFold {
        let query = RecordQuery(
            entity: entity,
            predicate: .compare(PropertyPath("count"), .equal, .int(Int64(count)))
        )
        var fold = RowFold()
        try store.snapshot().forEachRow(of: query) { _, _, layout, row throws(RecordError) in
            try add(layout, row, as: 0, to: &fold)
            return true
        }
        return fold
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        let snapshot = try store.snapshot()
        func first(isDescending: Bool) throws -> Double {
            let sort = [SortTerm("timestamp", isDescending: isDescending)]
            let query = RecordQuery(entity: entity, sort: sort, limit: 1)
            guard let id = try snapshot.fetchIDs(query).first,
                let value = try snapshot.row(entity, id)?.double(columns.timestamp)
            else { throw BenchmarkError("Varve: no rows") }
            return value
        }
        return try first(isDescending: false)...first(isDescending: true)
    }

    func distinctCounts() throws -> Int {
        try store.snapshot().distinct(RecordQuery(entity: record.id), columns.count).count
    }
}
