// A container's work as counters and timers of swift-metrics, behind the package trait `Metrics`.
//
// Invariants
// - Labels of metrics are fixed but for their prefix, and dimensions have few values: kinds of work
//   and codes of errors. None has a value of the app's objects, or a name that the app made up.
// - What is counted was done: rows and bytes of what failed are those of commits that stand, and
//   timers are told of what succeeded alone.

#if Metrics
public import Metrics
public import VarveObjects

extension TraceHandler {
    /// A handler that counts and times each event: `options.trace = .metrics()`.
    ///
    /// The metrics, with `prefix` and "_" in front, are in the article "Logging and metrics" of the
    /// documentation. To be called after `MetricsSystem.bootstrap`, where no factory is given: what
    /// was there before gets nothing.
    ///
    /// - Parameters:
    ///   - prefix: what all labels begin with. Give each store of an app its own.
    ///   - factory: who makes the metrics; nil: that of `MetricsSystem`.
    /// - Returns: the handler. It counts on the threads that do the work.
    public static func metrics(
        prefix: String = "varve",
        factory: (any MetricsFactory)? = nil
    ) -> TraceHandler {
        let metrics = StoreMetrics(MetricMaker(prefix: prefix, factory: factory))
        return TraceHandler { event in metrics.note(event) }
    }
}

/// Makes metrics of one prefix.
private struct MetricMaker: Sendable {
    let prefix: String
    let factory: (any MetricsFactory)?

    func counter(_ name: String, _ dimensions: (String, String)...) -> Counter {
        let label = "\(prefix)_\(name)"
        guard let factory else { return Counter(label: label, dimensions: dimensions) }
        return Counter(label: label, dimensions: dimensions, factory: factory)
    }

    func timer(_ name: String, _ dimensions: (String, String)...) -> Timer {
        let label = "\(prefix)_\(name)"
        guard let factory else { return Timer(label: label, dimensions: dimensions) }
        return Timer(label: label, dimensions: dimensions, factory: factory)
    }
}

/// What saves and batches have in common.
private struct WriteMetrics: Sendable {
    let inserted: Counter
    let updated: Counter
    let deleted: Counter
    let bytes: Counter

    init(_ make: MetricMaker, _ work: String) {
        inserted = make.counter("rows_inserted", ("work", work))
        updated = make.counter("rows_updated", ("work", work))
        deleted = make.counter("rows_deleted", ("work", work))
        bytes = make.counter("bytes_written", ("work", work))
    }
}

/// All metrics of one container. Those without a dimension that is known only later are made once.
private struct StoreMetrics: Sendable {
    let make: MetricMaker
    let saves: Counter
    let saveDuration: Timer
    let saveWait: Timer
    let saved: WriteMetrics
    let batched: WriteMetrics
    let batchWait: Timer
    let batchCommits: Counter
    let found: Counter
    let rowsScanned: Counter
    let entriesScanned: Counter
    let merges: Counter
    let mergeDuration: Timer
    let checkpoints: Counter
    let checkpointDuration: Timer
    let checkpointBytes: Counter
    let repeatedFaults: Counter

    init(_ make: MetricMaker) {
        self.make = make
        saves = make.counter("saves")
        saveDuration = make.timer("save_duration")
        saveWait = make.timer("save_wait")
        saved = WriteMetrics(make, "save")
        batched = WriteMetrics(make, "batch")
        batchWait = make.timer("batch_wait")
        batchCommits = make.counter("batch_commits")
        found = make.counter("objects_found")
        rowsScanned = make.counter("rows_scanned")
        entriesScanned = make.counter("entries_scanned")
        merges = make.counter("merges")
        mergeDuration = make.timer("merge_duration")
        checkpoints = make.counter("checkpoints")
        checkpointDuration = make.timer("checkpoint_duration")
        checkpointBytes = make.counter("bytes_written", ("work", "checkpoint"))
        repeatedFaults = make.counter("repeated_faults")
    }

    func note(_ event: TraceEvent) {
        switch event {
        case .fetch(let event): note(event)
        case .save(let event): note(event)
        case .batch(let event): note(event)
        case .merge(let event):
            merges.increment()
            mergeDuration.record(duration: event.duration)
        case .checkpoint(let event): note(event)
        case .compaction(let event): note(event)
        case .migration(let event):
            let kind = event.isRevert ? "revert" : "migration"
            done("migrations", "migration_duration", kind, event.duration, event.failure)
            if event.failure == nil { make.counter("rows_migrated").increment(by: event.rows) }
        case .backup(let event): note(event)
        case .repeatedFaults: repeatedFaults.increment()
        case .endedContext(let event):
            make.counter("ended_contexts", ("use", event.use.rawValue)).increment()
        }
    }

    // MARK: Contexts

    private func note(_ event: FetchTrace) {
        let kind = event.kind.rawValue
        done("fetches", "fetch_duration", kind, event.duration, event.failure)
        found.increment(by: event.found)
        rowsScanned.increment(by: event.rowsScanned)
        entriesScanned.increment(by: event.entriesScanned)
    }

    private func note(_ event: SaveTrace) {
        saves.increment()
        saved.bytes.increment(by: event.bytesWritten)
        if let failure = event.failure { return failed("save", failure) }
        saved.inserted.increment(by: event.inserted)
        saved.updated.increment(by: event.updated)
        saved.deleted.increment(by: event.deleted)
        saveDuration.record(duration: event.duration)
        saveWait.record(duration: event.waited)
    }

    private func note(_ event: BatchTrace) {
        batched.inserted.increment(by: event.inserted)
        batched.updated.increment(by: event.updated)
        batched.deleted.increment(by: event.deleted)
        batched.bytes.increment(by: event.bytesWritten)
        batchCommits.increment(by: event.commits)
        done("batches", "batch_duration", event.kind.rawValue, event.duration, event.failure)
        if event.failure == nil { batchWait.record(duration: event.waited) }
    }

    // MARK: The store

    private func note(_ event: CheckpointTrace) {
        checkpoints.increment()
        checkpointBytes.increment(by: event.bytesWritten)
        if let failure = event.failure { return failed("checkpoint", failure) }
        checkpointDuration.record(duration: event.duration)
    }

    private func note(_ event: CompactionTrace) {
        make.counter("compactions").increment()
        if let failure = event.failure { return failed("compaction", failure) }
        make.counter("bytes_compacted").increment(by: max(0, event.bytesBefore - event.bytesAfter))
        make.timer("compaction_duration").record(duration: event.duration)
    }

    private func note(_ event: BackupTrace) {
        done("backups", "backup_duration", event.kind.rawValue, event.duration, event.failure)
        make.counter("bytes_backed_up", ("kind", event.kind.rawValue))
            .increment(by: event.bytesCopied)
    }

    // MARK: Dimensions

    /// Work of several kinds: each counts, and what succeeded is timed.
    private func done(
        _ count: String,
        _ timer: String,
        _ kind: String,
        _ duration: Duration,
        _ failure: TraceFailure?
    ) {
        make.counter(count, ("kind", kind)).increment()
        if let failure {
            // "fetches" fail as "fetch", and so on: singular, as in the labels of timers.
            return failed(String(timer.dropLast("_duration".count)), failure)
        }
        make.timer(timer, ("kind", kind)).record(duration: duration)
    }

    private func failed(_ work: String, _ failure: TraceFailure) {
        make.counter("failures", ("work", work), ("code", failure.description)).increment()
    }
}
#else
public import VarveObjects

extension TraceHandler {
    /// There with the package trait `Metrics` alone.
    @available(*, unavailable, message: "name varve with traits: [.defaults, \"Metrics\"]")
    public static func metrics(prefix: String = "", factory: Any? = nil) -> TraceHandler {
        preconditionFailure("nobody can call it")
    }
}
#endif
