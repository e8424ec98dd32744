// A store whose file may lose its name in a power cut is written once more, into a new file.
//
// Invariants
// - A process that gives a file its name appends to it as soon as the directory is synced, and
//   never before. So bytes after the end that the file had prove the name. Where there are none,
//   the process may have died before the sync, or the sync may have failed.
// - A sync of the directory now would prove nothing: one that failed before has lost the name, and
//   the system shows it all the same. A name that is given now, and synced, is proven.
// - Not a byte is appended to a file whose name nothing proves.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension RecoveredLog {
    /// Whether something was written since the file got its name.
    var provesName: Bool {
        guard newest.end.rawValue == dataEnd else { return true }
        return !newest.isFirst && !newest.endsNamelessFile
    }
}

extension ScannedCommit {
    /// Whether this is the CLOSE that a compacted file ends with before it gets its name.
    var endsNamelessFile: Bool {
        header.kind == .close && record.epoch == CommitRecord.namelessEpoch
    }
}

extension LogWriter {
    /// Writes the first bytes after the end that a file had before it got its name. The directory
    /// is synced. They need not be on disk: where a power cut takes them away, it leaves the name
    /// that is durable, and the next opening writes a copy that nobody needed.
    mutating func proveName(
        behind written: RecoveredLog,
        epoch: UInt64,
        _ environment: any Environment
    ) throws(IOError) {
        var record = written.newest.record
        record.epoch = epoch
        record.clockMicroseconds = environment.wallClockMicroseconds()
        appendCommit(.close, flags: [], record: record, body: [])
        room.pass(end)
        try flush()
    }
}

/// Writes a store once more.
struct NewFile {
    let replay: Replay
    let names: DirectoryNames
    /// The store's name without ".varve".
    let store: String
    let budget: NodeBudget
    let epoch: UInt64

    /// The store in a file whose name is proven, as it is found there.
    ///
    /// - Parameter recovered: a log that nothing is written after.
    /// - Throws: `noSpace`, `ioFailed`, `damaged`: the store is as it was, and the next opening
    ///   tries again.
    /// - Complexity: O(live bytes + commits kept), and as many bytes of disk.
    func write(
        _ recovered: RecoveredLog
    ) throws(EngineError) -> (generation: Generation, recovered: RecoveredLog) {
        do throws(EngineError) {
            return try copy(recovered)
        } catch {
            throw EngineError(
                error.code,
                "\(store + Engine.fileSuffix) has to be written once more before it is changed: "
                    + "nothing shows that the sync of its folder succeeded when it got its name, "
                    + "so a power cut could bring an earlier file back; that failed: "
                    + "\(error.message). Every commit is there: make room or mend the disk and "
                    + "open the store again, or open it for reading",
                place: error.place,
                cause: error
            )
        }
    }

    private func copy(
        _ recovered: RecoveredLog
    ) throws(EngineError) -> (generation: Generation, recovered: RecoveredLog) {
        let old = replay.generation
        let newest = try replay.state(of: recovered)
        let chain = try CommitChain(newest)
        // A compaction has decided what is kept: all that is there.
        let oldest = try replay.state(of: chain.oldest())
        let file = try CompactedFile(
            beside: old,
            in: names.directory,
            store: store,
            options: replay.options,
            budget: budget,
            counters: replay.counters
        )
        do throws(EngineError) {
            var run = CompactionRun(
                file: file,
                options: replay.options,
                delegate: replay.delegate,
                counters: replay.counters,
                keepsHistory: true,
                skipsDamage: false,
                threads: replay.options.encodingThreads
            ) { _, _ throws(EngineError) in }
            try run.begin(with: oldest)
            run.describe(as: try chain.record(of: oldest.number))
            try run.writeCheckpoint()
            try run.copyCommits(from: oldest, to: newest)
            try run.end(objectIDHighWater: recovered.newest.record.objectIDHighWater)
            let written = try run.check(against: newest)
            try name(run.file)
            return (run.file.generation, try witnessed(run.file.generation, written))
        } catch {
            file.remove()
            throw error
        }
    }

    private func name(_ file: CompactedFile) throws(EngineError) {
        let mark = names.mark
        replay.options.environment.yield(.compactionRename)
        try Engine.io { () throws(IOError) in
            try names.directory.rename(file.name, to: store + Engine.fileSuffix, replacing: true)
            replay.options.environment.yield(.compactionDirectory)
            try names.sync(since: mark)
        }
    }

    /// Puts the first bytes after the file's end.
    private func witnessed(
        _ generation: Generation,
        _ written: RecoveredLog
    ) throws(EngineError) -> RecoveredLog {
        var log = LogWriter(behind: written, in: generation, replay.options, replay.counters)
        try Engine.io { () throws(IOError) in
            try log.proveName(behind: written, epoch: epoch, replay.options.environment)
            try log.sync()
        }
        return try LogStart.scanned(generation.log, isReadOnly: false)
    }
}
