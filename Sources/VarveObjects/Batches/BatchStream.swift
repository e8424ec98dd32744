// Batches of what arrives bit by bit: rows of an async sequence, in commits of bounded size.
//
// Invariants
// - The store is never locked while something is awaited: rows are gathered, then written.
// - Memory: the elements of one commit.
// - An error names the element that it is about, as far as there is one.

import VarveBase
import VarveRecords

/// How far a batch is that reads what it writes.
public struct BatchProgress: Hashable, Sendable {
    /// Rows, or lines, that are written.
    public internal(set) var completedRows = 0
    /// Bytes that were read; 0 where elements are no bytes.
    public internal(set) var completedBytes = 0
    /// Bytes that there are; nil: nobody knows.
    public internal(set) var totalBytes: Int?
}

extension ManagedObjectContext {
    /// Adds a row for each element of an async sequence, without making objects. Each
    /// `rowsPerCommit` of them are one commit: no lock is held, and no more than these are in
    /// memory, while the sequence is waited for.
    ///
    /// What is checked, and what is called, is as in `batchInsert` of a sequence.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - elements: read in the caller's isolation.
    ///   - conflicts: what becomes of a row whose unique values exist already.
    ///   - rowsPerCommit: rows of each commit, at least one.
    ///   - progress: told after each commit.
    ///   - fill: sets the properties of one row; it must not write to the store.
    /// - Throws: what the sequence and `fill` throw; `CancellationError` when the task was
    ///   cancelled; `StoreError` as `batchInsert` of a sequence, with the number of the element
    ///   from 1 on in its message. Commits before it stand: then the error's `outcome` is `saved`.
    /// - Complexity: O(log n) per row and index.
    @discardableResult
    nonisolated(nonsending) public func batchInsert<Entity: ManagedObject, Elements: AsyncSequence>(
        _ type: Entity.Type,
        _ elements: Elements,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        rowsPerCommit: Int = 5_000,
        progress: ((BatchProgress) -> Void)? = nil,
        _ fill: (inout BatchRow<Entity>, Elements.Element) throws -> Void
    ) async throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, rowsPerCommit, conflicts)
        var gathered: [(number: Int, element: Elements.Element)] = []
        var number = 0
        var told = BatchProgress()
        func write() throws {
            try checkCancellation()
            try batch.commit("element", gathered, fill)
            told.completedRows += gathered.count
            gathered.removeAll(keepingCapacity: true)
            progress?(told)
        }
        return try await batch.tracedAsync(.insert) {
            for try await element in elements {
                number += 1
                gathered.append((number, element))
                if gathered.count >= rowsPerCommit { try write() }
            }
            // A sequence may end because the task was cancelled: that is no end of the input.
            try checkCancellation()
            if !gathered.isEmpty { try write() }
        }
    }
}

extension BatchWriter {
    /// Writes elements as one commit. An error of the library's gets the number of its element.
    /// - Parameter kind: what an element is called.
    func commit<Element>(
        _ kind: String,
        _ elements: [(number: Int, element: Element)],
        _ fill: (inout BatchRow<Entity>, Element) throws -> Void
    ) throws {
        var numbers: [ObjectID: Int] = [:]
        do {
            try commit { transaction in
                var row = BatchRow<Entity>(model, container, transaction)
                for (number, element) in elements {
                    row.begin(nextID(), nil)
                    do {
                        try fill(&row, element)
                        try insert(&row, transaction)
                    } catch {
                        let failure = StoreError.translatingAny(error, in: container)
                        throw (failure as? StoreError)?.about("\(kind) \(number)") ?? failure
                    }
                    numbers[row.object] = number
                }
            }
        } catch let error as StoreError where error.code == .notUnique {
            // Found at the end of the commit, of all its rows.
            let objects = error.details.flatMap(\.objects) + [error.place.object].compactMap(\.self)
            let own = objects.compactMap { numbers[$0.object] }.max()
            throw own.map { error.about("\(kind) \($0)") } ?? error
        }
    }
}

extension StoreError {
    /// The same error, with the element of a batch in its message.
    func about(_ element: String) -> StoreError {
        guard !message.hasPrefix("\(element): ") else { return self }
        var error = self
        error.message = "\(element): \(message)"
        return error
    }
}
