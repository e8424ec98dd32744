// A container's work as log lines of swift-log, behind the package trait `Logging`.
//
// Invariants
// - A line has names of the schema, numbers and codes; values of the app's objects, and what the
//   app calls its contexts, only where that was asked for.
// - Messages are fixed texts; what differs from line to line is metadata, under keys that begin
//   with "varve.". Nothing is put together for a level that the logger leaves out.

#if Logging
public import Logging
public import VarveObjects

/// Which level each kind of a container's work is logged at, and what a line tells.
public struct TraceLogging: Sendable {
    /// What failed.
    public var failure = Logger.Level.error
    /// What a cancelled task ended.
    public var cancelled = Logger.Level.notice
    /// A request, a save or a merge that took `slowAfter` or longer.
    public var slow = Logger.Level.notice
    /// A relationship that was followed from many objects with a read for each.
    public var repeatedFaults = Logger.Level.notice
    /// An object that was used after its context had ended with unsaved edits: the app's mistake.
    public var endedContext = Logger.Level.warning
    /// Compactions, migrations, backups.
    public var maintenance = Logger.Level.info
    /// Saves and batches.
    public var writing = Logger.Level.debug
    /// Requests, merges and checkpoints.
    public var reading = Logger.Level.trace
    /// How long a request, a save or a merge takes before it is called slow; nil: none is.
    public var slowAfter: Duration? = .milliseconds(100)
    /// Whether lines have the text of requests and their plans, with the values that were
    /// compared: they may be personal.
    public var showsRequests = false
    /// Whether lines have the author of the context, as the app calls it.
    public var showsAuthors = false

    /// The defaults: nothing personal, and above `info` only what somebody should look at.
    public init() {}
}

extension TraceHandler {
    /// A handler that logs each event: `options.trace = .logging(to: Logger(label: "varve"))`.
    ///
    /// - Parameters:
    ///   - logger: where to. Its level decides what is put together at all, as it is now: a logger
    ///     is a value.
    ///   - logging: levels, and what a line tells.
    /// - Returns: the handler. It logs on the threads that do the work.
    public static func logging(
        to logger: Logger,
        _ logging: TraceLogging = TraceLogging()
    ) -> TraceHandler {
        TraceHandler { event in
            let line = LogLine(event, logging)
            logger.log(level: line.level, "\(line.message)", metadata: line.metadata())
        }
    }
}

/// One event as a line; what costs something is made when it is known to be wanted.
private struct LogLine {
    let level: Logger.Level
    let message: String
    let metadata: () -> Logger.Metadata

    init(_ event: TraceEvent, _ logging: TraceLogging) {
        switch event {
        case .fetch(let event): self.init(event, logging)
        case .save(let event): self.init(event, logging)
        case .batch(let event): self.init(event, logging)
        case .merge(let event): self.init(event, logging)
        case .checkpoint(let event): self.init(event, logging)
        case .compaction(let event): self.init(event, logging)
        case .migration(let event): self.init(event, logging)
        case .backup(let event): self.init(event, logging)
        case .repeatedFaults(let event): self.init(event, logging)
        case .endedContext(let event): self.init(event, logging)
        }
    }

    private init(
        _ level: Logger.Level,
        _ message: String,
        _ metadata: @escaping () -> Logger.Metadata
    ) {
        self.level = level
        self.message = message
        self.metadata = metadata
    }

    private init(_ event: FetchTrace, _ logging: TraceLogging) {
        let isSlow = logging.isSlow(event.duration)
        self.init(
            logging.level(isSlow ? logging.slow : logging.reading, event.failure),
            event.failure != nil ? "request failed" : isSlow ? "slow request" : "request"
        ) {
            var metadata: Logger.Metadata = [
                "varve.kind": "\(event.kind.rawValue)",
                "varve.entity": "\(event.entity)",
                "varve.found": "\(event.found)",
                "varve.rows_scanned": "\(event.rowsScanned)",
                "varve.entries_scanned": "\(event.entriesScanned)",
            ]
            metadata.tell(event.duration, event.failure)
            if logging.showsRequests {
                metadata["varve.request"] = "\(event.request)"
                metadata["varve.plan"] = "\(event.plan)"
            }
            return metadata
        }
    }

    private init(_ event: SaveTrace, _ logging: TraceLogging) {
        let isSlow = logging.isSlow(event.duration)
        self.init(
            logging.level(isSlow ? logging.slow : logging.writing, event.failure),
            event.failure != nil ? "save failed" : isSlow ? "slow save" : "saved"
        ) {
            var metadata: Logger.Metadata = [
                "varve.inserted": "\(event.inserted)",
                "varve.updated": "\(event.updated)",
                "varve.deleted": "\(event.deleted)",
                "varve.bytes_written": "\(event.bytesWritten)",
                "varve.waited_ms": "\(event.waited.milliseconds)",
            ]
            metadata.tell(event.duration, event.failure)
            metadata["varve.commit"] = event.commit.map { "\($0.rawValue)" }
            if logging.showsAuthors { metadata["varve.author"] = "\(event.author)" }
            return metadata
        }
    }

    private init(_ event: BatchTrace, _ logging: TraceLogging) {
        self.init(
            logging.level(logging.writing, event.failure),
            event.failure != nil ? "batch failed" : "batch"
        ) {
            var metadata: Logger.Metadata = [
                "varve.kind": "\(event.kind.rawValue)",
                "varve.entity": "\(event.entity)",
                "varve.inserted": "\(event.inserted)",
                "varve.updated": "\(event.updated)",
                "varve.deleted": "\(event.deleted)",
                "varve.skipped": "\(event.skipped)",
                "varve.commits": "\(event.commits)",
                "varve.bytes_written": "\(event.bytesWritten)",
                "varve.waited_ms": "\(event.waited.milliseconds)",
            ]
            metadata.tell(event.duration, event.failure)
            metadata["varve.commit"] = event.commit.map { "\($0.rawValue)" }
            if logging.showsAuthors { metadata["varve.author"] = "\(event.author)" }
            return metadata
        }
    }

    private init(_ event: MergeTrace, _ logging: TraceLogging) {
        let isSlow = logging.isSlow(event.duration)
        self.init(isSlow ? logging.slow : logging.reading, isSlow ? "slow merge" : "merged") {
            var metadata: Logger.Metadata = [
                "varve.from": "\(event.from.rawValue)", "varve.to": "\(event.to.rawValue)",
            ]
            metadata.tell(event.duration)
            if logging.showsAuthors { metadata["varve.author"] = "\(event.author)" }
            return metadata
        }
    }

    private init(_ event: RepeatedFaultsTrace, _ logging: TraceLogging) {
        self.init(logging.repeatedFaults, "relationship read object by object") {
            var metadata: Logger.Metadata = [
                "varve.entity": "\(event.entity)",
                "varve.relationship": "\(event.relationship)",
                "varve.target": "\(event.target)",
                "varve.reads": "\(event.reads)",
            ]
            if logging.showsAuthors { metadata["varve.author"] = "\(event.author)" }
            if logging.showsRequests {
                metadata["varve.suggestion"] = "\(event.suggestion)"
                metadata["varve.request"] = event.request.map { "\($0)" }
            }
            return metadata
        }
    }
}

// MARK: Work on the whole store, and what is left of a context

extension LogLine {
    fileprivate init(_ event: EndedContextTrace, _ logging: TraceLogging) {
        self.init(logging.endedContext, "object used after its context ended with edits") {
            var metadata: Logger.Metadata = [
                "varve.entity": "\(event.entity)", "varve.use": "\(event.use.rawValue)",
            ]
            // The context's name has its author in it.
            if logging.showsAuthors { metadata["varve.context"] = "\(event.context)" }
            return metadata
        }
    }

    fileprivate init(_ event: CheckpointTrace, _ logging: TraceLogging) {
        self.init(
            logging.level(logging.reading, event.failure),
            event.failure != nil ? "checkpoint failed" : "checkpoint"
        ) {
            var metadata: Logger.Metadata = [
                "varve.pages": "\(event.pages)",
                "varve.bytes_written": "\(event.bytesWritten)",
                "varve.background": "\(event.isInBackground)",
            ]
            metadata.tell(event.duration, event.failure)
            metadata["varve.commit"] = event.commit.map { "\($0.rawValue)" }
            return metadata
        }
    }

    fileprivate init(_ event: CompactionTrace, _ logging: TraceLogging) {
        self.init(
            logging.level(logging.maintenance, event.failure),
            event.failure != nil ? "compaction failed" : "compacted"
        ) {
            var metadata: Logger.Metadata = [
                "varve.bytes_before": "\(event.bytesBefore)",
                "varve.bytes_after": "\(event.bytesAfter)",
            ]
            metadata.tell(event.duration, event.failure)
            return metadata
        }
    }

    fileprivate init(_ event: MigrationTrace, _ logging: TraceLogging) {
        let done = event.isRevert ? "migration taken back" : "migrated"
        self.init(
            logging.level(logging.maintenance, event.failure),
            event.failure == nil
                ? done : event.isRevert ? "taking a migration back failed" : "migration failed"
        ) {
            var metadata: Logger.Metadata = [
                "varve.stages": "\(event.stages)",
                "varve.rows": "\(event.rows)",
            ]
            metadata.tell(event.duration, event.failure)
            metadata["varve.from"] = event.fromVersion.map { "\($0)" }
            metadata["varve.to"] = event.toVersion.map { "\($0)" }
            return metadata
        }
    }

    fileprivate init(_ event: BackupTrace, _ logging: TraceLogging) {
        let isRestore = event.kind == .restore
        self.init(
            logging.level(logging.maintenance, event.failure),
            event.failure == nil
                ? (isRestore ? "restored" : "backed up")
                : (isRestore ? "restore failed" : "backup failed")
        ) {
            var metadata: Logger.Metadata = [
                "varve.kind": "\(event.kind.rawValue)",
                "varve.bytes_copied": "\(event.bytesCopied)",
                "varve.blobs_copied": "\(event.blobsCopied)",
            ]
            metadata.tell(event.duration, event.failure)
            metadata["varve.commit"] = event.commit.map { "\($0.rawValue)" }
            return metadata
        }
    }
}

// MARK: Levels and figures

extension TraceLogging {
    fileprivate func isSlow(_ duration: Duration) -> Bool {
        slowAfter.map { duration >= $0 } ?? false
    }

    fileprivate func level(_ done: Logger.Level, _ failure: TraceFailure?) -> Logger.Level {
        switch failure {
        case nil: done
        case .cancelled: cancelled
        default: self.failure
        }
    }
}

extension Logger.Metadata {
    fileprivate mutating func tell(_ duration: Duration, _ failure: TraceFailure? = nil) {
        self["varve.duration_ms"] = "\(duration.milliseconds)"
        self["varve.failure"] = failure.map { "\($0)" }
    }
}

extension Duration {
    /// To a thousandth.
    fileprivate var milliseconds: Double { Double(Int64(self / .microseconds(1))) / 1_000 }
}
#else
public import VarveObjects

extension TraceHandler {
    /// There with the package trait `Logging` alone.
    @available(*, unavailable, message: "name varve with traits: [.defaults, \"Logging\"]")
    public static func logging(to logger: Any, _ logging: Any? = nil) -> TraceHandler {
        preconditionFailure("nobody can call it")
    }
}
#endif
