// A store opened for looking at it.
//
// Invariants
// - Looking never changes anything: no lock, no write, no file made. See `LogObserver`.
// - Every answer of one observer is about the same moment.
// - A damaged store can be observed; what cannot be answered then throws `damaged`.

import VarveBase
public import VarveEngine
import VarveFormat
import VarveIO
import VarveRecords

/// A store opened read-only for questions about it. Use it from any thread.
public final class StoreObserver: Sendable {
    /// The path it was opened with.
    public let path: String
    let log: LogObserver
    /// The newest state that can be read; nil when there is none.
    let state: ObservedState?
    /// Why the newest commit cannot be shown; nil when it can.
    let stateFailure: InspectionError?
    let names: TreeNames

    /// One readable state of the store.
    struct ObservedState: Sendable {
        let store: RecordStore
        let snapshot: RecordSnapshot
    }

    /// Opens the store at a path: "NAME.varve", or without the suffix.
    ///
    /// - Throws: `missing`, `permission`, `notAStore`, `ioFailed`; `damaged` only when nothing at
    ///   all can be told.
    /// - Complexity: O(log bytes since the last checkpoint).
    public static func open(_ path: String) throws(InspectionError) -> StoreObserver {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        guard !name.isEmpty else {
            throw InspectionError(.missing, "\(path) names a folder, not a store")
        }
        let location = StoreLocation.file(directory: folder, name: name)
        do throws(InspectionError) {
            return try StoreObserver(path: path, location)
        } catch {
            guard error.kind == .missing, !name.hasSuffix(".varve"),
                (try? PosixDirectory.open(path: folder).exists(name)) == true
            else { throw error }
            throw InspectionError(
                .notAStore,
                "\(path) is not a Varve store",
                hint: "the name of a store ends in .varve"
            )
        }
    }

    /// Opens a store wherever it lies: in a test's simulated disk, for instance.
    ///
    /// - Throws: as `open` of a path.
    public static func open(_ location: StoreLocation) throws(InspectionError) -> StoreObserver {
        try StoreObserver(path: "\(location)", location)
    }

    init(path: String, _ location: StoreLocation) throws(InspectionError) {
        self.path = path
        log = try engine { () throws(EngineError) in try LogObserver.open(location) }
        var failure = log.failure.map { InspectionError($0) }
        var state: ObservedState?
        do throws(RecordError) {
            let opened = try RecordStore.open(observing: log)
            failure = failure ?? opened.failure.map { InspectionError($0) }
            state = ObservedState(store: opened.store, snapshot: try opened.store.snapshot())
        } catch {
            failure = failure ?? InspectionError(error)
        }
        self.state = state
        stateFailure = failure
        names = TreeNames(state?.snapshot.schema)
    }

    /// Why the newest commit is not what this observer shows, or nothing can be shown; nil when the
    /// store opens soundly. Opening is not a full check: see `verify`.
    public var damage: InspectionError? { stateFailure }

    /// The commit whose rows this observer shows; nil when there is none.
    public var shownCommit: UInt64? { state?.snapshot.number.rawValue }

    func shown() throws(InspectionError) -> ObservedState {
        if let state { return state }
        throw stateFailure ?? InspectionError(.damaged, "the store has no readable commit")
    }

    /// The entity of a name, or an error with the name that was probably meant.
    func entity(_ name: String) throws(InspectionError) -> RecordEntity {
        let schema = try shown().snapshot.schema
        if let entity = schema.entity(named: name) { return entity }
        if let hidden = schema.all.first(where: { $0.name == name }) { return hidden }
        let names = schema.entities.map(\.name)
        let meant = Spelling.suggestion(for: name, among: names)
        throw InspectionError(
            .badRequest,
            "the store has no entity \(Spelling.escaped(name))",
            hint: meant.map { "did you mean \($0)?" }
                ?? (names.isEmpty
                    ? "it has no entities yet" : "it has " + names.joined(separator: ", "))
        )
    }
}

/// What the trees of a store are called.
struct TreeNames: Sendable {
    private var byTree: [TreeID: String] = [
        .catalog: "catalog", .blobs: "blobs", .droppedBlobs: "dropped blobs",
        .largeValues: "large values",
    ]
    private(set) var entities: [TreeID: RecordEntity] = [:]
    private(set) var indexes: [TreeID: RecordEntity] = [:]
    private let byEntity: [EntityID: String]

    init(_ schema: RecordSchema?) {
        var names: [EntityID: String] = [:]
        for entity in schema?.all ?? [] {
            names[entity.id] = entity.name
            byTree[entity.tree] = entity.name
            entities[entity.tree] = entity
            for index in entity.indexes {
                let name = Self.name(of: index, entity)
                byTree[index.tree] = name
                indexes[index.tree] = entity
                if let cut = index.cutTree {
                    byTree[cut] = name + " (cut keys)"
                    indexes[cut] = entity
                }
            }
        }
        byEntity = names
    }

    /// "Loan.due", or "Loan.(book,due)".
    static func name(of index: RecordIndex, _ entity: RecordEntity) -> String {
        index.names.count == 1
            ? "\(entity.name).\(index.names[0])"
            : "\(entity.name).(\(index.names.joined(separator: ",")))"
    }

    func name(_ tree: TreeID) -> String { byTree[tree] ?? "tree \(tree.rawValue)" }
    func name(_ entity: EntityID) -> String { byEntity[entity] ?? "entity \(entity.rawValue)" }
    func object(_ entity: EntityID, _ object: ObjectID) -> String {
        "\(name(entity)):\(object.rawValue)"
    }
}
