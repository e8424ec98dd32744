// What an opening needs of others before it may read or write.
//
// Invariants
// - A reader is registered before it reads the log, so it is told of every later commit. Without a
//   lock file, where none may be made, it cannot be registered: then it reads one moment of the
//   store and says so.
// - A writer has the turn, and nobody else writes, from before it reads the log.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct Access {
    let role: EngineRole
    /// Whether other processes have the store open for writing.
    private(set) var isBesideWriters = false
    /// What the page said before.
    private(set) var told: SharedState?

    /// - Throws: `busy`, `permission`, `ioFailed`.
    init(
        _ directory: any StoreDirectory,
        _ name: String,
        isReadOnly: Bool,
        _ options: EngineOptions
    ) throws(EngineError) {
        let lockName = name + Engine.lockSuffix
        while true {
            let page = try Engine.io { () throws(IOError) in
                try SharedPage.open(
                    directory,
                    lockName,
                    isReader: isReadOnly,
                    mayMake: { Self.isOwn(directory, name + Engine.fileSuffix) },
                    options.environment
                )
            }
            if isReadOnly {
                role = page.map { .reader(Follower($0)) } ?? .readerOfOneMoment
                return
            }
            let tools = EngineRole.WriterTools(directory, name, options)
            guard let page, let turn = WriterTurn(page) else {
                let lock = SoleLock(try Engine.takeLock(directory, name))
                role = .soleWriter(tools, lock: lock, page: page)
                return
            }
            do throws(EngineError) {
                try turn.take(milliseconds: options.turnMilliseconds)
                // Another thread cannot have given it up: nobody else knows of it yet.
                if try Engine.io({ () throws(IOError) in try turn.isNamed() }) {
                    role = .sharingWriter(tools, turn, Follower(page))
                    isBesideWriters = !turn.isLastWriter
                    told = page.read()
                    return
                }
            } catch {
                turn.close()
                throw error
            }
            // The file was removed while we waited for the lock.
            turn.close()
        }
    }

    /// Whether a file is this user's: a reader of another user's store must not leave a lock file
    /// there that the owner cannot open.
    private static func isOwn(_ directory: any StoreDirectory, _ name: String) -> Bool {
        guard let file = try? directory.openFile(name, mode: .read) else { return false }
        defer { file.close() }
        return (try? file.identity().isOwn) ?? false
    }
}

extension Engine {
    /// The engine is whole: others may hear of it. The turn of the opening ends.
    func beginFirstTurn(durableEnd: FileOffset) throws(EngineError) {
        switch role {
        case .reader, .readerOfOneMoment: return
        case .soleWriter(_, _, let page):
            let state = published.withLock { $0.state }
            try Self.io { () throws(IOError) in
                try page?.write(state, durableEnd: durableEnd, nextObjectID: objectIDHighWater)
            }
        case .sharingWriter(_, let turn, let follower):
            try Self.io { () throws(IOError) in try turn.join() }
            // An opening need not write soon, and must not hold others up when the process is
            // stopped.
            queue.claimLead()
            writer.withLock { giveTurn(&$0) }
            endLead([])
            // What the page says now is no news to the first snapshot.
            if let told = turn.page.lastWritten {
                follower.exclusively { follower.reach(told.sequence, &$0) }
            }
        }
    }
}
