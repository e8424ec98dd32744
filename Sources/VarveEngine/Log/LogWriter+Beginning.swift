// Where a log goes on: after what recovery found, after what the last turn left, in a new file.
//
// Invariants
// - Nothing is ever written over: the place is free, or clear of whatever may be there.
// - The next commit chains to one that is proven.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension LogWriter {
    /// The log of a file that has no frame yet.
    init(
        beginning file: any StoreFile,
        seed: UInt64,
        _ options: EngineOptions,
        _ counters: EngineCounters
    ) {
        self.init(
            file: file,
            seed: seed,
            options: options,
            counters: counters,
            end: FileHeader.logStart,
            durableEnd: FileHeader.logStart,
            lastCommit: FileOffset(0),
            lastCommitHash: 0,
            checkpoint: FileOffset(0)
        )
    }

    /// The log after what recovery found.
    init(
        behind recovered: RecoveredLog,
        in generation: Generation,
        _ options: EngineOptions,
        _ counters: EngineCounters
    ) {
        // After anything doubtful: a fresh page, clear of it and of a bad sector. The end of a
        // frame may be zeros: its tail word did not arrive. All else of a sound frame did.
        let dataEnd = max(
            recovered.dataEnd + UInt64(FrameHeader.tailLength),
            recovered.newest.end.rawValue
        )
        let end =
            recovered.isClosed ? recovered.newest.end : FileOffset((dataEnd + 4095) & ~4095)
        self.init(
            file: generation.file,
            seed: generation.header.fileSeed,
            options: options,
            counters: counters,
            end: end,
            durableEnd: recovered.durableEnd,
            lastCommit: recovered.proven.offset,
            lastCommitHash: recovered.proven.header.payloadHash,
            checkpoint: recovered.base.offset
        )
    }

    /// The log as the shared page says; nil when the file does not look so.
    init?(
        behind told: SharedState,
        _ state: StoreState,
        _ options: EngineOptions,
        _ counters: EngineCounters
    ) throws(EngineError) {
        let generation = state.generation
        let size = try generation.log.size()
        let scan = LogScan(log: generation.log, size: size)
        guard let newest = try scan.commit(at: told.frame),
            newest.end <= (newest.isFirst ? told.logEnd : told.durableEnd),
            newest.record.flags & CommitRecord.writerFeatures == 0,
            told.logEnd.rawValue <= size,
            // The page must not lead into what is there.
            try Self.isFree(generation.log, told.logEnd)
        else { return nil }
        self.init(
            file: generation.file,
            seed: generation.header.fileSeed,
            options: options,
            counters: counters,
            end: told.logEnd,
            durableEnd: told.durableEnd,
            lastCommit: newest.offset,
            lastCommitHash: newest.header.payloadHash,
            checkpoint: state.baseFrame
        )
        if told.preparedEnd.rawValue <= size { room.revive(preparedTo: told.preparedEnd) }
    }

    /// Whether nothing is written from `end` on. Frames follow each other there, or begin at the
    /// next multiple of 4096 when the log was read again.
    static func isFree(
        _ log: LogReader,
        _ end: FileOffset
    ) throws(EngineError) -> Bool {
        try log.read(at: end, count: 4096 + FrameHeader.length).countWithoutTrailingZeros == 0
    }
}
