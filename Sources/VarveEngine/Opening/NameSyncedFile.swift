// A store's file whose directory is synced before this opening first changes it, not when it is
// opened: most openings show something, and many never write.
//
// Invariants
// - No byte is written through this object, and no length changed, before the directory was synced
//   once. Once a sync of the directory failed in this opening, whoever asked for it, all writes
//   fail: a later one would not bring back the name (DirectoryNames).
// - Reading needs none of it. The name of a file of format version 2 or later that does not end
//   with a CLOSE of epoch 0 is proven (Format.md, "Generations"), unless it is a backup of an
//   earlier library that was killed between its name and the sync. Of such a file nothing can be
//   lost before this opening writes to it.

internal import Synchronization
internal import VarveBase
internal import VarveIO

final class NameSyncedFile: StoreFile {
    private let base: any StoreFile
    private let names: DirectoryNames
    /// From the opening on: a sync that failed since may have lost the name.
    private let mark: Int
    private let isSynced = Mutex(false)

    init(_ base: any StoreFile, _ names: DirectoryNames) {
        self.base = base
        self.names = names
        mark = names.mark
    }

    private func syncName() throws(IOError) {
        try isSynced.withLock { isSynced throws(IOError) in
            if isSynced { return }
            guard names.mark == mark else {
                throw IOError(
                    kind: .other,
                    code: 0,
                    operation: "sync",
                    name: names.directory.name,
                    reason: "an earlier sync of the folder failed, and the store's name may be "
                        + "lost with it; open the store again to write"
                )
            }
            try names.sync(since: mark)
            isSynced = true
        }
    }

    // MARK: Changes

    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        try syncName()
        try base.write(bytes, at: offset)
    }

    func cut(to size: UInt64) throws(IOError) {
        try syncName()
        try base.cut(to: size)
    }

    // MARK: Everything else

    var name: String { base.name }

    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        try base.read(at: offset, count: count)
    }

    func read(
        at offset: FileOffset,
        count: Int,
        into buffer: inout [UInt8]
    ) throws(IOError) -> Int {
        try base.read(at: offset, count: count, into: &buffer)
    }

    func size() throws(IOError) -> UInt64 { try base.size() }
    func identity() throws(IOError) -> FileIdentity { try base.identity() }
    func isSameFile(as found: FileIdentity) throws(IOError) -> Bool {
        try base.isSameFile(as: found)
    }
    func adviseDontNeed() { base.adviseDontNeed() }
    func adviseWillNeed(at offset: FileOffset, count: Int) {
        base.adviseWillNeed(at: offset, count: count)
    }
    func close() { base.close() }
    func syncData() throws(IOError) { try base.syncData() }
    func syncAll() throws(IOError) { try base.syncAll() }
    func word(at offset: FileOffset) -> MappedWord? { base.word(at: offset) }
    func freeBytes() -> UInt64? { base.freeBytes() }
}
