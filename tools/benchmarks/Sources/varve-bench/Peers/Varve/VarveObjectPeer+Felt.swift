// Varve's public API in the workloads about what users feel: the first screen, scrolling, memory,
// saves beside a compaction.

import BenchmarkHarness
import Dispatch
import Synchronization
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

// Workload q
extension VarveObjectPeer: ScrollingPeer {
    func openScrollList() throws -> BatchedResults<StoredItem> {
        try container.newContext().fetchBatched(Self.sorted)
    }

    func touch(
        _ position: Int,
        in list: BatchedResults<StoredItem>,
        _ fold: inout RowFold
    ) throws {
        let object = list[position]
        fold.touch(
            timestamp: object.timestamp,
            title: object.title,
            note: object.note,
            count: object.count,
            flag: object.flag,
            pictureID: object.pictureID
        )
    }
}

// Workload t
extension VarveObjectPeer: BusySavePeer {
    /// What a task of the container's own brings back.
    private final class Ending: Sendable {
        let done = DispatchSemaphore(value: 0)
        let failure = Mutex<(any Error)?>(nil)
    }

    /// One that runs by itself at the same time is as good.
    func compactBesideSaves(scratch: String) throws {
        let ending = Ending()
        Task.detached { [container] in
            do {
                try await container.compact()
            } catch let error as StoreError where error.code == .busy {
            } catch {
                ending.failure.withLock { $0 = error }
            }
            ending.done.signal()
        }
        ending.done.wait()
        if let failure = ending.failure.withLock({ $0 }) { throw failure }
    }
}
