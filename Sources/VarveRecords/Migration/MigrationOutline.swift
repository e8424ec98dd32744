// What a migration would do: the steps of each stage, and the rows that they go through.
//
// Invariants
// - Nothing is written, and no code of a stage runs; changes of descriptions do.
// - Rows are counted as the store has them now: what a stage adds is not known.

import VarveBase
public import VarveEngine
import VarveFormat

/// One stage of a migration that was not done.
public struct StageOutline: Sendable {
    /// A step, and the rows that it reads or writes.
    public struct Step: Sendable {
        /// What is done.
        public var step: MigrationStep
        /// Rows that are read for it.
        public var rowsRead: Int
        /// Rows that are written for it.
        public var rowsWritten: Int
    }

    /// The version of the schema that it leads to.
    public var version: UInt32
    /// Whether code of the app runs in it.
    public var isCustom: Bool
    /// Its steps.
    public var steps: [Step]
    /// Between the schemas before and after it.
    public var difference: SchemaDifference
    /// Rows of the store by entity, by the names before the stage.
    public var rows: [String: Int]
}

/// What a store would go through.
public struct MigrationOutline: Sendable {
    /// The version of the stored schema; nil: there is no schema yet.
    public var version: UInt32?
    /// The stages that are left, in their order. Empty: nothing is to be done.
    public var stages: [StageOutline]
    /// What is in the way, as far as schemas tell: the first stage that has such a problem is the
    /// last of `stages`.
    public var problems: [String] = []
    /// Between the stored schema and the app's.
    public var difference: SchemaDifference
    /// Rows of the store.
    public var rows: Int
}

extension RecordStore {
    /// What `open` with the same arguments would do. Writes nothing.
    ///
    /// Throws `invalidSchema`, `schemaTooNew`, `engine`, and what changes of descriptions throw.
    ///
    /// - Parameter sampling: reads rows of the largest entity, so many at most, on a snapshot that
    ///   the caller can time: gets their number.
    public static func outlineMigration(
        _ location: StoreLocation,
        schema: SchemaDescription,
        stages: [RecordStage],
        options: RecordOptions = RecordOptions(),
        timing: (_ rows: Int, _ read: () throws -> Void) throws -> Void = { _, _ in }
    ) throws -> MigrationOutline {
        let declared = try schema.checked()
        var options = options
        options.mode = .readOnly
        let store = try RecordStore.openAsStored(location, options: options)
        defer { try? store.close() }
        let snapshot = store.engine.snapshot()
        let stored = try store.record(snapshot.schema)
        let chain = MigrationChain(declared, stages, options)
        try chain.checkOrder()
        try store.sample(snapshot, stored, timing)
        var counts: [EntityID: Int] = [:]
        for entity in stored?.entities ?? [] where !entity.isHiddenLink {
            counts[entity.id] = Int(clamping: snapshot.count(entity.tree))
        }
        var outline = MigrationOutline(
            version: stored?.version,
            stages: [],
            difference: SchemaDifference(
                from: stored.map { SchemaDescription($0) }
                    ?? SchemaDescription(version: 0, entities: []),
                to: declared
            ),
            rows: counts.values.reduce(0, +)
        )
        guard let stored else { return outline }
        try outline.take(chain, stored, counts, options)
        return outline
    }

    private func sample(
        _ snapshot: Snapshot,
        _ stored: SchemaRecord?,
        _ timing: (Int, () throws -> Void) throws -> Void
    ) throws {
        let largest = stored?.entities.max { snapshot.count($0.tree) < snapshot.count($1.tree) }
        guard let largest else { return }
        let rows = min(20_000, Int(clamping: snapshot.count(largest.tree)))
        try timing(rows) {
            var left = rows
            var cursor = snapshot.cursor(largest.tree)
            guard try cursor.first() else { return }
            try cursor.visitRows { _, _, _ in
                left -= 1
                return left > 0
            }
        }
    }
}

extension MigrationOutline {
    fileprivate mutating func take(
        _ chain: MigrationChain,
        _ first: SchemaRecord,
        _ counts: [EntityID: Int],
        _ options: RecordOptions
    ) throws {
        var stored = first
        do {
            while let planned = try chain.next(after: stored) {
                let before = SchemaDescription(stored)
                stages.append(
                    StageOutline(
                        version: planned.description.version,
                        isCustom: planned.stage?.body != nil,
                        steps: planned.resolution.steps.map { step in
                            Self.step(step, planned, counts, options)
                        },
                        difference: SchemaDifference(from: before, to: planned.description),
                        rows: Dictionary(
                            stored.entities.compactMap { entity in
                                counts[entity.id].map { (entity.name, $0) }
                            },
                            uniquingKeysWith: { first, _ in first }
                        )
                    )
                )
                stored = planned.resolution.record
            }
        } catch RecordError.schemaMismatch(let found) {
            problems = found
        }
    }

    private static func step(
        _ step: MigrationStep,
        _ planned: MigrationChain.Planned,
        _ counts: [EntityID: Int],
        _ options: RecordOptions
    ) -> StageOutline.Step {
        let entities = planned.resolution.record.entities + planned.stored.entities
        let entity = entities.first { $0.name == step.entity && !$0.isHiddenLink }
        let rows = entity.flatMap { counts[$0.id] } ?? 0
        var (read, written) = (0, 0)
        switch step.kind {
        case .buildIndex, .dropAttribute: read = rows
        case .dropEntity: written = rows
        case .convertAttribute: (read, written) = (rows, rows)
        case .addAttribute:
            let make = planned.stage?.varyingDefault ?? options.varyingDefault
            let derived = (planned.stage?.derived ?? options.derived)(step.entity)
            if make(step.entity, step.detail) != nil { written = rows }
            if derived?.names.contains(step.detail) == true { (read, written) = (rows, rows) }
        case .changeAttribute where step.detail.hasSuffix("becomes required"): read = rows
        default: break
        }
        return StageOutline.Step(step: step, rowsRead: read, rowsWritten: written)
    }
}
