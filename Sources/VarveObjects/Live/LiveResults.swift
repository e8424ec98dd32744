// A list that follows the store: the objects of a request, kept up to date.
//
// Invariants
// - It belongs to its context and shows what a fetch there would have given at the last step: when
//   the context last moved to a commit, or processed its edits.
// - It keeps no object and reads no row that is not asked for.

public import Observation
import VarveBase
import VarveRecords

/// The objects of a request as a list that follows every commit, and the unsaved edits of its
/// context.
///
/// It changes when its context moves to another commit (by itself in the view context; elsewhere by
/// `save`, `advance()`, or a loop over `changes`) and when edits are processed: as soon as the main
/// actor has time in the view context, and by `processPendingChanges()`. Between these, it stays as
/// it is.
///
/// It is observable, so a view that reads `results` or `count` is drawn anew. `results` is a
/// collection that never changes: the list has another one after each change.
///
/// - Complexity: making one costs what `fetchBatched` costs. A commit costs the objects it changed,
///   each O(log n), in lists of the entities that it changed. Nothing costs the length of the list
///   but making it where no index gives its order.
public final class LiveResults<Entity: ManagedObject>: Observable {
    /// The context that it belongs to.
    public let context: ManagedObjectContext
    private let feed: LiveFeed
    private let ended: EndedMembers
    private let batchSize: Int
    private let registrar = ObservationRegistrar()
    private let sectionTerm: VarveRecords.SortTerm?

    private var request: FetchDescriptor<Entity>
    private var live: LiveList
    private var store: BatchStore<Entity>
    private var serial = 0
    /// A step could not be read: the next one makes the list anew.
    private var isBehind = false
    private var lastFailure: StoreError?
    private var handlers: [Int: (LiveChange<Entity>) -> Void] = [:]
    private var nextHandler = 0
    private let endedHandlers = EndedMembers()
    private var buffers: [WeakBuffer] = []

    private struct WeakBuffer {
        weak var buffer: LiveBuffer<Entity>?
    }

    init(
        _ request: FetchDescriptor<Entity>,
        sectionTerm: VarveRecords.SortTerm?,
        batchSize: Int,
        in context: ManagedObjectContext
    ) throws(StoreError) {
        guard batchSize > 0 else {
            throw StoreError(.invalidRequest, "a batch must have at least one row")
        }
        (self.context, self.request, self.batchSize) = (context, request, batchSize)
        self.sectionTerm = sectionTerm
        feed = context.liveFeed()
        ended = feed.ended
        // A new list begins where the others are.
        context.moveLive()
        let plan = try RequestPlan(request, in: context)
        live = try Self.list(plan, sectionTerm, context, feed)
        store = Self.store(plan, live.list, batchSize, context)
        serial = feed.add(self)
    }

    deinit { ended.add(serial) }

    private static func list(
        _ plan: RequestPlan,
        _ sectionTerm: VarveRecords.SortTerm?,
        _ context: ManagedObjectContext,
        _ feed: LiveFeed
    ) throws(StoreError) -> LiveList {
        context.faultWatch?.requested(plan, in: context.container)
        let snapshot = try feed.begin()
        let made = try context.container.translating { () throws(RecordError) in
            try ListRequest(plan, sectionTerm: sectionTerm, context, snapshot)
        }
        return try LiveList(made, hasSections: sectionTerm != nil, context, feed)
    }

    private static func store(
        _ plan: RequestPlan,
        _ list: ObjectList,
        _ batchSize: Int,
        _ context: ManagedObjectContext
    ) -> BatchStore<Entity> {
        BatchStore(
            context: context,
            model: plan.model,
            list: list,
            size: batchSize,
            returnsFaults: plan.returnsFaults,
            prefetch: plan.prefetch
        )
    }

    // MARK: The list

    /// The objects, as a collection that stays as it is: rows that go later are still there, and
    /// show `isDeleted`. Observed: what reads it is told when the list has another one.
    public var results: BatchedResults<Entity> {
        registrar.access(self, keyPath: \.results)
        return BatchedResults(store: store)
    }

    /// The number of objects. Observed. O(1).
    public var count: Int { results.count }
    /// Whether there is none. Observed. O(1).
    public var isEmpty: Bool { results.isEmpty }
    /// The object at a position: `results[index]`. Observed.
    public subscript(index: Int) -> Entity { results[index] }

    /// The sections, by the places that `LiveChange` names. Observed.
    var sections: SectionTable {
        registrar.access(self, keyPath: \.results)
        return live.sections ?? SectionTable(isDescending: false)
    }

    /// Why the list could not be brought up to date, or could not take a new `descriptor`; nil once
    /// it could. Observed.
    public var failure: StoreError? {
        registrar.access(self, keyPath: \.results)
        return lastFailure
    }

    /// The request. A new one replaces the list at once, and is told as one change that says
    /// `isReplaced`. If it cannot be answered, the list stays as it is, and `failure` says why.
    /// - Complexity: to set it, that of making the list.
    public var descriptor: FetchDescriptor<Entity> {
        get {
            registrar.access(self, keyPath: \.descriptor)
            return request
        }
        set { replace(newValue) }
    }

    private func replace(_ newRequest: FetchDescriptor<Entity>) {
        do throws(StoreError) {
            context.moveLive()
            let plan = try RequestPlan(newRequest, in: context)
            let newLive = try Self.list(plan, sectionTerm, context, feed)
            announce(isBefore: true, \.descriptor)
            announce(isBefore: true, \.results)
            freezeSource(followedBy: newLive.list.source, feed.snapshot) {
                (live, request) = (newLive, newRequest)
                store = Self.store(plan, newLive.list, batchSize, context)
            }
            feed.remove(serial)
            serial = feed.add(self)
            (lastFailure, isBehind) = (nil, false)
            announce(isBefore: false, \.results)
            announce(isBefore: false, \.descriptor)
            tell(.replaced(feed.snapshot?.number))
        } catch {
            announce(isBefore: true, \.results)
            lastFailure = error
            announce(isBefore: false, \.results)
        }
    }

    // MARK: Changes

    /// The changes from now on, as an async sequence; see `LiveChanges`.
    public var changes: LiveChanges<Entity> { LiveChanges(list: self) }

    /// Calls `handler` with each change from now on, in the context's isolation, until the
    /// observation ends. It may edit, save, and move the context; what it changes is told next.
    public func onChange(_ handler: @escaping (LiveChange<Entity>) -> Void) -> LiveObservation {
        nextHandler += 1
        let number = nextHandler
        handlers[number] = handler
        return LiveObservation(number, endedHandlers)
    }

    func add(_ buffer: LiveBuffer<Entity>) {
        buffers.removeAll { $0.buffer == nil }
        buffers.append(WeakBuffer(buffer: buffer))
    }

    private func tell(_ change: LiveChange<Entity>) {
        for buffer in buffers { buffer.buffer?.append(change) }
        let told = live
        for number in handlers.keys.sorted() {
            for ended in endedHandlers.take() { handlers[ended] = nil }
            // One before it may have given the list another request.
            guard live === told else { return }
            handlers[number]?(change)
        }
    }

    private func announce<Value>(isBefore: Bool, _ keyPath: KeyPath<LiveResults, Value>) {
        if isBefore {
            registrar.willSet(self, keyPath: keyPath)
        } else {
            registrar.didSet(self, keyPath: keyPath)
        }
    }

    /// A collection that somebody holds of the list before keeps its commit.
    private func freezeSource(
        followedBy next: ListSource,
        _ snapshot: RecordSnapshot?,
        _ exchange: () -> Void
    ) {
        var source = live.list.source
        exchange()
        guard source !== next, !isKnownUniquelyReferenced(&source) else { return }
        source.freeze(at: snapshot)
    }
}

extension LiveResults: LiveFollower {
    var entities: Set<EntityID> { live.entities }
    var hasEdits: Bool { live.hasEdits || isBehind }
    var source: ListSource? { live.list.source }

    func noteBehind() { isBehind = true }

    func prepare(_ step: LiveStep) -> LiveTurn? {
        do throws(StoreError) {
            let outcome = try context.container.translating { () throws(RecordError) in
                isBehind ? try live.renewal(step.newer) : try live.outcome(of: step)
            }
            guard let outcome else { return nil }
            return turn(outcome, step)
        } catch {
            let (wasBehind, prepared) = (isBehind, live)
            isBehind = true
            // Once, however often it is tried again.
            if !wasBehind { context.note(error, nil) }
            return LiveTurn(
                announce: { [self] in announce(isBefore: true, \.results) },
                show: { [self] in
                    guard live === prepared else { return }
                    lastFailure = error
                    // It stays as it is.
                    if !wasBehind { live.list.source.freeze(at: step.older) }
                },
                tell: { [self] in announce(isBefore: false, \.results) }
            )
        }
    }

    private func turn(_ outcome: LiveList.Outcome, _ step: LiveStep) -> LiveTurn {
        let isVisible = outcome.isVisible || lastFailure != nil
        let prepared = live
        let change = LiveChange<Entity>(outcome, before: live.sections, step.newer.number) {
            context.identity(live.request.model, $0)
        }
        return LiveTurn(
            announce: { [self] in if isVisible { announce(isBefore: true, \.results) } },
            show: { [self] in
                // An observer may have given it another request.
                guard live === prepared else { return }
                freezeSource(followedBy: outcome.list.source, step.older) {
                    live.show(outcome)
                    store = BatchStore(like: store, list: outcome.list)
                }
                (lastFailure, isBehind) = (nil, false)
            },
            tell: { [self] in
                guard isVisible, live === prepared else { return }
                announce(isBefore: false, \.results)
                if outcome.isVisible { tell(change) }
            }
        )
    }
}

/// Ends an observation when it is cancelled or nobody holds it any more.
public final class LiveObservation: Sendable {
    private let number: Int
    private let ended: EndedMembers

    init(_ number: Int, _ ended: EndedMembers) { (self.number, self.ended) = (number, ended) }

    deinit { ended.add(number) }

    /// No call comes after this.
    public func cancel() { ended.add(number) }
}

extension ManagedObjectContext {
    /// A list of a request's objects that follows every commit and this context's unsaved edits;
    /// see `LiveResults`.
    ///
    /// - Parameters:
    ///   - descriptor: which objects, and their order.
    ///   - batchSize: rows that are read together when one of them is touched.
    /// - Throws: what `fetch` throws.
    public func live<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        batchSize: Int = 50
    ) throws -> LiveResults<Entity> {
        try LiveResults(descriptor, sectionTerm: nil, batchSize: batchSize, in: self)
    }
}
