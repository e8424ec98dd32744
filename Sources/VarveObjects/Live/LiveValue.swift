// A question whose answer follows the store: a count, a sum, an extreme, one object.
//
// Invariants
// - It is asked again only after a step that can change the answer: one that touched an object
//   which matches now or matched before and, for a question about a column, changed that column.
// - It tells only what is another answer.

public import Observation
import VarveBase
import VarveRecords

/// An answer that follows every commit, and the unsaved edits of its context: see
/// `ManagedObjectContext.liveCount` and its like. Observable.
///
/// It changes when its context moves to another commit, and when edits are processed, as live lists
/// do. Commits that cannot change the answer do not ask the question again.
public final class LiveValue<Value: Equatable>: Observable {
    private let context: ManagedObjectContext
    private let question: LiveQuestion
    private let ask: () throws -> Value
    private let ended: EndedMembers
    private let registrar = ObservationRegistrar()
    private var answer: Value
    private var lastFailure: StoreError?
    private var serial = 0
    private var handlers: [Int: (Value) -> Void] = [:]
    private var nextHandler = 0
    private let endedHandlers = EndedMembers()
    private var isBehind = false
    /// How often the question was asked: tests count.
    private(set) var timesAsked = 1

    init(
        _ question: LiveQuestion,
        in context: ManagedObjectContext,
        _ ask: @escaping () throws -> Value
    ) throws {
        (self.context, self.question, self.ask) = (context, question, ask)
        let feed = context.liveFeed()
        context.moveLive()
        _ = try feed.begin()
        ended = feed.ended
        answer = try ask()
        question.noteEdits()
        serial = feed.add(self)
    }

    deinit { ended.add(serial) }

    /// The answer. Observed.
    public var value: Value {
        registrar.access(self, keyPath: \.value)
        return answer
    }

    /// Why the question could not be asked again; nil once it could. Observed.
    public var failure: StoreError? {
        registrar.access(self, keyPath: \.value)
        return lastFailure
    }

    /// Calls `handler` with each new answer, in the context's isolation, until the observation
    /// ends.
    public func onChange(_ handler: @escaping (Value) -> Void) -> LiveObservation {
        nextHandler += 1
        let number = nextHandler
        handlers[number] = handler
        return LiveObservation(number, endedHandlers)
    }
}

extension LiveValue: LiveFollower {
    var entities: Set<EntityID> { question.entities }
    var hasEdits: Bool { question.hasEdits || lastFailure != nil || isBehind }
    var source: ListSource? { nil }

    func noteBehind() { isBehind = true }

    func prepare(_ step: LiveStep) -> LiveTurn? {
        do {
            let mayChange = try context.container.translating { () throws(RecordError) in
                try question.mayChange(step)
            }
            guard mayChange || lastFailure != nil || isBehind else { return nil }
            isBehind = false
            timesAsked += 1
            let newAnswer = try ask()
            question.noteEdits()
            guard newAnswer != answer || lastFailure != nil else { return nil }
            return turn(newAnswer, nil)
        } catch {
            let known = StoreError.translatingAny(error, in: context.container) as? StoreError
            return turn(answer, known ?? StoreError(.invalidRequest, "\(error)"))
        }
    }

    private func turn(_ newAnswer: Value, _ failure: StoreError?) -> LiveTurn {
        LiveTurn(
            announce: { [self] in registrar.willSet(self, keyPath: \.value) },
            show: { [self] in (answer, lastFailure) = (newAnswer, failure) },
            tell: { [self] in
                registrar.didSet(self, keyPath: \.value)
                guard failure == nil else { return }
                for number in handlers.keys.sorted() {
                    for ended in endedHandlers.take() { handlers[ended] = nil }
                    handlers[number]?(newAnswer)
                }
            }
        )
    }
}

/// Which steps can change an answer.
final class LiveQuestion {
    private let context: ManagedObjectContext
    private let request: ListRequest
    let entities: Set<EntityID>
    /// The column that is asked about; nil: only which objects match counts.
    private let column: ColumnID?
    private var reached: Set<ObjectID> = []

    init(
        _ plan: RequestPlan,
        column: ColumnID?,
        in context: ManagedObjectContext
    ) throws(StoreError) {
        (self.context, self.column) = (context, column)
        let snapshot = try context.currentSnapshot()
        let made = try context.container.translating { () throws(RecordError) in
            try ListRequest(plan, context, snapshot)
        }
        request = made
        entities = made.entities(context)
    }

    /// Whether unsaved edits may be part of the answer.
    private(set) var hasEdits = false

    /// Remembers which objects unsaved edits reach: when they go, the answer may change, too.
    func noteEdits() {
        reached = []
        hasEdits = request.hasRequests && request.includesPending && context.hasEdits
        guard request.includesPending, context.hasEdits, let snapshot = context.snapshot else {
            return
        }
        reached = (try? context.reach(request.paths, request.model, snapshot)) ?? []
        if !reached.isEmpty { hasEdits = true }
    }

    func mayChange(_ step: LiveStep) throws(RecordError) -> Bool {
        if hasEdits || request.includesPending && context.hasEdits { return true }
        // What is inside the filter may have changed: only asking tells.
        if request.hasRequests { return true }
        guard let affected = try step.affected(request.paths, request.model) else { return true }
        for id in affected {
            let rows = try step.row(request.model.record.id, id)
            let before = try request.place(rows.old, step.older)
            let after = try request.place(rows.new, step.newer)
            if (before == nil) != (after == nil) { return true }
            guard let before, let after, let column, let old = rows.old, let new = rows.new
            else { continue }
            // In another place it lets others into the window.
            if !request.window.isWhole, !before.isSame(as: after) { return true }
            let values = (
                try step.older.value(of: old, column), try step.newer.value(of: new, column)
            )
            if !values.0.isSame(as: values.1) { return true }
        }
        return false
    }
}

extension ManagedObjectContext {
    /// How many objects match, kept up to date; limit and offset included.
    /// - Throws: what `count` throws.
    public func liveCount<Entity>(
        _ descriptor: FetchDescriptor<Entity>
    ) throws -> LiveValue<Int> {
        try LiveValue(question(descriptor), in: self) { [unowned self] in
            try count(descriptor)
        }
    }

    /// Whether any object matches, kept up to date.
    /// - Throws: what `count` throws.
    public func liveExists<Entity>(
        _ descriptor: FetchDescriptor<Entity>
    ) throws -> LiveValue<Bool> {
        let one = descriptor.limit(min(1, descriptor.limit ?? 1))
        return try LiveValue(question(descriptor), in: self) { [unowned self] in
            try count(one) > 0
        }
    }

    /// The sum of an integer attribute, kept up to date.
    /// - Throws: what `sum` throws.
    public func liveSum<Entity, Value: StorableInteger>(
        _ descriptor: FetchDescriptor<Entity>,
        _ column: @escaping (Entity.Columns) -> Column<Entity, Value>
    ) throws -> LiveValue<Int> {
        try LiveValue(question(descriptor, column(Entity.columns).definition), in: self) {
            [unowned self] in try sum(descriptor, column)
        }
    }

    /// The sum of a floating-point attribute, kept up to date.
    /// - Throws: what `sum` throws.
    public func liveSum<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        _ column: @escaping (Entity.Columns) -> Column<Entity, Double>
    ) throws -> LiveValue<Double> {
        try LiveValue(question(descriptor, column(Entity.columns).definition), in: self) {
            [unowned self] in try sum(descriptor, column)
        }
    }

    /// The lowest value of an attribute, kept up to date; nil when there is none.
    /// - Throws: what `minimum` throws.
    public func liveMinimum<Entity, Value: OrderedValue>(
        _ descriptor: FetchDescriptor<Entity>,
        _ column: @escaping (Entity.Columns) -> Column<Entity, Value>
    ) throws -> LiveValue<Value?> where Value: Equatable {
        try LiveValue(question(descriptor, column(Entity.columns).definition), in: self) {
            [unowned self] in try minimum(descriptor, column)
        }
    }

    /// The highest value of an attribute, kept up to date; nil when there is none.
    /// - Throws: what `maximum` throws.
    public func liveMaximum<Entity, Value: OrderedValue>(
        _ descriptor: FetchDescriptor<Entity>,
        _ column: @escaping (Entity.Columns) -> Column<Entity, Value>
    ) throws -> LiveValue<Value?> where Value: Equatable {
        try LiveValue(question(descriptor, column(Entity.columns).definition), in: self) {
            [unowned self] in try maximum(descriptor, column)
        }
    }

    /// One object by its ID, kept up to date: nil while the commit, with this context's edits, has
    /// none. What changes in the object itself is told by the object, which is observable.
    /// - Throws: `foreignID`, `wrongEntity`, `unknownEntity`, and what a failed read throws.
    public func liveObject<Entity>(_ id: TypedObjectID<Entity>) throws -> LiveValue<Entity?> {
        let model = try container.check(id)
        let object = id.objectID.object
        let request = FetchDescriptor<Entity>(
            filter: TypedPredicate(.compare(.object, .equal, .reference(object)))
        )
        return try LiveValue(question(request), in: self) { [unowned self] in
            guard try isAlive(object, model) else { return nil }
            let found: Entity = try self.object(with: id)
            return found.storage.isDeleted ? nil : found
        }
    }

    private func question<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        _ definition: PropertyDefinition? = nil
    ) throws(StoreError) -> LiveQuestion {
        let plan = try RequestPlan(descriptor, in: self)
        let slot = definition?.slot ?? -1
        let column = slot < 0 ? nil : plan.model.properties[slot].column
        return try LiveQuestion(plan, column: column, in: self)
    }
}
