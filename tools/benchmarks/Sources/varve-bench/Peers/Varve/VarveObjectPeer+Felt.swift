// Varve's public API in the workloads about what users feel: the first screen, scrolling, memory,
// saves beside a compaction.

import BenchmarkHarness
import VarveObjects

// Workloads p and r
extension VarveObjectPeer: FilledObjectsPeer {
    func firstObjects(_ limit: Int) throws -> [StoredItem] {
        try container.newContext().fetch(Self.sorted.limit(limit).returningFaults(false))
    }

    func readEveryProperty(of objects: [StoredItem]) -> RowFold {
        var fold = RowFold()
        for object in objects { object.fold(id: 0, into: &fold) }
        return fold
    }

    func trimRows() { container.trimMemory(.rows) }
}
