// The bytes of the lock file through which processes tell each other of commits.
//
// Invariants
// - Written by the holder of the writer's lock alone, after the sync of what it names.
// - Whatever is wrong with it, nothing but freshness and time is lost.
// - It is a regular file with one name: bytes of the page change no other file.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class SharedPage: Sendable {
    /// Where a process that waits for its turn writes, so that those that watch the file look up.
    private static let knock = FileOffset(512)

    private let file: any StoreFile
    /// Locks on bytes of the file; nil where the system has none: others are always reckoned with.
    let locks: (any LockBytes)?
    private let last: Mutex<Last>
    private let word = WatchedWord()
    /// The system's number of this process.
    private let process: UInt64

    /// The lock file's bytes, or nil where no other process can be.
    ///
    /// - Parameter mayMake: whether a reader makes the file when it is missing. Without it no
    ///   writer that comes later knows of him, and none tells him of commits.
    /// - Throws: to a writer. A reader gets nil and knows what the store file says now.
    static func open(
        _ directory: any StoreDirectory,
        _ name: String,
        isReader: Bool,
        mayMake: () -> Bool,
        _ environment: any Environment
    ) throws(IOError) -> SharedPage? {
        guard directory.isSharedBetweenProcesses else { return nil }
        guard isReader else { return try open(directory, name, isReader: false, environment) }
        // Read-only media, or a folder that is not the reader's: the store file has to be enough.
        for _ in 0..<8 {
            do throws(IOError) {
                if try !directory.exists(name) {
                    guard mayMake() else { return nil }
                    // Locking makes it.
                    try directory.lock(
                        name,
                        byte: LockByte.reading,
                        kind: .shared,
                        wait: false
                    ).release()
                }
                let page = try open(directory, name, isReader: true, environment)
                // Removed meanwhile: a writer would look into another file.
                if try page.locks?.isNamed() ?? true { return page }
                page.close()
            } catch {
                return nil
            }
        }
        return nil
    }

    private static func open(
        _ directory: any StoreDirectory,
        _ name: String,
        isReader: Bool,
        _ environment: any Environment
    ) throws(IOError) -> SharedPage {
        let locks = try directory.openLocks(name, isReader: isReader)
        if !isReader, locks == nil {
            // Makes the file.
            try directory.lock(name, byte: LockByte.next, kind: .shared, wait: true).release()
        }
        let file =
            if let opened = locks?.file {
                opened
            } else {
                try directory.openFile(name, mode: isReader ? .read : .readWrite)
            }
        do throws(IOError) {
            // Before the first byte is written: another name may be that of anybody's file.
            if !isReader { try file.checkOnlyName(name) }
        } catch {
            file.close()
            locks?.close()
            throw error
        }
        // Writers must know that somebody wants to hear of commits.
        if isReader { _ = try locks?.tryLock(LockByte.reading, .shared) }
        return SharedPage(file, locks, environment)
    }

    private init(
        _ file: any StoreFile,
        _ locks: (any LockBytes)?,
        _ environment: any Environment
    ) {
        self.file = file
        self.locks = locks
        last = Mutex(Last(sequence: environment.randomNumber()))
        process = UInt64(UInt32(bitPattern: environment.processID()))
    }

    /// Registers a process that reads with those that write. Twice is once.
    func startReading() throws(IOError) { _ = try locks?.tryLock(LockByte.reading, .shared) }

    /// Takes that back.
    func stopReading() { locks?.unlock(LockByte.reading) }

    /// What is written there now; nil when it cannot be used.
    func read() -> SharedState? {
        do throws(IOError) {
            return SharedState(
                decoding: try file.read(at: FileOffset(0), count: SharedState.length)
            )
        } catch {
            return nil
        }
    }

    /// The sequence that is written there now, without a system call; nil where that cannot be had.
    var sequence: UInt64? { word.value.map { UInt64(littleEndian: $0) } }

    /// From now on `sequence` says something, where the system can. Called when the page is known
    /// to be there.
    func watchSequence() {
        if word.value == nil,
            let mapped = file.word(at: FileOffset(SharedState.sequenceOffset))
        {
            word.set(mapped)
        }
    }

    /// What this process wrote last.
    var lastWritten: SharedState? { last.withLock { $0.told } }

    private struct Last {
        var told: SharedState?
        /// Counts what this process writes, from a number of its own on: so two writers in turn do
        /// not meet, and who watches the number sees each of their words.
        var sequence: UInt64

        mutating func next() -> UInt64 {
            sequence &+= 1
            return sequence
        }
    }

    /// Tells of a state that is on disk; costs nothing when it was told before.
    func write(
        _ state: StoreState,
        durableEnd: FileOffset,
        log: (end: FileOffset, prepared: FileOffset)? = nil,
        nextObjectID: UInt64
    ) throws(IOError) {
        let header = state.generation.header
        let bytes = last.withLock { last -> [UInt8] in
            let next = SharedState(
                fileID: header.fileID,
                generation: header.generation,
                number: state.number,
                frame: state.frame,
                durableEnd: durableEnd,
                sequence: last.next(),
                isComplete: log != nil,
                logEnd: log?.end ?? durableEnd,
                preparedEnd: log?.prepared ?? durableEnd,
                nextObjectID: min(nextObjectID, CommitRecord.countersEnd - 1),
                process: process
            )
            last.told = next
            return next.encoded()
        }
        try file.write(bytes, at: FileOffset(0))
    }

    /// Takes back that the page is complete: the next process reads the log.
    ///
    /// - Parameter known: what was read of it in this turn, if anything was.
    func spoil(_ known: SharedState? = nil) throws(IOError) {
        guard var told = known ?? read(), told.isComplete else { return }
        told.isComplete = false
        told.sequence = last.withLock { $0.next() }
        try file.write(told.encoded(), at: FileOffset(0))
    }

    /// Wakes the processes that watch the file.
    func wakeOthers() { try? file.write([UInt8](repeating: 1, count: 8), at: Self.knock) }

    func close() {
        word.detach()
        locks?.close()
        file.close()
    }
}

extension Engine {
    static func lockName(of fileName: String) -> String {
        String(fileName.dropLast(fileSuffix.count)) + lockSuffix
    }
    var lockName: String { Self.lockName(of: fileName) }

    /// Tells other processes of the published state once it is on disk. Called by the leader or
    /// under the writer lock.
    func share(durableEnd: FileOffset) {
        guard let page = role.page, !role.isReadOnly else { return }
        let state = published.withLock { $0.state }
        guard state.frame < durableEnd else { return }
        if let last = page.lastWritten, last.frame == state.frame,
            last.fileID == state.generation.header.fileID
        {
            return
        }
        // A reader that does not hear of this commit hears of the next one.
        try? page.write(state, durableEnd: durableEnd, nextObjectID: objectIDHighWater)
    }
}
