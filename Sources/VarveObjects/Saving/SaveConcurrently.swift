// A save that waits for other savers without holding its actor up.
//
// Invariants
// - Nothing of the context is read or changed while it waits: the save itself is `save`, from its
//   first step to its last without a suspension.

import VarveRecords

extension ManagedObjectContext {
    /// Saves as `save(mergePolicy:)` does, and gives the caller's actor free while somebody else
    /// writes: beside a bulk import the main actor goes on drawing.
    ///
    /// What is saved are the edits that stand when the turn has come, those made during the wait
    /// included. The save itself is not interrupted: it holds the actor for as long as a save
    /// without company takes.
    ///
    /// - Parameter mergePolicy: what to do with objects that others changed or deleted meanwhile.
    /// - Throws: what `save(mergePolicy:)` throws; `CancellationError` when the task was cancelled
    ///   before its turn came. The edits stand then.
    /// - Complexity: that of `save(mergePolicy:)`.
    @discardableResult
    nonisolated(nonsending)
        public func saveConcurrently(mergePolicy: MergePolicy = .error) async throws -> SaveResult
    {
        // 1. What can be said at once is said before the wait.
        try checkSavable()
        try Task.checkCancellation()
        if !hasChanges { return try save(mergePolicy: mergePolicy) }
        // 2. A place in the line; those who come later let it pass.
        let place = container.store.reserveWriter()
        defer { place.end() }
        repeat {
            do {
                try await place.wait()
            } catch {
                throw StoreError.translatingAny(error, in: container)
            }
            // 3. This actor was busy for too long, and somebody else went first: once more, in
            //    front of all others.
        } while !place.begin()
        return try save(mergePolicy: mergePolicy)
    }
}
