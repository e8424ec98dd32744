// What a container tells of its work: requests, saves, merges, compactions.
//
// Invariants
// - Without `ContainerOptions.trace` nothing is measured, printed or counted for it.
// - Events are told on the thread that did the work, when it is done or has failed.

import VarveBase
import VarveEngine
import VarveRecords

/// One piece of a container's work. The set of events is open: a `switch` needs a default.
public enum TraceEvent: Sendable {
    /// A request was answered.
    case fetch(FetchTrace)
    /// A context was saved, or its save failed.
    case save(SaveTrace)
    /// A context moved to a newer commit.
    case merge(MergeTrace)
    /// The store was compacted, by the app or by itself.
    case compaction(CompactionTrace)
    /// A relationship was followed from many objects with a read for each
    /// (`ContainerOptions.repeatedFaultsMax`).
    case repeatedFaults(RepeatedFaultsTrace)
    /// An object was used after its context had ended with unsaved edits.
    case endedContext(EndedContextTrace)
}

/// A request.
public struct FetchTrace: Sendable {
    /// What was asked.
    public enum Kind: String, Sendable {
        /// The IDs of objects, in their order: for a fetch, a page, IDs, or edits laid over.
        case objects
        /// How many there are.
        case count
    }
    /// What was asked.
    public var kind: Kind
    /// The entity.
    public var entity: String
    /// Filter, order and window as text, with the values that were compared: they may be personal.
    public var request: String
    /// How it was answered, as `explain` prints it.
    public var plan: String
    /// Objects found, or counted.
    public var found: Int
    /// Rows that were looked at; of all requests that ran meanwhile.
    public var rowsScanned: Int
    /// Index entries that were walked over; of all requests that ran meanwhile.
    public var entriesScanned: Int
    /// How long it took, without making objects.
    public var duration: Duration
}

/// A save of a context. Batches are not among them.
public struct SaveTrace: Sendable {
    /// The context's author.
    public var author: String
    /// New objects of the context.
    public var inserted: Int
    /// Changed ones.
    public var updated: Int
    /// Deleted ones.
    public var deleted: Int
    /// The commit; nil if nothing was written, or it failed.
    public var commit: CommitNumber?
    /// Bytes written to the store file; those of saves that ran meanwhile count.
    public var bytesWritten: Int
    /// How long it waited for other savers and processes.
    public var waited: Duration
    /// How long it took in all, until it was on disk.
    public var duration: Duration
    /// The code of its error, if it failed with one of the store's.
    public var failure: StoreError.Code?
}

/// A context that moved on.
public struct MergeTrace: Sendable {
    /// The context's author.
    public var author: String
    /// The commit that it read.
    public var from: CommitNumber
    /// The one that it reads now.
    public var to: CommitNumber
    /// How long it took.
    public var duration: Duration
}

/// A compaction.
public struct CompactionTrace: Sendable {
    /// Bytes of the log before.
    public var bytesBefore: Int
    /// Bytes of the log after.
    public var bytesAfter: Int
    /// How long it took.
    public var duration: Duration
}

extension ManagedObjectContext {
    /// Runs `body`, which answers a request, and tells of it.
    func traced<Entity, Value>(
        _ kind: FetchTrace.Kind,
        _ plan: RequestPlan<Entity>,
        _ snapshot: RecordSnapshot,
        _ trace: @Sendable (TraceEvent) -> Void,
        found: (Value) -> Int,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        let before = container.store.scanned
        let start = ContinuousClock.now
        let value = try body()
        let duration = ContinuousClock.now - start
        let after = container.store.scanned
        let explained = try? snapshot.explain(plan.query)
        trace(
            .fetch(
                FetchTrace(
                    kind: kind,
                    entity: plan.model.name,
                    request: container.text(of: plan),
                    plan: explained ?? "",
                    found: found(value),
                    rowsScanned: after.rows - before.rows,
                    entriesScanned: after.entries - before.entries,
                    duration: duration
                )
            )
        )
        return value
    }
}

extension PersistentContainer {
    /// `Item.where { title == "a" }.sorted { title }.limit(5)`.
    func text<Entity>(of plan: RequestPlan<Entity>) -> String {
        let descriptor = plan.descriptor
        let filter = (try? text(of: descriptor.filter)) ?? "…"
        var text = "\(plan.model.name).where { \(filter) }"
        if !descriptor.sortTerms.isEmpty {
            let order = (try? self.text(of: descriptor.sortTerms)) ?? "…"
            text += ".sorted { \(order) }"
        }
        if let limit = descriptor.limit { text += ".limit(\(limit))" }
        if descriptor.offset > 0 { text += ".offset(\(descriptor.offset))" }
        return text
    }

    /// Tells of compactions of the engine.
    static func compactionTrace(
        _ trace: (@Sendable (TraceEvent) -> Void)?
    ) -> (@Sendable (CompactionReport, UInt64) -> Void)? {
        guard let trace else { return nil }
        return { report, nanoseconds in
            trace(
                .compaction(
                    CompactionTrace(
                        bytesBefore: Int(clamping: report.bytesBefore),
                        bytesAfter: Int(clamping: report.bytesAfter),
                        duration: .nanoseconds(Int64(clamping: nanoseconds))
                    )
                )
            )
        }
    }
}

/// The clock of one save; nil where nobody wants to hear of it.
struct SaveTimer {
    private let trace: @Sendable (TraceEvent) -> Void
    private let container: PersistentContainer
    private let start = ContinuousClock.now
    private let bytesBefore: UInt64
    private var waited: Duration?
    private var event: SaveTrace

    init?(_ context: ManagedObjectContext, _ changes: ChangeSet) {
        guard let trace = context.container.options.trace else { return nil }
        self.trace = trace
        container = context.container
        bytesBefore = container.store.engine.bytesWritten
        event = SaveTrace(
            author: context.author,
            inserted: changes.inserted.count,
            updated: changes.updated.count,
            deleted: changes.deleted.count,
            commit: nil,
            bytesWritten: 0,
            waited: .zero,
            duration: .zero,
            failure: nil
        )
    }

    /// The writer lock is held.
    mutating func beginsToWrite() { waited = ContinuousClock.now - start }

    mutating func end(_ commit: CommitNumber?, _ failure: (any Error)? = nil) {
        event.duration = ContinuousClock.now - start
        // One that failed before it got the lock waited all the time.
        event.waited = waited ?? event.duration
        event.commit = commit
        event.bytesWritten = Int(clamping: container.store.engine.bytesWritten - bytesBefore)
        event.failure = (failure as? StoreError)?.code
        trace(.save(event))
    }
}
