// Names in the store's directory, and the syncs that make them durable.
//
// Invariants
// - A sync that fails loses every name that waited for it: the running system shows them, and no
//   later sync makes them durable. So a sync counts only for names that were given after the last
//   one that failed, whichever call made it.
// - Syncs of this opening run one at a time: the failure of one cannot be told after the success of
//   another that it has emptied.

internal import Synchronization
internal import VarveIO

final class DirectoryNames: Sendable {
    let directory: any StoreDirectory
    /// Syncs that failed.
    private let failures = Mutex(0)

    init(_ directory: any StoreDirectory) { self.directory = directory }

    /// A moment before names are given, for the sync after it.
    var mark: Int { failures.withLock { $0 } }

    /// Makes the names durable that were given since `mark`.
    ///
    /// - Throws: the system's error, or one that says that another sync failed meanwhile: then the
    ///   names have to be given again.
    func sync(since mark: Int) throws(IOError) {
        try failures.withLock { failures throws(IOError) in
            do throws(IOError) { try directory.sync() } catch {
                failures += 1
                throw error
            }
            guard failures == mark else {
                throw IOError(
                    kind: .other,
                    code: 0,
                    operation: "sync",
                    name: directory.name,
                    reason: "another sync of the folder failed meanwhile"
                )
            }
        }
    }
}
