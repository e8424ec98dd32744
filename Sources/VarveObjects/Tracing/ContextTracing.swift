// Measures requests, saves and batches for those who want to hear of them.

import VarveBase
import VarveEngine
import VarveRecords

extension ManagedObjectContext {
    /// Runs `body`, which answers a request, and tells of it.
    func traced<Value>(
        _ kind: FetchTrace.Kind,
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot,
        _ trace: TraceHandler,
        found: (Value) -> Int,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        let before = container.store.scanned
        let start = ContinuousClock.now
        let result = Result { () throws(StoreError) in try body() }
        let duration = ContinuousClock.now - start
        let after = container.store.scanned
        var event = FetchTrace(
            kind: kind,
            entity: plan.model.name,
            request: container.text(of: plan),
            plan: (try? snapshot.explain(plan.query)) ?? "",
            found: 0,
            rowsScanned: after.rows - before.rows,
            entriesScanned: after.entries - before.entries,
            duration: duration,
            failure: nil
        )
        switch result {
        case .success(let value): event.found = found(value)
        case .failure(let error): event.failure = TraceFailure(error)
        }
        trace(.fetch(event))
        return try result.get()
    }
}

extension PersistentContainer {
    /// `Item.where { title == "a" }.sorted { title }.limit(5)`.
    func text(of plan: RequestPlan) -> String {
        let filter = (try? text(of: plan.filter, plan.model)) ?? "…"
        var text = "\(plan.model.name).where { \(filter) }"
        if !plan.query.sort.isEmpty {
            let order = (try? self.text(of: plan.query.sort, plan.model)) ?? "…"
            text += ".sorted { \(order) }"
        }
        if let limit = plan.query.limit { text += ".limit(\(limit))" }
        if plan.query.offset > 0 { text += ".offset(\(plan.query.offset))" }
        return text
    }
}

/// What saves and batches measure: how long, how long of it for the writer lock, bytes.
private struct WriteClock {
    private let start = ContinuousClock.now
    private let bytesBefore: UInt64
    private var waitsSince: ContinuousClock.Instant?
    private var waited = Duration.zero

    init(_ container: PersistentContainer) {
        bytesBefore = container.store.engine.bytesWritten
    }

    mutating func waits() { waitsSince = ContinuousClock.now }

    mutating func goesOn() {
        if let since = waitsSince { waited += ContinuousClock.now - since }
        waitsSince = nil
    }

    /// One that failed before it got the lock waited until now.
    mutating func end(
        _ container: PersistentContainer
    ) -> (duration: Duration, waited: Duration, bytesWritten: Int) {
        goesOn()
        let bytes = container.store.engine.bytesWritten - bytesBefore
        return (ContinuousClock.now - start, waited, Int(clamping: bytes))
    }
}

/// The clock of one save; nil where nobody wants to hear of it.
struct SaveTimer {
    private let trace: TraceHandler
    private let container: PersistentContainer
    private var clock: WriteClock
    private var event: SaveTrace
    private var isTold = false

    init?(_ context: ManagedObjectContext) {
        guard let trace = context.container.options.trace else { return nil }
        self.trace = trace
        container = context.container
        clock = WriteClock(container)
        event = SaveTrace(author: context.author)
    }

    /// What is to be saved is known.
    mutating func counts(_ changes: ChangeSet) {
        event.inserted = changes.inserted.count
        event.updated = changes.updated.count
        event.deleted = changes.deleted.count
    }

    /// Whatever it takes to get the writer lock begins.
    mutating func waits() { clock.waits() }

    /// The writer lock is held.
    mutating func beginsToWrite() { clock.goesOn() }

    /// Tells of the save, once.
    mutating func end(_ commit: CommitNumber?, _ failure: (any Error)? = nil) {
        if isTold { return }
        isTold = true
        (event.duration, event.waited, event.bytesWritten) = clock.end(container)
        event.commit = commit
        event.failure = failure.map(TraceFailure.init)
        trace(.save(event))
    }
}

/// The same of a batch operation.
struct BatchTimer {
    private let trace: TraceHandler
    private let container: PersistentContainer
    private var clock: WriteClock
    private var event: BatchTrace

    init?(_ context: ManagedObjectContext, _ kind: BatchTrace.Kind, _ model: EntityModel) {
        guard let trace = context.container.options.trace else { return nil }
        self.trace = trace
        container = context.container
        clock = WriteClock(container)
        event = BatchTrace(kind: kind, entity: model.name, author: context.author)
    }

    mutating func waits() { clock.waits() }

    /// The writer lock is held, or was not to be had.
    mutating func beginsToWrite() { clock.goesOn() }

    mutating func hasCommitted() { event.commits += 1 }

    mutating func end(_ result: BatchResult, _ failure: (any Error)? = nil) {
        (event.duration, event.waited, event.bytesWritten) = clock.end(container)
        event.inserted = result.inserted
        event.updated = result.updated
        event.deleted = result.deleted
        event.skipped = result.skipped
        event.commit = result.commit
        event.failure = failure.map(TraceFailure.init)
        trace(.batch(event))
    }
}
