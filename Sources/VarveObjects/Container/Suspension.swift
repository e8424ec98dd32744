// Suspending a container: an app that the system stops holds no lock meanwhile.
//
// Invariants
// - From the return of `suspend` to the call of `resume` no lock of the store is held, none is
//   taken, and no byte of the store is written.
// - Contexts keep their commit, their objects and their unsaved edits, and can be read: the store
//   file stays open, without a lock.

import VarveEngine
import VarveRecords

extension PersistentContainer {
    /// Whether the container has given up its locks.
    public var isSuspended: Bool { store.engine.isSuspended }

    /// Waits for the saves that are under way, ends compactions and backups, and gives up every
    /// lock of the store: for an app that the system is about to suspend.
    ///
    /// A system may end an app that is suspended with a lock on a file that other processes use, as
    /// iOS does in the containers of app groups; and a process that is stopped with the turn to
    /// write keeps all others from writing. The store file, the lock file and the store's folders
    /// stay open, which is allowed: nothing is locked.
    ///
    /// Until `resume()` a save, a batch, a backup, a compaction and whatever else writes throws
    /// `suspended`; the edits stand. Reads go on, at the commits that are known now: a view that is
    /// drawn meanwhile shows what it showed. Contexts do not hear of commits of others. Another
    /// process does not know of this one and may remove blob files that no longer belong to its
    /// newest commit: reading one of those is `blobSwept`, and a blob that was written and not
    /// saved may have to be written again.
    ///
    /// - Throws: `StoreError` with `busy` when another process does not end its turn to write
    ///   within ten seconds; `diskFull`, `ioFailed`, `closed`; `reentrantSave` in a closure that
    ///   runs while the store is being written: then it is not suspended.
    /// - Complexity: O(saves under way), with one small write and a sync. Twice does nothing.
    public func suspend() async throws {
        try await Self.onThread { [self] in try suspendNow() }
    }

    /// Like `suspend`, and waits for it: for a handler that must not return before.
    public func suspendNow() throws {
        try checkOpen()
        try translating { () throws(RecordError) in try store.suspend() }
    }

    /// Takes the locks again, and brings what other processes saved meanwhile, also into another
    /// file if one of them compacted the store. The view context follows as it does after any
    /// commit of others, and other contexts at their next save, `advance()` or
    /// `refreshAllObjects()`; unsaved edits stay.
    ///
    /// - Throws: `StoreError` with `busy` when another process has the store for itself, or does
    ///   not end its turn within ten seconds; `storeGone` when another store is in its place;
    ///   `damaged`, `diskFull`, `ioFailed`, `closed`. It is suspended still, and can be resumed
    ///   later or closed.
    /// - Complexity: O(bytes of the commits since). Without `suspend` before it does nothing.
    public func resume() async throws {
        try await Self.onThread { [self] in try resumeNow() }
    }

    /// Like `resume`, and waits for it.
    public func resumeNow() throws {
        try checkOpen()
        try translating { () throws(RecordError) in try store.resume() }
    }
}
