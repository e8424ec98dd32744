// Going through more objects than memory holds, and fetching without holding the caller up.
//
// Invariants
// - A stream keeps the rows of two batches, whatever the number of objects.
// - The list is the one of the moment of the call. Objects that are gone when their turn comes are
//   left out; nothing comes twice.

import VarveBase
import VarveRecords

/// The objects of a request one after the other, as an async sequence. It belongs to its context
/// and is not Sendable.
public struct ObjectStream<Entity: ManagedObject>: AsyncSequence {
    /// One object each.
    public typealias Element = Entity
    /// What a fetch throws, and `CancellationError`.
    public typealias Failure = any Error

    let context: ManagedObjectContext
    let results: BatchedResults<Entity>

    /// Begins with the first object.
    public func makeAsyncIterator() -> Iterator { Iterator(context, results) }

    /// One walk through the objects.
    public struct Iterator: AsyncIteratorProtocol {
        private let context: ManagedObjectContext
        private let results: BatchedResults<Entity>
        private let commit: CommitNumber?
        private var place = 0

        init(_ context: ManagedObjectContext, _ results: BatchedResults<Entity>) {
            (self.context, self.results) = (context, results)
            commit = context.commit
        }

        /// The next object; nil after the last one. Between two batches others get their turn.
        /// - Throws: `CancellationError` when the task was cancelled; what a fetch throws.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(any Error) -> Entity? {
            while place < results.count {
                if Task.isCancelled { throw CancellationError() }
                if place % results.batchSize == 0 {
                    if place > 0 { await Task.yield() }
                    let end = Swift.min(results.count, place + results.batchSize)
                    try results.load(place..<end)
                }
                defer { place += 1 }
                if context.commit == commit {
                    let object = results[place]
                    // Deleted since, or an insertion that was rolled back.
                    if object.storage.isDeleted || object.storage.state.contains(.invalid) {
                        continue
                    }
                    return object
                }
                // The context has moved on since: the object may be gone.
                if let object = try context.existingObject(with: results.id(at: place)) {
                    return object
                }
            }
            return nil
        }

        /// The next object; nil after the last one.
        public mutating func next() async throws -> Entity? {
            try await next(isolation: #isolation)
        }
    }
}

extension ManagedObjectContext {
    /// The objects of a request one after the other, in its order, with the rows of two batches in
    /// memory: `for try await item in try context.enumerate(request) { ... }`.
    ///
    /// The list is that of the call: what is inserted later does not come, what is deleted before
    /// its turn is left out. The loop ends with `CancellationError` when its task is cancelled, and
    /// lets others have their turn between two batches.
    /// - Parameters:
    ///   - request: which objects.
    ///   - batchSize: rows that are read together, at least 1.
    /// - Complexity: that of `fetchBatched`: where an index gives filter and order the list itself
    ///   takes no memory, else 8 bytes per object.
    /// - Throws: what `fetch` throws.
    public func enumerate<Entity>(
        _ request: FetchDescriptor<Entity>,
        batchSize: Int = 100
    ) throws -> ObjectStream<Entity> {
        ObjectStream(context: self, results: try fetchBatched(request, size: batchSize))
    }

    /// What `fetch` returns, found on a thread of the container's pool: the caller's actor is free
    /// while filter and sort are at work. Rows of faults are not read; with
    /// `returningFaults(false)` they are read on that thread too.
    ///
    /// Unsaved edits that can change the answer are known to this context only: then it is a
    /// `fetch`, which holds the caller up. If the context moves on meanwhile the search begins
    /// again; after three times it is a `fetch` too.
    /// - Parameter request: which objects.
    /// - Throws: what `fetch` throws; `CancellationError` when the task was cancelled before the
    ///   search began or after it.
    nonisolated(nonsending)
        public func fetchConcurrently<Entity>(
            _ request: FetchDescriptor<Entity>
        ) async throws -> [Entity]
    {
        for _ in 0..<3 {
            try Task.checkCancellation()
            let snapshot = try snapshot(for: request)
            let plan = try RequestPlan(request, in: self)
            if touchesPending(plan) { break }
            let ids = try await container.ids(
                plan.query,
                snapshot.held(for: PinOwner(.context, label: "fetchConcurrently")),
                readsRows: !request.returnsFaults || !plan.prefetch.isEmpty
            )
            try Task.checkCancellation()
            // Edits or a newer commit may have come while others had their turn.
            let now = try currentSnapshot()
            guard now.isSame(as: snapshot), !touchesPending(plan) else { continue }
            // Steps 6 to 9 of a fetch.
            let rows = try loadRows(ids, plan, now)
            let found = FoundObjects(ids: ids, plan: plan, rows: rows, snapshot: now)
            let objects: [Entity] = makeObjects(found)
            if found.prefetches { try prefetch(found, for: objects) }
            return objects
        }
        return try fetch(request)
    }
}

extension PersistentContainer {
    /// The IDs of a request at the newest commit, found on a thread of the container's pool.
    /// - Parameter request: which objects.
    /// - Throws: what `fetch` throws; `CancellationError` when the task was cancelled before it
    ///   began.
    public func fetchIDs<Entity>(
        _ request: FetchDescriptor<Entity>
    ) async throws -> [Entity.ID] {
        try await performBackgroundTask { context in try context.fetchIDs(request) }
    }

    /// The values of a request's objects at the newest commit, read on a thread of the container's
    /// pool.
    /// - Parameter request: which objects.
    /// - Throws: what `fetch` throws; `CancellationError` when the task was cancelled before it
    ///   began.
    public func fetchSnapshots<Entity>(
        _ request: FetchDescriptor<Entity>
    ) async throws -> [Entity.Snapshot] {
        try await performBackgroundTask { context in
            try context.fetch(request.returningFaults(false)).map { $0.snapshot() }
        }
    }

    /// IDs of a query, found by a worker.
    func ids(
        _ query: RecordQuery,
        _ snapshot: RecordSnapshot,
        readsRows: Bool
    ) async throws -> [ObjectID] {
        try await workers.run { [self] in
            try translating { () throws(RecordError) in
                let ids = try snapshot.fetchIDs(query)
                // Into the row cache, from which the objects are filled.
                if readsRows { _ = try snapshot.rows(query.entity, ids) }
                return ids
            }
        }
    }
}
