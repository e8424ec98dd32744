// Keeps the events that a container tells, for tests.

import VarveObjects

/// Events by their kinds, in the order in which they were told.
final class TraceLog: Sendable {
    private let events = Shared<[TraceEvent]>([])

    /// What `ContainerOptions.trace` gets.
    var handler: TraceHandler {
        TraceHandler { [events] event in events.withLock { $0.append(event) } }
    }

    /// The default options, with this log, and without compactions that nobody asked for.
    var options: ContainerOptions {
        var options = ContainerOptions(compactsAutomatically: false)
        options.trace = handler
        return options
    }

    /// All events since the last call.
    func take() -> [TraceEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }

    var saves: [SaveTrace] {
        take().compactMap { if case .save(let save) = $0 { save } else { nil } }
    }
    var fetches: [FetchTrace] {
        take().compactMap { if case .fetch(let fetch) = $0 { fetch } else { nil } }
    }
    var batches: [BatchTrace] {
        take().compactMap { if case .batch(let batch) = $0 { batch } else { nil } }
    }
    var checkpoints: [CheckpointTrace] {
        take().compactMap { if case .checkpoint(let point) = $0 { point } else { nil } }
    }
    var compactions: [CompactionTrace] {
        take().compactMap { if case .compaction(let compaction) = $0 { compaction } else { nil } }
    }
    var migrations: [MigrationTrace] {
        take().compactMap { if case .migration(let migration) = $0 { migration } else { nil } }
    }
    var backups: [BackupTrace] {
        take().compactMap { if case .backup(let backup) = $0 { backup } else { nil } }
    }
}
