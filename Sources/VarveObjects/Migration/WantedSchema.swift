// What an opening wants a store to be: the app's schema, and the stages that lead to it.

import Synchronization
import VarveBase
import VarveEngine
import VarveRecords

/// The app's schema and its plan, read once.
struct WantedSchema: Sendable {
    let description: SchemaDescription
    let types: [any ManagedObject.Type]
    let stages: [MigrationStage]

    init(
        _ schema: any VersionedSchema.Type,
        _ migrations: (any MigrationPlan.Type)?
    ) throws(StoreError) {
        description = try EntityDeclaration.describe(schema)
        types = schema.entities
        stages = migrations?.stages ?? []
    }

    /// Without classes.
    init(_ description: SchemaDescription, _ stages: [MigrationStage]) {
        self.description = description
        types = []
        self.stages = stages
    }

    /// The stages with a way to run their code.
    func recordStages(_ place: String, _ options: ContainerOptions) throws -> [RecordStage] {
        try stages.map { stage in
            try stage.recordStage { change, types, body in
                let container: PersistentContainer
                do {
                    container = try PersistentContainer(
                        store: change.store,
                        schema: try SchemaModel(types, record: change.new),
                        place: place,
                        options: options
                    )
                } catch let error as RecordError {
                    throw StoreError.translating(error, store: place, isOpening: true)
                }
                try body(Migration(change, container))
            }
        }
    }
}

/// Whether the task that opens a store was cancelled.
final class Cancellation: Sendable {
    private let isCancelled = Atomic<Bool>(false)

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// - Throws: `CancellationError`.
    func check() throws {
        if isCancelled.load(ordering: .relaxed) || Task.isCancelled { throw CancellationError() }
    }
}

extension ContainerOptions {
    /// The settings of the layers below.
    func records(
        _ place: String,
        _ types: [any ManagedObject.Type]
    ) throws -> RecordOptions {
        var records = RecordOptions()
        records.unreferencedRowBytes = unreferencedRowBytes
        records.mode =
            isReadOnly ? .readOnly : createIfMissing ? .createIfMissing : .existing
        records.allowsMigration = allowsMigration
        records.readsNewerSchemas = readsNewerSchemas
        records.removing = removing
        records.varyingDefault = { entity, attribute in
            EntityDeclaration.varyingDefault(entity, attribute, in: types)
        }
        records.derived = { EntityDeclaration.derived($0, in: types) }
        records.engine.nodeCacheBytes = nodeCacheBytes
        records.engine.allowsForeignWriters = allowsForeignWriters
        records.engine.rights = try rights(place)
        records.engine.compacted = trace?.compactions(place)
        records.engine.checkpointed = trace?.checkpoints(place)
        records.engine.retention = retention
        records.engine.compactsAutomatically = compactsAutomatically
        records.engine.packsLeaves = packsRows
        if let turn = turnMilliseconds { records.engine.turnMilliseconds = turn }
        adjustingEngine?(&records.engine)
        if !plantedBugs.isEmpty {
            let bugs: [(PlantedObjectBug, PlantedStageBug)] = [
                (.stageReadsWhatItWrites, .readsWhatItWrites),
                (.stageChecksNoConstraint, .checksNoConstraint),
                (.stageForgetsInverses, .forgetsInverses),
            ]
            for (bug, step) in bugs where plantedBugs.contains(bug) {
                records.plantedStageBugs.insert(step)
            }
        }
        return records
    }
}
