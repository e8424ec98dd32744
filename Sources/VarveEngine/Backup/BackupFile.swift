// The store file of a backup while it is written.
//
// Invariants
// - It is synced every few megabytes in the order of its bytes.
// - What recovery would say of it is asked before it gets its name, or is left as an increment.
// - An earlier backup is locked meanwhile, and only the CLOSE frames behind its newest commit are
//   cut off.
// - A new file says that nothing proves its name (a CLOSE of epoch 0) until the directory is synced
//   behind it: a process that was killed in between leaves no file that anybody relies on.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct BackupFile {
    /// What becomes of the copy.
    enum Purpose {
        /// It stays as it is until an increment or a restore.
        case backup
        /// It takes the store's name, which another file may have. The caller has the lock.
        case store(replaces: Bool)
    }

    static let syncBytes: UInt64 = 8 << 20

    let directory: any StoreDirectory
    let name: String
    let fileName: String
    let isIncrement: Bool
    private let purpose: Purpose
    private let file: any StoreFile
    private let options: EngineOptions
    private let state: StoreState
    private let newest: ScannedCommit
    private var lock: (any FileLock)?
    /// Where the next byte goes.
    private(set) var end: UInt64
    private var syncedEnd: UInt64

    init(
        of state: StoreState,
        _ newest: ScannedCommit,
        in directory: any StoreDirectory,
        _ store: String,
        _ options: EngineOptions,
        for purpose: Purpose = .backup
    ) throws(EngineError) {
        self.directory = directory
        self.purpose = purpose
        self.options = options
        self.state = state
        self.newest = newest
        fileName = store + Engine.fileSuffix
        isIncrement = try Engine.io { [fileName] () throws(IOError) in
            if case .store = purpose { false } else { try directory.exists(fileName) }
        }
        if isIncrement {
            name = fileName
            let lock = try Engine.takeLock(directory, store)
            let file = try Engine.openFile(name, in: directory, false)
            end = try Self.endOfEarlier(file, fileName, state, newest)
            (self.file, self.lock) = (file, lock)
        } else {
            name = Engine.temporaryName(store, options.environment)
            file = try Engine.io { [name] () throws(IOError) in
                try directory.openFile(name, mode: .createExclusive)
            }
            end = 0
        }
        syncedEnd = end
    }

    /// Where the newest commit of an earlier backup ends; it must be one of this file.
    private static func endOfEarlier(
        _ file: any StoreFile,
        _ name: String,
        _ state: StoreState,
        _ newest: ScannedCommit
    ) throws(EngineError) -> UInt64 {
        func refused(_ why: String) -> EngineError {
            EngineError(.invalid, "\(name) \(why); make a full backup under another name")
        }
        let header = try Engine.readHeader(file, name, isReadOnly: false)
        guard header.storeID == state.generation.header.storeID else {
            throw refused("is another store")
        }
        guard header.fileID == state.generation.header.fileID else {
            throw refused("is from before a compaction")
        }
        let log = LogReader(file: file, seed: header.fileSeed)
        let recovered: RecoveredLog
        do throws(EngineError) {
            recovered = try Recovery(scan: LogScan(log: log, size: log.size())).run()
        } catch {
            guard error.code == .damaged || error.code == .newestCommitDamaged else { throw error }
            throw refused("is not whole (\(error.message))")
        }
        guard recovered.provesName else {
            throw refused("was not finished: its folder may lose the name after a power cut")
        }
        let last = recovered.proven
        guard recovered.isClosed, last.offset <= newest.offset else {
            throw refused("was written to since, or an increment of it did not end")
        }
        let scan = LogScan(
            log: state.generation.log,
            size: try state.generation.log.size()
        )
        guard let same = try scan.commit(at: last.offset),
            same.header == last.header, same.number == last.number
        else { throw refused("was written to since") }
        return last.end.rawValue
    }

    /// From here on an earlier backup is being changed.
    mutating func begin() throws(EngineError) {
        guard isIncrement, end < newest.end.rawValue else { return }
        try Engine.io { () throws(IOError) in
            try file.cut(to: end)
            try file.syncAll()
        }
    }

    /// Copies the next bytes of the log.
    mutating func append(_ count: UInt64, from log: LogReader) throws(EngineError) {
        let bytes = try log.read(at: FileOffset(end), count: Int(count))
        guard bytes.count == Int(count) else {
            throw EngineError(.ioFailed, "the store file became shorter while it was read")
        }
        try Engine.io { () throws(IOError) in
            try file.write(bytes, at: FileOffset(end))
            end += count
            if end - syncedEnd >= Self.syncBytes {
                try file.syncData()
                syncedEnd = end
            }
        }
    }

    /// Adds the CLOSE, checks what came out, and gives a new backup its name.
    mutating func finish(objectIDHighWater: UInt64) throws(EngineError) {
        try Engine.io { () throws(IOError) in try file.syncData() }
        let seed = state.generation.header.fileSeed
        let reader = LogReader(file: file, seed: seed)
        let size = try reader.size()
        if size == newest.end.rawValue {
            var log = LogWriter(
                file: file,
                seed: seed,
                options: options,
                counters: EngineCounters(),
                end: newest.end,
                durableEnd: newest.end,
                lastCommit: newest.offset,
                lastCommitHash: newest.header.payloadHash,
                checkpoint: state.baseFrame
            )
            var record = newest.record
            record.author = ""
            // Nothing proves the name of a new file yet.
            if !isIncrement { record.epoch = CommitRecord.namelessEpoch }
            record.entityCounts = []
            record.operationCount = 0
            record.objectIDHighWater = Engine.toldHighWater(
                max(record.objectIDHighWater, objectIDHighWater)
            )
            log.appendCommit(.close, flags: [], record: record, body: [])
            try Engine.io { () throws(IOError) in
                try log.flush()
                try log.sync()
            }
        }
        try Engine.io { () throws(IOError) in try file.syncAll() }
        let recovered = try Recovery(scan: LogScan(log: reader, size: reader.size())).run()
        guard recovered.isClosed, recovered.proven.offset == newest.offset else {
            throw .damaged("the backup does not end with the store's newest commit")
        }
        if !isIncrement {
            if case .store(replaces: true) = purpose {
                try replaceStore()
            } else {
                try takeFreeName()
            }
            // Without it the next opening for writing writes the file once more, and no increment
            // is appended.
            try? proveName(recovered)
        }
        file.close()
        lock?.release()
    }

    private func takeFreeName() throws(EngineError) {
        try Engine.io { () throws(IOError) in
            try directory.rename(name, to: fileName, replacing: false)
            do throws(IOError) { try directory.sync() } catch {
                // A later sync that succeeds would say nothing of this name.
                try? directory.remove(fileName)
                throw error
            }
        }
    }

    private func replaceStore() throws(EngineError) {
        try Engine.io { () throws(IOError) in
            try directory.rename(name, to: fileName, replacing: true)
        }
        do throws(IOError) { try directory.sync() } catch {
            // The next opening for writing gives the file a new name: nothing proves this one.
            throw EngineError(
                .ioFailed,
                "the sync of the folder failed when the restored store took the place of the one "
                    + "before: after a power cut either of the two is there, whole "
                    + "(\(error.description))",
                cause: error
            )
        }
    }

    /// The first bytes behind the CLOSE say that the directory was synced. Synced for increments,
    /// which are refused without them; whoever opens the file needs no sync of them.
    private func proveName(_ recovered: RecoveredLog) throws(EngineError) {
        var log = LogWriter(
            file: file,
            seed: state.generation.header.fileSeed,
            options: options,
            counters: EngineCounters(),
            end: recovered.newest.end,
            durableEnd: recovered.durableEnd,
            lastCommit: recovered.proven.offset,
            lastCommitHash: recovered.proven.header.payloadHash,
            checkpoint: recovered.base.offset
        )
        try Engine.io { () throws(IOError) in
            try log.proveName(
                behind: recovered,
                epoch: options.environment.randomNumber(),
                options.environment
            )
            try file.syncData()
        }
    }

    /// Gives it up; a new one goes.
    func abandon() {
        file.close()
        lock?.release()
        if !isIncrement { try? directory.remove(name) }
    }
}
