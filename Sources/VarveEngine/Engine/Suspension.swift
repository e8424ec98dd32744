// Suspension: an engine that gives up every lock, and comes back to what others did meanwhile.
//
// Invariants
// - A suspended engine holds no lock and takes none, and changes no byte of the store.
// - It keeps the store file open, for reading: a snapshot goes on with the file that it began with,
//   also when another process puts a compacted one in its place.
// - Others do not know of it. So before it gives its locks up, the log itself says which object IDs
//   are its own; and what it finds when it comes back counts as written by others.
// - Copies (compactions, backups) end before: they would go on writing.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class Suspension: Sendable {
    private struct State {
        /// Copies are asked to end, and none begins.
        var isEnding = false
        var copies = 0
    }
    /// Suspending and coming back, one at a time.
    let transition = Mutex(())
    private let state = Mutex(State())
    private let suspended = Atomic<Bool>(false)
    private let ending = Atomic<Bool>(false)
    /// How an engine that writes alone reads what others wrote meanwhile.
    let follower = Mutex(Follower.State())

    /// Whether every lock was given up. Changes under the writer lock.
    var isSuspended: Bool {
        get { suspended.load(ordering: .acquiring) }
        set { suspended.store(newValue, ordering: .releasing) }
    }

    /// Whether copies have to end.
    var isEnding: Bool { ending.load(ordering: .relaxed) }

    static var error: EngineError {
        EngineError(
            .suspended,
            "the store is suspended: it has given up its locks and writes nothing"
        )
    }

    func beginCopy() throws(EngineError) {
        let begins = state.withLock { state in
            if !state.isEnding { state.copies += 1 }
            return !state.isEnding
        }
        if !begins { throw Self.error }
    }

    func endCopy() { state.withLock { $0.copies -= 1 } }

    /// Returns when no copy is under way.
    func endCopies() {
        state.withLock { $0.isEnding = true }
        ending.store(true, ordering: .relaxed)
        let pause = Parker()
        while state.withLock({ $0.copies > 0 }) { _ = pause.park(milliseconds: 2) }
    }

    func allowCopies() {
        ending.store(false, ordering: .relaxed)
        state.withLock { $0.isEnding = false }
    }
}

/// The lock of an engine that writes alone; it is given up while the engine is suspended.
final class SoleLock: Sendable {
    private let lock: Mutex<(any FileLock)?>

    init(_ lock: any FileLock) { self.lock = Mutex(lock) }

    func release() {
        lock.withLock { lock in
            lock?.release()
            lock = nil
        }
    }

    func take(_ directory: any StoreDirectory, _ name: String) throws(EngineError) {
        try lock.withLock { lock throws(EngineError) in
            if lock == nil { lock = try Engine.takeLock(directory, name) }
        }
    }
}

extension Engine {
    /// Whether `suspend` was called, and `resume` not since.
    public var isSuspended: Bool { suspension.isSuspended }

    /// Waits for the commits that are under way, ends compactions and backups, and gives up every
    /// lock. From then on nothing is written, and commits of other processes are not followed:
    /// `write` and what needs it throw `suspended`, snapshots are of the newest commit that this
    /// engine knows. Twice does nothing.
    ///
    /// - Throws: `busy` when another process does not end its turn in time, `noSpace`, `ioFailed`,
    ///   `poisoned`, `closed`: then nothing is suspended, and the locks are held.
    /// - Complexity: O(commits under way); one small write and sync.
    public func suspend() throws(EngineError) {
        try checkNotInBody()
        try suspension.transition.withLock { _ throws(EngineError) in
            if suspension.isSuspended { return }
            suspension.endCopies()
            do throws(EngineError) {
                if role.isReadOnly { try suspendReader() } else { try suspendWriter() }
            } catch {
                suspension.allowCopies()
                throw error
            }
            role.follower?.thread.withLock { $0 = nil }
            role.page?.stopReading()
            role.maintenance?.forgetFile()
        }
    }

    /// Takes the locks again, and follows what other processes committed meanwhile, in a compacted
    /// file, too. Does nothing for an engine that is not suspended.
    ///
    /// - Throws: `busy` when another process has the store for itself or does not end its turn in
    ///   time; `storeGone` when the store was replaced; `ioFailed` when the lock file was;
    ///   `damaged`, `noSpace`, `closed`: it is still suspended.
    /// - Complexity: O(bytes of the new commits).
    public func resume() throws(EngineError) {
        try checkNotInBody()
        try suspension.transition.withLock { _ throws(EngineError) in
            guard suspension.isSuspended else { return }
            let before = published.withLock { $0.state.publication }
            if role.isReadOnly { try resumeReader() } else { try resumeWriter() }
            suspension.allowCopies()
            // Whoever swept blob files meanwhile did not know of snapshots that need them.
            if before != published.withLock({ $0.state.publication }) { blobStore.wasAway() }
        }
        if role.follower?.wantsNews.load(ordering: .relaxed) == true { startFollowing() }
        heedOthers()
        follow()
    }

    // MARK: Readers

    private func suspendReader() throws(EngineError) {
        if writer.withLock({ if case .closed = $0.status { true } else { false } }) {
            throw EngineError(.closed, "the store is closed")
        }
        guard let follower = role.follower else { return suspension.isSuspended = true }
        // Nobody is in the middle of it.
        follower.exclusively { _ in suspension.isSuspended = true }
    }

    private func resumeReader() throws(EngineError) {
        guard let follower = role.follower else { return suspension.isSuspended = false }
        try checkLockFile()
        // From here on writers know of it, and keep what it reads.
        try Self.io { () throws(IOError) in _ = try follower.page.startReading() }
        do throws(EngineError) {
            try follower.exclusively { state throws(EngineError) in
                try catchUpWithFile(&state)
                suspension.isSuspended = false
            }
        } catch {
            follower.page.stopReading()
            throw error
        }
    }

    /// The newest commit of the file that has the store's name: a process that wrote alone told of
    /// none in the lock file.
    private func catchUpWithFile(_ follower: inout Follower.State) throws(EngineError) {
        try checkExists()
        let here = published.withLock { $0.state }
        let file = try Self.openFile(fileName, in: directory, true)
        let header = try Self.readHeader(file, fileName, isReadOnly: true)
        try checkSameStore(file, header, here.generation)
        let isSame = header.fileID == here.generation.header.fileID
        let log = isSame ? here.generation.log : LogReader(file: file, seed: header.fileSeed)
        let scan = LogScan(log: log, size: try log.size())
        let newest = try LogStart.scanned(log, isReadOnly: true).newest
        // No commit names a CLOSE as the one before it.
        let last =
            newest.header.kind == .close ? try scan.previous(of: newest) ?? newest : newest
        let told = SharedState(
            fileID: header.fileID,
            generation: header.generation,
            number: last.number,
            frame: last.offset,
            durableEnd: last.end,
            sequence: 0,
            isComplete: false,
            logEnd: last.end,
            preparedEnd: last.end,
            nextObjectID: 0,
            process: 0
        )
        if isSame { file.close() }
        try catchUp(to: told, &follower)
    }

    // MARK: Writers

    private func suspendWriter() throws(EngineError) {
        try exclusively { writer throws(EngineError) in
            switch writer.status {
            case .closed: throw EngineError(.closed, "the store is closed")
            case .poisoned: break
            case .open: try endForSuspension(&writer)
            }
            suspension.isSuspended = true
            if let turn = role.turn {
                giveTurn(&writer)
                turn.suspend()
            } else {
                share(durableEnd: writer.log.durableEnd)
                _ = writer.log.room.retire()
                writer.hasTurn = false
                role.soleLock?.release()
            }
        }
    }

    /// Makes everything durable, with a CLOSE that names all object IDs that this engine may still
    /// hand out: whoever has the store meanwhile takes others.
    private func endForSuspension(_ writer: inout WriterState) throws(EngineError) {
        try syncHanded(&writer)
        if writer.needsCheckpoint, writer.log.tailBytes > options.idleTailBytes {
            do throws(EngineError) {
                try checkpoint(&writer, leaving: options.maintenanceReserve)
            } catch {
                // It only makes the next opening shorter, if the app does not come back.
                guard error.code == .noSpace, writer.isOpen else { throw error }
            }
        }
        _ = objectIDs.setAside()
        do throws(EngineError) { try appendWitness(&writer, objectIDs: objectIDHighWater) } catch {
            objectIDs.takeBack()
            throw error
        }
    }

    private func resumeWriter() throws(EngineError) {
        guard let turn = role.turn else { return try resumeSoleWriter() }
        try checkLockFile()
        try Self.io { () throws(IOError) in _ = try turn.page.startReading() }
        turn.resume()
        do throws(EngineError) {
            try exclusively { writer throws(EngineError) in
                if case .closed = writer.status {
                    throw EngineError(.closed, "the store is closed")
                }
                if writer.hasTurn { try Self.io { () throws(IOError) in try turn.join() } }
                suspension.isSuspended = false
                // As at opening: a process that does not write holds nobody up.
                giveTurn(&writer)
            }
        } catch {
            turn.suspend()
            turn.page.stopReading()
            throw error
        }
    }

    private func resumeSoleWriter() throws(EngineError) {
        guard let lock = role.soleLock else { return }
        try lock.take(directory, storeName)
        do throws(EngineError) {
            try exclusively { writer throws(EngineError) in
                switch writer.status {
                case .closed: throw EngineError(.closed, "the store is closed")
                case .poisoned: break
                case .open: try goOnAlone(&writer)
                }
                suspension.isSuspended = false
            }
        } catch {
            lock.release()
            throw error
        }
    }

    /// Where this engine stopped, or behind what others wrote since.
    private func goOnAlone(_ writer: inout WriterState) throws(EngineError) {
        try checkExists()
        let generation = writer.generation
        let isNamed = try Self.io { () throws(IOError) in
            try directory.isNamed(fileName, generation.file) ?? true
        }
        if isNamed, try LogWriter.isFree(generation.log, writer.log.end) {
            // Whoever closed the store may have cut zeros off.
            let prepared = writer.log.room.retire().rawValue
            let size = max(try generation.log.size(), writer.log.end.rawValue)
            writer.log.room.revive(preparedTo: FileOffset(min(prepared, size)))
            objectIDs.takeBack()
        } else {
            try suspension.follower.withLock { follower throws(EngineError) in
                try readAgain(nil, &writer, &follower)
            }
            try checkNamed(writer.generation.file)
        }
        writer.hasTurn = true
    }

    private func checkLockFile() throws(EngineError) {
        guard let locks = role.page?.locks else { return }
        guard try Self.io({ () throws(IOError) in try locks.isNamed() }) else {
            throw EngineError(
                .ioFailed,
                "the file \(lockName) was removed or replaced while the store was suspended; close "
                    + "the store and open it again"
            )
        }
    }

    /// The file that has the store's name is the one from before or a compaction of it: not a copy
    /// that took its place.
    func checkSameStore(
        _ file: any StoreFile,
        _ header: FileHeader,
        _ known: Generation
    ) throws(EngineError) {
        guard header.storeID == storeID else { throw storeGone() }
        guard header.fileID == known.header.fileID else { return }
        let isSame = try Self.io { () throws(IOError) in
            try file.identity().isSameFile(as: known.file.identity())
        }
        if !isSame { throw storeGone() }
    }
}
