// Opening a store; Creation.swift makes one.
//
// Invariants
// - Opening for reading takes no lock that anybody waits for and writes nothing; it makes the lock
//   file when that is missing.
// - Whoever may write has the writer's lock before he reads the log.
// - Leftovers are removed, and the log is read as after a crash, by who has the store alone. Beside
//   others who may write, what their shared page says of the log is taken when it is complete.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Suffixes of a store's names.
    static let fileSuffix = ".varve"
    static let lockSuffix = ".varve-lock"
    static let blobSuffix = ".varve-blobs"
    static let newSuffix = ".varve-new-"
    /// IDs that an unclean end may have handed out without a trace: they are passed over.
    static let objectIDJump: UInt64 = 1 << 20

    /// Both headers, and the schema of a store that never had another.
    private static let firstBytes = 12 << 10
    /// The newest commit of a store that was closed, and the checkpoint before it.
    private static let lastBytes = 8 << 10

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - location: where it is. The name is given with or without ".varve".
    ///   - mode: whether to create it, and whether it may be written.
    /// - Throws: `missing`, `missingDirectory`, `permission`, `busy`, `notAStore`, `formatTooNew`,
    ///   `damaged`, `newestCommitDamaged`, `noSpace`, `ioFailed`. For reading, a damaged log is
    ///   opened at its last sound commit, and `damage` says why; it throws when there is none.
    /// - Complexity: O(log bytes since the last checkpoint); after a clean close two small reads,
    ///   and a sync of the directory if it was compacted.
    public static func open(
        _ location: StoreLocation,
        mode: StoreOpenMode = .createIfMissing,
        options: EngineOptions = EngineOptions(),
        delegate: any EngineDelegate
    ) throws(EngineError) -> Engine {
        // 1. The directory and the name.
        let (directory, name) = try place(location)
        let names = DirectoryNames(directory)
        let fileName = name + fileSuffix
        // 2. The writer's lock, so that nobody else mends or writes.
        let isReadOnly = if case .readOnly = mode { true } else { false }
        let exists = try io { () throws(IOError) in try directory.exists(fileName) }
        if !exists {
            guard case .createIfMissing = mode else {
                throw EngineError(
                    .missing,
                    "there is no store named \(fileName) in \(directory.name)"
                )
            }
        }
        // What is read of the file first comes from the disk while the lock file is looked at.
        directory.adviseWillNeed(fileName, first: firstBytes, last: lastBytes)
        let access = try Access(directory, name, isReadOnly: isReadOnly, options)
        do throws(EngineError) {
            // 3. A new store, when it is wanted.
            let isNew = try !io { () throws(IOError) in try directory.exists(fileName) }
            if isNew {
                try create(name, names, options)
            } else if !isReadOnly, !access.isBesideWriters {
                try removeLeftovers(name, in: directory)
            }
            // 4. The file and its header.
            let file = try openFile(
                fileName,
                in: directory,
                isReadOnly,
                allowsForeignWriters: options.allowsForeignWriters
            )
            let header = try readHeader(file, fileName, isReadOnly: isReadOnly)
            // 5. The newest commit, and the state it stands for.
            let place = Place(names: names, store: name, isNew: isNew)
            return try open(file, header, place, access, options, delegate)
        } catch {
            access.giveUp()
            let isDamage = error.code == .damaged || error.code == .newestCommitDamaged
            guard isReadOnly, isDamage else { throw error }
            return try openAtLastSound(directory, name, options, delegate, error)
        }
    }

    /// A damaged store for reading: as of its last sound commit, with the reason.
    private static func openAtLastSound(
        _ directory: any StoreDirectory,
        _ name: String,
        _ options: EngineOptions,
        _ delegate: any EngineDelegate,
        _ damage: EngineError
    ) throws(EngineError) -> Engine {
        let observer = try LogObserver.open(.directory(directory, name: name))
        let (engine, failure) = try open(
            observing: observer,
            options: options,
            delegate: delegate
        )
        engine.damageAtOpening.withLock { $0 = observer.failure ?? failure ?? damage }
        return engine
    }

    /// Where a store is opened.
    private struct Place {
        let names: DirectoryNames
        /// Its name without ".varve".
        let store: String
        /// Whether this opening has made it: then its name is durable.
        let isNew: Bool
    }

    /// What an opening has found and stands on.
    private struct Found {
        var state: StoreState
        /// The newest commit that is proven, when a reader is shown others.
        var durable: CommitNumber?
        var log: LogWriter
        var isClosed = false
        /// What the newest frame says of object IDs, and where this opening begins with them.
        var recordedHighWater: UInt64
        var highWater: UInt64
        var isDirty: Bool
    }

    private static func open(
        _ file: any StoreFile,
        _ header: FileHeader,
        _ place: Place,
        _ access: Access,
        _ options: EngineOptions,
        _ delegate: any EngineDelegate
    ) throws(EngineError) -> Engine {
        let counters = EngineCounters()
        let budget = NodeBudget(
            bytesMax: options.nodeCacheBytes,
            scanThreads: options.readingThreads
        )
        let generation = Generation(
            file: file,
            header: header,
            budget: budget,
            counters: counters,
            environment: options.environment
        )
        let epoch = options.environment.randomNumber()
        let stamp = TreeNode.cleanStamp + 1
        let replay = Replay(
            generation: generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: stamp
        )
        var known: Found?
        // What cannot be used is found in the log.
        do throws(EngineError) { known = try goOn(replay, access) } catch { known = nil }
        let found =
            if let known { known } else {
                try recover(replay, place, budget, access, epoch: epoch)
            }
        found.state.adviseWillNeedRoots()
        let writer = WriterState(
            status: .open,
            log: found.log,
            epoch: epoch,
            stamp: stamp + 2,
            pending: found.state,
            lock: access.lock,
            generation: found.state.generation,
            isDirty: found.isDirty,
            isClosedCleanly: found.isClosed,
            recordedHighWater: found.recordedHighWater
        )
        let durableEnd = found.log.durableEnd
        let engine = Engine(
            names: place.names,
            fileName: place.store + fileSuffix,
            options: options,
            delegate: delegate,
            nodeBudget: budget,
            counters: counters,
            blobStore: BlobStore(
                files: BlobFiles(
                    in: place.names,
                    name: place.store + blobSuffix,
                    environment: options.environment
                ),
                isKnownToWriters: !access.isReadOnly || access.page?.locks != nil
                    || !place.names.directory.isSharedBetweenProcesses
            ),
            isReadOnly: access.isReadOnly,
            page: access.page,
            turn: access.turn,
            state: found.state,
            durable: found.durable,
            writer: writer,
            nextObjectID: max(found.highWater, 1)
        )
        try engine.beginFirstTurn(durableEnd: durableEnd)
        OpeningWitnesses.current?.opened(.directory(place.names.directory, name: place.store))
        return engine
    }

    /// Beside others who may write: goes on where the last of them ended his turn; nil when that is
    /// not known.
    private static func goOn(
        _ replay: Replay,
        _ access: Access
    ) throws(EngineError) -> Found? {
        let generation = replay.generation
        guard access.isBesideWriters, let told = access.told, told.isComplete,
            told.fileID == generation.header.fileID
        else { return nil }
        let chain = try CommitChain(generation: generation, newest: told.frame)
        let (state, newest) = try replay.state(of: chain)
        guard state.number == told.number,
            let log = try logWriter(behind: told, state, replay.options, replay.counters)
        else { return nil }
        return Found(
            state: state,
            log: log,
            recordedHighWater: newest.record.objectIDHighWater,
            highWater: told.nextObjectID,
            isDirty: state.isDirty
        )
    }

    private static func recover(
        _ first: Replay,
        _ place: Place,
        _ budget: NodeBudget,
        _ access: Access,
        epoch: UInt64
    ) throws(EngineError) -> Found {
        var replay = first
        let (options, counters) = (replay.options, replay.counters)
        // From here on nobody may take the page for the truth.
        if !access.isReadOnly {
            try io { () throws(IOError) in try access.page?.spoil() }
        }
        // 5a. The newest commit, and what proves it.
        var recovered = try readLog(
            replay.generation.log,
            replay.generation.file,
            place.names,
            isReadOnly: access.isReadOnly,
            syncsName: replay.generation.header.generation > 1
        )
        if !access.isReadOnly, !place.isNew, !recovered.provesName {
            let file = NewFile(
                replay: replay,
                names: place.names,
                store: place.store,
                budget: budget,
                epoch: epoch
            )
            (replay.generation, recovered) = try file.write(recovered)
        }
        let generation = replay.generation
        // 5b. Its state: roots, then row changes.
        var state = try replay.state(of: recovered)
        state.liveBytes = recovered.newest.record.liveBytes
        // 5c. Where the log goes on; what is not proven is written again.
        var log = logWriter(
            behind: recovered,
            generation.file,
            generation.header.fileSeed,
            options,
            counters
        )
        var highWater = objectIDHighWater(after: recovered)
        if access.isBesideWriters {
            highWater = nobodysObjectIDs(behind: access.told, recovered)
        }
        var isDirty = state.isDirty
        let isSettled =
            access.isReadOnly || recovered.unsettled.isEmpty
            || options.environment.leavesOut("recovery.settle")
        if !isSettled {
            state = try settle(
                state,
                recovered,
                replay,
                stamp: replay.stamp + 1,
                epoch: epoch,
                highWater,
                &log
            )
            isDirty = state.isDirty
            counters.settledCommits.add(UInt64(recovered.unsettled.count), ordering: .relaxed)
        }
        return Found(
            state: state,
            durable: isSettled && !recovered.unsettled.isEmpty ? recovered.proven.number : nil,
            log: log,
            isClosed: recovered.isClosed,
            recordedHighWater: recovered.newest.record.objectIDHighWater,
            highWater: highWater,
            isDirty: isDirty
        )
    }

    /// The log's tail as it is now. A reader has no turn: a writer may cut off what a dead one left
    /// while he reads it; then he reads again.
    static func scanned(
        _ reader: LogReader,
        isReadOnly: Bool
    ) throws(EngineError) -> RecoveredLog {
        for _ in 0..<8 {
            let size = try reader.size()
            do throws(EngineError) {
                return try Recovery(scan: LogScan(log: reader, size: size)).run()
            } catch {
                guard isReadOnly, try reader.size() < size else { throw error }
            }
        }
        throw EngineError(.ioFailed, "the store file became shorter each time it was read")
    }

    /// The log's tail, for a writer after a sync and from the disk again.
    ///
    /// - Parameter syncsName: whether the store's name may be that of another file after a crash,
    ///   however its log ends: a compaction may not have come to its end.
    static func readLog(
        _ reader: LogReader,
        _ file: any StoreFile,
        _ names: DirectoryNames,
        isReadOnly: Bool,
        syncsName: Bool
    ) throws(EngineError) -> RecoveredLog {
        var recovered = try scanned(reader, isReadOnly: isReadOnly)
        if !isReadOnly, let place = recovered.writerFeatures {
            throw EngineError(
                .formatTooNew,
                "the store uses features that this library does not know; it can be opened for "
                    + "reading",
                place: place
            )
        }
        if isReadOnly || !syncsName,
            recovered.newest.header.kind == .close && recovered.isClosed
        {
            return recovered
        }
        if !isReadOnly {
            // `provesName` is what counts. An earlier library's compacted file does not say when
            // it got its name: the process may have died before it synced the directory.
            try io { () throws(IOError) in try names.sync(since: names.mark) }
        }
        if recovered.isClosed { return recovered }
        if !isReadOnly {
            // What was read may be in the system's memory only: a sync and a fresh read show the
            // disk's truth earlier. Neither proves anything; the settle does.
            try io { () throws(IOError) in try file.syncData() }
            file.adviseDontNeed()
        }
        // A read that goes wrong once must not make a torn tail of the newest commit: whoever sees
        // less than was seen before looks again.
        for _ in 0..<4 {
            let again = try scanned(reader, isReadOnly: isReadOnly)
            if again.newest.offset >= recovered.newest.offset, again.dataEnd >= recovered.dataEnd {
                return again
            }
            recovered = again
        }
        throw EngineError(.ioFailed, "reads of the store's log contradict each other")
    }

    static func logWriter(
        behind recovered: RecoveredLog,
        _ file: any StoreFile,
        _ seed: UInt64,
        _ options: EngineOptions,
        _ counters: EngineCounters
    ) -> LogWriter {
        // Behind anything doubtful: a fresh page, clear of it and of a bad sector. The end of the
        // newest frame may be zeros: its tail word did not arrive.
        let dataEnd = max(recovered.dataEnd, recovered.newest.end.rawValue)
        let end =
            recovered.isClosed ? recovered.newest.end : FileOffset((dataEnd + 4095) & ~4095)
        return LogWriter(
            file: file,
            seed: seed,
            options: options,
            counters: counters,
            end: end,
            durableEnd: recovered.durableEnd,
            lastCommit: recovered.proven.offset,
            lastCommitHash: recovered.proven.header.payloadHash,
            checkpoint: recovered.base.offset
        )
    }

    private static func objectIDHighWater(after recovered: RecoveredLog) -> UInt64 {
        let known = recovered.newest.record.objectIDHighWater
        if recovered.isClosed { return known }
        // A record says no more than 2^62.
        return toldHighWater(known + objectIDJump)
    }

    static func settle(
        _ state: StoreState,
        _ recovered: RecoveredLog,
        _ replay: Replay,
        stamp: UInt64,
        epoch: UInt64,
        _ highWater: UInt64,
        _ log: inout LogWriter
    ) throws(EngineError) -> StoreState {
        let options = replay.options
        var record = CommitRecord()
        record.number = state.number
        record.epoch = epoch
        record.clockMicroseconds = options.environment.wallClockMicroseconds()
        record.liveBytes = state.liveBytes
        record.objectIDHighWater = toldHighWater(highWater)
        record.schemaVersion = state.schemaVersion
        let settle = Settle(
            generation: state.generation,
            options: options,
            durableEnd: recovered.durableEnd
        )
        let mark = log.mark
        // A sync may say so, too: then a commit frame is there, and nothing goes behind it.
        func foundNoRoom(_ error: EngineError) -> Bool {
            error.code == .noSpace && !log.isBroken && !log.hasHandedCommit
        }
        if try log.mayHold(settle.pageBytes(of: state, recovered), leaving: options.tailReserve) {
            do throws(EngineError) {
                return try settle.run(
                    state,
                    of: recovered.unsettled,
                    record: record,
                    stamp: stamp,
                    &log
                )
            } catch {
                guard foundNoRoom(error) else { throw error }
                log.rollback(to: mark)
            }
        }
        if Settle.canBeChanges(recovered.unsettled),
            try log.mayHold(settle.bytes(of: recovered), leaving: settle.reserve)
        {
            do throws(EngineError) {
                return try settle.runAsChanges(
                    recovered,
                    to: state,
                    objectIDHighWater: record.objectIDHighWater,
                    replay,
                    &log
                )
            } catch {
                guard foundNoRoom(error) else { throw error }
                log.rollback(to: mark)
            }
        }
        try settle.runInPlace(recovered, &log)
        replay.counters.settledInPlace.add(UInt64(recovered.unsettled.count), ordering: .relaxed)
        return state
    }
}
