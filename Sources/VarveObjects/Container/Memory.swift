// What a container keeps in memory, and how it is given back.

import VarveEngine
import VarveRecords

/// How much memory `PersistentContainer.trimMemory` gives back.
public enum MemoryTrim: Sendable, Hashable {
    /// Rows that no object holds, what lists have read ahead, states of the past that nobody reads,
    /// and the memory that is kept for the next large value (that of all containers). What is read
    /// again is decoded from pages in memory: for an app that goes to the background, or as often
    /// as one likes.
    case rows
    /// These, every decoded page that nobody changed, and the buffers that pages are read into
    /// (those of all containers). The next reads come from the file: for memory warnings.
    case everything
}

extension PersistentContainer {
    /// Whether the row of an object is in the row cache. No I/O.
    public func isRowCached(_ id: ManagedObjectID) -> Bool {
        registries.settle(in: self)
        return id.store == identity && store.rowCache.contains(id.object)
    }

    /// Gives memory back; reads get it again when they need it. Rows that objects hold stay: see
    /// `ManagedObjectContext.refreshAllObjects`. Pages with changes that are not in the file as
    /// pages yet stay, too.
    ///
    /// - Parameter level: how much goes.
    /// - Complexity: O(rows, and pages, that go).
    public func trimMemory(_ level: MemoryTrim = .rows) {
        registries.settle(in: self)
        store.rowCache.trim()
        store.engine.forgetPastStates()
        PagePool.trim()
        if level == .everything { store.engine.trimMemory() }
    }

    /// How many contexts have an object registered: the reference count of its row.
    public func referenceCount(of id: ManagedObjectID) -> Int {
        id.store == identity ? registries.references(id.object) : 0
    }
}
