// Varve's public API in the workloads about many rows: late indexes, scans, changes, opening, a
// reader beside a writer, questions.

import BenchmarkHarness
import VarveObjects
import VarveTesting

// Workload a
extension VarveObjectPeer: LateIndexPeer {
    func insertThenIndex(_ items: [Item]) throws {
        try insert(items)
        try reopenWithIndexes()
    }
}

// Workload d
extension VarveObjectPeer: OrderedScanPeer {
    /// In batches, as the documentation advises for more objects than one wants in memory.
    func scanSorted() throws -> RowFold {
        var fold = RowFold()
        let request = Self.sorted.returningFaults(false)
        for object in try container.newContext().fetchBatched(request, size: 1000) {
            object.fold(id: 0, into: &fold)
        }
        return fold
    }

    func page(offset: Int, limit: Int) throws -> RowFold {
        var fold = RowFold()
        let request = Self.sorted.offset(offset).limit(limit).returningFaults(false)
        for object in try container.newContext().fetch(request) { object.fold(id: 0, into: &fold) }
        return fold
    }
}

extension VarveObjectPeer {
    func range(from timestamp: Double, limit: Int) throws -> RowFold {
        var fold = RowFold()
        let request = Self.sorted.where { $0.timestamp >= timestamp }.limit(limit)
        for object in try container.newContext().fetch(request.returningFaults(false)) {
            object.fold(id: 0, into: &fold)
        }
        return fold
    }
}

// Workloads f and j
extension VarveObjectPeer: CompactingPeer {
    static var compactionMissing: String? { nil }

    func updateCounts(_ changes: [RowChange<Int>]) throws {
        try update(changes, object: { $0.count = $1 }, row: { $0.count = $1 })
    }

    func updateTimestamps(_ changes: [RowChange<Double>]) throws {
        try update(changes, object: { $0.timestamp = $1 }, row: { $0.timestamp = $1 })
    }

    /// In a batch, which goes through the rows in the order of IDs, or object by object.
    private func update<Value>(
        _ changes: [RowChange<Value>],
        object change: (StoredItem, Value) -> Void,
        row changeRow: (inout BatchRow<StoredItem>, Value) -> Void
    ) throws {
        let context = container.newContext()
        if makesObjects {
            for item in changes { change(try context.object(with: id(item.id)), item.value) }
            try context.save()
            return
        }
        let sorted = changes.sorted { $0.id < $1.id }
        var next = 0
        try context.batchUpdate(sorted.map { id($0.id) }) { row in
            changeRow(&row, sorted[next].value)
            next += 1
        }
    }

    func delete(_ numbers: [Int64]) throws {
        let context = container.newContext()
        if makesObjects {
            for number in numbers { context.delete(try context.object(with: id(number))) }
            try context.save()
        } else {
            try context.batchDelete(numbers.map(id))
        }
    }

    private func id(_ number: Int64) -> StoredItem.ID { ids[Int(number) - 1] }

    /// What the store does by itself once nobody has saved for some seconds.
    func settle() throws {
        try withStore { store in _ = try store.engine.compactIfWorthwhile() }
    }

    func compact() throws { try withStore { store in _ = try store.compact() } }

    /// Below the container, whose own call for it waits.
    private func withStore(_ body: (RecordStore) throws -> Void) throws {
        try container.closeNow()
        var options = RecordOptions()
        options.engine.packsLeaves = settings.packsRows
        let store = try RecordStore.openAsStored(
            .file(directory: directory, name: "items"),
            options: options
        )
        try body(store)
        try store.close()
        try reopen()
    }
}

// Workload h
extension VarveObjectPeer: OpeningPeer {
    func savedName(of id: Int64, rows: Int) throws -> String {
        try prepareToRead(rows: rows)
        return ids[Int(id) - 1].objectID.uri + " \(id)"
    }

    func read(savedName: String) throws -> RowFold {
        var fold = RowFold()
        let words = savedName.split(separator: " ").map(String.init)
        guard let id = ManagedObjectID(uri: words[0]), let number = Int64(words[1]),
            let object = try context.existingObject(with: id) as? StoredItem
        else { return fold }
        object.fold(id: number, into: &fold)
        return fold
    }
}

// Workload i
extension VarveObjectPeer: MixedPeer {
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold {
        { [self] in try readIsolated(ids: $0) }
    }
}

// Workload k
extension VarveObjectPeer: QueryPeer {
    func countRows(timestamps: ClosedRange<Double>) throws -> Int {
        try container.newContext().count(
            StoredItem.where {
                $0.timestamp >= timestamps.lowerBound && $0.timestamp <= timestamps.upperBound
            }
        )
    }

    func rows(count: Int) throws -> RowFold {
        var fold = RowFold()
        let request = StoredItem.where { $0.count == count }.returningFaults(false)
        for object in try container.newContext().fetch(request) { object.fold(id: 0, into: &fold) }
        return fold
    }

    func timestampBounds() throws -> ClosedRange<Double> {
        let context = container.newContext()
        guard let least = try context.minimum(StoredItem.all, \.timestamp),
            let greatest = try context.maximum(StoredItem.all, \.timestamp)
        else { throw BenchmarkError("Varve: no rows") }
        return least...greatest
    }

    func distinctCounts() throws -> Int {
        try container.newContext().selectDistinct(StoredItem.all, \.count).count
    }
}
