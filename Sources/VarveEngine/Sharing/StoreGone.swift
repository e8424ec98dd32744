// The store's file is removed or replaced while it is open.
//
// Invariants
// - No commit is acknowledged that is in a file without the store's name: after the sync that makes
//   it durable, and before anybody hears of it, the name is looked at.
// - The name changes hands only in a turn: a compaction of another process is seen when the turn
//   begins, before the name is looked at.
// - What cannot be looked at is no reason to refuse.

internal import VarveBase
internal import VarveIO

extension Engine {
    /// - Throws: `storeGone` when the store's name is not that of `file`, the one that is written.
    /// - Complexity: two system calls.
    func checkNamed(_ file: any StoreFile) throws(EngineError) {
        let isNamed: Bool?
        do throws(IOError) { isNamed = try directory.isNamed(fileName, file) } catch { return }
        if isNamed == false { throw storeGone() }
    }

    /// - Throws: `storeGone` when nothing has the store's name.
    func checkExists() throws(EngineError) {
        let exists: Bool
        do throws(IOError) { exists = try directory.exists(fileName) } catch { return }
        if !exists { throw storeGone() }
    }

    func storeGone() -> EngineError {
        EngineError(
            .storeGone,
            "the file \(fileName) in \(directory.name) was removed or replaced while the store was "
                + "open: nothing of this save is in the store. What was saved before is safe in "
                + "the file that this process still has open: reads go on, and a backup writes it "
                + "to another place. Close the store and open it again to use what is there now"
        )
    }

    /// The lock file was touched, or lost its name: perhaps the store's file went with it.
    func lookForStore() {
        writer.withLock { writer in
            guard writer.isOpen, writer.hasTurn else { return }
            do throws(EngineError) { try checkNamed(writer.generation.file) } catch {
                _ = poison(&writer, error)
            }
        }
    }
}
