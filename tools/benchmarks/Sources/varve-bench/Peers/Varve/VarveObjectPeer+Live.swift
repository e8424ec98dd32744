// Varve's public API in the workloads about lists that follow commits and about long lists.

import BenchmarkHarness
import VarveObjects

// Workloads l and m
extension VarveObjectPeer: LiveListPeer {
    /// Live lists in a context of their own, which moves when it is told to.
    final class LiveLists {
        let context: ManagedObjectContext
        let lists: [LiveResults<StoredItem>]
        private var observations: [LiveObservation] = []
        private(set) var changes = 0

        init(_ context: ManagedObjectContext, _ requests: [FetchDescriptor<StoredItem>]) throws {
            self.context = context
            lists = try requests.map { try context.live($0) }
            observations = lists.map { list in
                list.onChange { [unowned self] change in changes += change.count }
            }
        }
    }

    func followAll() throws -> LiveLists {
        try LiveLists(container.newContext(), [Self.sorted])
    }

    func follow(ranges: [Range<Double>]) throws -> LiveLists {
        let requests = ranges.map { range in
            Self.sorted.where {
                $0.timestamp >= range.lowerBound && $0.timestamp < range.upperBound
            }
        }
        return try LiveLists(container.newContext(), requests)
    }

    func catchUp(_ lists: LiveLists) throws -> Double {
        let before = lists.changes
        let seconds = timed { lists.context.advance() }.seconds
        guard lists.changes > before else { throw BenchmarkError("Varve told of no change") }
        return seconds
    }

    func timestamps(_ lists: LiveLists) throws -> [Double] {
        lists.lists.flatMap { $0.results.map(\.timestamp) }
    }
}

// Workload n
extension VarveObjectPeer: LongListPeer {
    func openLongList() throws -> (list: BatchedResults<StoredItem>, count: Int, first: Double) {
        let list = try context.fetchBatched(Self.sorted, size: 50)
        return (list, list.count, list[0].timestamp)
    }

    func timestamp(at position: Int, in list: BatchedResults<StoredItem>) throws -> Double {
        list[position].timestamp
    }

    func countNotes(with text: String, ignoringCase: Bool) throws -> Int {
        try context.count(StoredItem.where { $0.note.contains(text, ignoringCase: ignoringCase) })
    }

    func firstByCountAndNote(limit: Int) throws -> [Double] {
        let request = StoredItem.all.sorted { [$0.count.descending, $0.note.ascending] }
        return try context.select(request.limit(limit)) { $0.timestamp }
    }
}
