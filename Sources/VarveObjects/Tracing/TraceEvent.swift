// What a container tells of its work, and who hears it.
//
// Invariants
// - Without `ContainerOptions.trace` nothing is measured, printed or counted for it.
// - Events are told on the thread that did the work, when it is done or has failed.
// - Only texts of requests have values of the app's objects in them, and `author` is what the app
//   calls a context; all else is names of the schema, numbers, and codes.

import VarveBase

/// One piece of a container's work. The set of events is open: a `switch` needs a default.
public enum TraceEvent: Sendable {
    /// A request was answered, or failed.
    case fetch(FetchTrace)
    /// A context was saved, or its save failed.
    case save(SaveTrace)
    /// A batch operation came to its end, or failed.
    case batch(BatchTrace)
    /// A context moved to a newer commit.
    case merge(MergeTrace)
    /// What was in memory only was written as pages, so that the next opening is short.
    case checkpoint(CheckpointTrace)
    /// The store was compacted, by the app or by itself, or that failed.
    case compaction(CompactionTrace)
    /// The store was brought to another schema, or that failed.
    case migration(MigrationTrace)
    /// The store was backed up or restored, or that failed.
    case backup(BackupTrace)
    /// A relationship was followed from many objects with a read for each
    /// (`ContainerOptions.repeatedFaultsMax`).
    case repeatedFaults(RepeatedFaultsTrace)
    /// An object was used after its context had ended with unsaved edits.
    case endedContext(EndedContextTrace)
}

/// Who hears of a container's work (`ContainerOptions.trace`).
///
///     options.trace = TraceHandler { event in
///         if case .save(let save) = event { print(save.inserted, save.duration) }
///     }
public struct TraceHandler: Sendable {
    private let handle: @Sendable (TraceEvent) -> Void

    /// A handler of the app's own.
    ///
    /// - Parameter handle: called on the threads that do the work, also on several at once, and
    ///   while savers wait: it must be short, and must not use the container.
    public init(_ handle: @escaping @Sendable (TraceEvent) -> Void) { self.handle = handle }

    /// Tells the handler of an event.
    ///
    /// - Parameter event: what was done.
    public func callAsFunction(_ event: TraceEvent) { handle(event) }

    /// Several handlers as one.
    ///
    /// - Parameter handlers: each is told of every event, in this order.
    /// - Returns: the handler that tells them.
    public static func all(_ handlers: [TraceHandler]) -> TraceHandler {
        TraceHandler { event in
            for handler in handlers { handler(event) }
        }
    }
}

/// Why a piece of work failed.
public enum TraceFailure: Hashable, Sendable, CustomStringConvertible {
    /// An error of the store's, by its code.
    case store(StoreError.Code)
    /// The task was cancelled.
    case cancelled
    /// An error of the app's: of a hook, of a batch's closure, of what a batch reads.
    case other

    /// The code's name, `cancelled` or `other`: a small set of words, fit for labels.
    public var description: String {
        switch self {
        case .store(let code): code.name
        case .cancelled: "cancelled"
        case .other: "other"
        }
    }

    init(_ error: any Error) {
        switch error {
        case let error as StoreError: self = .store(error.code)
        case is CancellationError: self = .cancelled
        default: self = .other
        }
    }
}
