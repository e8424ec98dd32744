// Opening a store; Creation.swift makes one.
//
// Invariants
// - Opening for reading takes no lock that anybody waits for and writes nothing; it makes the lock
//   file when that is missing.
// - A process that may write has the writer's lock before it reads the log.
// - A process that has the store alone reads the log as after a crash, and removes leftovers:
//   before it writes anything, or with its end. Beside other writers it believes what their shared
//   page says of the log, if the page is complete.

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

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - location: where it is. The name is given with or without ".varve".
    ///   - mode: whether to create it, and whether it may be written.
    /// - Throws: `missing`, `missingDirectory`, `permission`, `busy`, `notAStore`, `formatTooNew`,
    ///   `damaged`, `newestCommitDamaged`, `noSpace`, `ioFailed`. For reading, a damaged log is
    ///   opened at its last sound commit, and `damage` says why; it throws when there is none.
    /// - Complexity: O(log bytes since the last checkpoint); after a clean close two small reads,
    ///   and a sync of the directory if it was compacted in format version 1. In later versions
    ///   the first write makes that sync.
    public static func open(
        _ location: StoreLocation,
        mode: StoreOpenMode = .createIfMissing,
        options: EngineOptions = EngineOptions(),
        delegate: any EngineDelegate
    ) throws(EngineError) -> Engine {
        // 1. The directory and the name.
        let (directory, name) = try place(location, options.rights)
        let names = DirectoryNames(directory)
        let fileName = name + fileSuffix
        // 2. The writer's lock, so that nobody else mends or writes.
        let isReadOnly = if case .readOnly = mode { true } else { false }
        let early = earlyFile(fileName, in: directory, isReadOnly)
        if early == nil { _ = try isMissing(fileName, in: directory, mode) }
        let access = try Access(directory, name, isReadOnly: isReadOnly, options)
        do throws(EngineError) {
            // 3. A new store, when it is wanted.
            let known = try stillNamed(early, fileName, in: directory)
            let isNew =
                if known == nil { try isMissing(fileName, in: directory, mode) } else { false }
            if isNew { try create(name, names, options) }
            // 4. The file and its header.
            let found =
                if let known { known } else { try openFile(fileName, in: directory, isReadOnly) }
            let file = try checked(found, fileName, isReadOnly, options.allowsForeignWriters)
            let header = try readHeader(file, fileName, isReadOnly: isReadOnly)
            // 5. The newest commit, and the state it stands for.
            let place = Place(names: names, store: name, isNew: isNew)
            let mayLoseName = !isReadOnly && !isNew && header.generation > 1
            return try open(
                mayLoseName && header.provesItsName ? NameSyncedFile(file, names) : file,
                header,
                place,
                access,
                options,
                delegate
            )
        } catch {
            access.role.close()
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
        var mayHaveLeftovers = false
        /// What the newest frame says of object IDs, and where this opening begins with them.
        var recordedHighWater: UInt64
        var highWater: UInt64
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
            bytesMin: options.scarceNodeCacheBytes,
            scanThreads: options.readingThreads,
            options.environment
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
        let found = try find(replay, place, budget, access, epoch: epoch)
        found.state.adviseWillNeedRoots()
        var writer = WriterState(
            log: found.log,
            epoch: epoch,
            stamp: stamp + 2,
            state: found.state,
            isClosed: found.isClosed,
            recordedHighWater: found.recordedHighWater
        )
        writer.mayHaveLeftovers = found.mayHaveLeftovers
        let engine = Engine(
            names: place.names,
            fileName: place.store + fileSuffix,
            options: options,
            delegate: delegate,
            nodeBudget: budget,
            counters: counters,
            blobStore: blobStore(place, access, options),
            role: access.role,
            state: found.state,
            durable: found.durable,
            writer: writer,
            nextObjectID: max(found.highWater, 1)
        )
        try engine.beginFirstTurn(durableEnd: found.log.durableEnd)
        OpeningWitnesses.current?.opened(.directory(place.names.directory, name: place.store))
        return engine
    }

    private static func blobStore(
        _ place: Place,
        _ access: Access,
        _ options: EngineOptions
    ) -> BlobStore {
        BlobStore(
            files: BlobFiles(
                in: place.names,
                name: place.store + blobSuffix,
                environment: options.environment
            ),
            isKnownToWriters: !access.role.isReadOnly || access.role.page?.locks != nil
                || !place.names.directory.isSharedBetweenProcesses
        )
    }

    /// What the last turn says of the log, or the log itself.
    private static func find(
        _ replay: Replay,
        _ place: Place,
        _ budget: NodeBudget,
        _ access: Access,
        epoch: UInt64
    ) throws(EngineError) -> Found {
        var known: Found?
        // What cannot be used is found in the log.
        do throws(EngineError) { known = try goOn(replay, access) } catch { known = nil }
        if let known { return known }
        return try recover(replay, place, budget, access, epoch: epoch)
    }

    /// Beside other writers: goes on where the last of them ended its turn; nil when that is not
    /// known.
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
            let log = try LogWriter(behind: told, state, replay.options, replay.counters)
        else { return nil }
        return Found(
            state: state,
            log: log,
            recordedHighWater: newest.record.objectIDHighWater,
            highWater: told.nextObjectID
        )
    }

    private static func recover(
        _ replay: Replay,
        _ place: Place,
        _ budget: NodeBudget,
        _ access: Access,
        epoch: UInt64
    ) throws(EngineError) -> Found {
        // From here on nobody may take the page for the truth.
        if !access.role.isReadOnly {
            try io { () throws(IOError) in try access.role.page?.spoil(access.told) }
        }
        var highWater: UInt64 = 0
        let header = replay.generation.header
        let start = LogStart(
            replay: replay,
            names: place.names,
            store: place.store,
            budget: budget,
            epoch: epoch,
            isReadOnly: access.role.isReadOnly,
            isNew: place.isNew,
            leftovers: place.isNew || access.isBesideWriters ? .stay : access.role.leftovers,
            syncsName: header.generation > 1 && !header.provesItsName
        )
        let begun = try start.run { recovered in
            highWater =
                access.isBesideWriters
                ? nobodysObjectIDs(behind: access.told, recovered)
                : objectIDHighWater(after: recovered)
            return highWater
        }
        let recovered = begun.recovered
        let showsUnproven = !begun.isSettled && !recovered.unsettled.isEmpty
        return Found(
            state: begun.state,
            durable: showsUnproven ? recovered.proven.number : nil,
            log: begun.log,
            isClosed: recovered.isClosed,
            mayHaveLeftovers: start.leftovers == .waitForWriting && recovered.isClosed,
            recordedHighWater: recovered.newest.record.objectIDHighWater,
            highWater: highWater
        )
    }

    static func objectIDHighWater(after recovered: RecoveredLog) -> UInt64 {
        let known = recovered.newest.record.objectIDHighWater
        if recovered.isClosed { return known }
        // A record says no more than 2^62.
        return toldHighWater(known + objectIDJump)
    }
}

extension FileHeader {
    /// Whether a compacted file surely says in its CLOSE when it got its name: not every library
    /// that wrote version 1 did.
    fileprivate var provesItsName: Bool { writerNeeds >= FileHeader.packedVersion }
}
