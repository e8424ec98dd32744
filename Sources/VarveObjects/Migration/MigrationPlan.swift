// The chain of an app's schemas, stage by stage.
//
// Invariants
// - A stage is a value. What its schema declares is read when the stage is made, and a
//   contradiction in it is thrown when a store is opened.

import VarveRecords

/// The way from older schemas to the app's, in stages. A store takes those that it has not behind
/// it, all in one commit.
public protocol MigrationPlan {
    /// The stages, ascending by the version that each leads to.
    static var stages: [MigrationStage] { get }
}

/// One step of a plan: from any earlier schema to one version.
///
/// The schema that it leads to is named in one of three ways:
/// - by a `VersionedSchema`, as the app's own: `to: AppSchema.self`;
/// - by a `SchemaDescription`, for a version whose classes are gone: `to: .version2`;
/// - by what changes in the schema before it: `to: 2) { schema in … }`.
public struct MigrationStage: Sendable {
    /// What is read of it and not known before a store is opened.
    enum Target: Sendable {
        case classes(Result<SchemaDescription, StoreError>, [any ManagedObject.Type])
        case description(SchemaDescription)
        case edits(UInt32, @Sendable (inout SchemaDescription) throws -> Void)
    }

    let target: Target
    let removing: Set<String>
    let body: (@Sendable (Migration) throws -> Void)?

    private static func target(_ schema: any VersionedSchema.Type) -> Target {
        let description = Result { () throws(StoreError) in
            try EntityDeclaration.describe(schema)
        }
        return .classes(description, schema.entities)
    }

    /// Automatic steps to a schema of the app: what is renamed, added, widened, and what may go.
    ///
    /// - Parameters:
    ///   - schema: the schema after this stage.
    ///   - removing: see `ContainerOptions.removing`; it holds for this stage.
    public static func automatic(
        to schema: any VersionedSchema.Type,
        removing: Set<String> = []
    ) -> MigrationStage {
        MigrationStage(target: target(schema), removing: removing, body: nil)
    }

    /// Automatic steps to a schema that no class describes.
    public static func automatic(
        to schema: SchemaDescription,
        removing: Set<String> = []
    ) -> MigrationStage {
        MigrationStage(target: .description(schema), removing: removing, body: nil)
    }

    /// Automatic steps that `change` makes of the schema before.
    ///
    /// - Parameters:
    ///   - version: the number of the schema after this stage.
    ///   - removing: see `ContainerOptions.removing`; it holds for this stage.
    ///   - change: turns the schema of before, as the store has it, into that of after.
    public static func automatic(
        to version: Int,
        removing: Set<String> = [],
        changing change: @escaping @Sendable (inout SchemaDescription) throws -> Void
    ) -> MigrationStage {
        MigrationStage(
            target: .edits(UInt32(clamping: version), change),
            removing: removing,
            body: nil
        )
    }

    /// Automatic steps to a schema of the app, and code that moves data between the two.
    ///
    /// The code sees rows as they were before the stage, by the names of that time, and writes rows
    /// of the new schema: by its classes, or by names. Types of attributes and targets of
    /// relationships may change. Afterwards required values, unique constraints and delete rules
    /// must hold.
    ///
    /// - Parameters:
    ///   - schema: the schema after this stage.
    ///   - removing: see `ContainerOptions.removing`; it holds for this stage. An attribute that
    ///     changes its type needs not be named when the code reads it.
    ///   - migrate: runs once, while nobody else can write. What it throws ends the migration; the
    ///     store is as it was.
    public static func custom(
        to schema: any VersionedSchema.Type,
        removing: Set<String> = [],
        _ migrate: @escaping @Sendable (Migration) throws -> Void
    ) -> MigrationStage {
        MigrationStage(target: target(schema), removing: removing, body: migrate)
    }

    /// The same to a schema that no class describes.
    public static func custom(
        to schema: SchemaDescription,
        removing: Set<String> = [],
        _ migrate: @escaping @Sendable (Migration) throws -> Void
    ) -> MigrationStage {
        MigrationStage(target: .description(schema), removing: removing, body: migrate)
    }

    /// The same to what `change` makes of the schema before.
    public static func custom(
        to version: Int,
        removing: Set<String> = [],
        changing change: @escaping @Sendable (inout SchemaDescription) throws -> Void,
        _ migrate: @escaping @Sendable (Migration) throws -> Void
    ) -> MigrationStage {
        MigrationStage(
            target: .edits(UInt32(clamping: version), change),
            removing: removing,
            body: migrate
        )
    }
}

extension MigrationStage {
    /// The stage as the records layer takes it.
    ///
    /// - Parameter run: runs the stage's code, with the classes of its schema.
    func recordStage(
        _ run:
            @escaping @Sendable (
                StageChange,
                [any ManagedObject.Type],
                (Migration) throws -> Void
            ) throws -> Void
    ) throws -> RecordStage {
        var types: [any ManagedObject.Type] = []
        let target: RecordStage.Target
        switch self.target {
        case .classes(let description, let classes):
            target = .described(try description.get())
            types = classes
        case .description(let description): target = .described(description)
        case .edits(let version, let change): target = .edited(version: version, change)
        }
        var stage = RecordStage(
            to: target,
            removing: removing,
            varyingDefault: { [types] entity, attribute in
                EntityDeclaration.varyingDefault(entity, attribute, in: types)
            }
        )
        stage.derived = { [types] entity in EntityDeclaration.derived(entity, in: types) }
        if let body { stage.body = { [types] change in try run(change, types, body) } }
        return stage
    }
}

/// How far a migration is, as `ContainerOptions.onMigrationProgress` is told.
public struct MigrationProgress: Hashable, Sendable {
    /// The stage under way, from 1.
    public let stage: Int
    /// Stages of this migration; automatic steps without a plan are one.
    public let stages: Int
    /// The version of the schema that the stage leads to.
    public let version: Int
    /// What is done, as "Note: rows" or "Note: build indexes".
    public let step: String
    /// Rows of this step that are done.
    public let rowsDone: Int
    /// Rows of this step. Those of later steps are not known yet: a stage's code decides.
    public let rowsTotal: Int

    init(_ progress: RecordMigrationProgress) {
        stage = progress.stage + 1
        stages = progress.stages
        version = Int(progress.version)
        step = progress.step
        rowsDone = progress.rowsDone
        rowsTotal = progress.rowsTotal
    }
}
