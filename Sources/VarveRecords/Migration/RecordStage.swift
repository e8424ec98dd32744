// One stage of a migration as the records layer takes it: where it leads, and what it does on the
// way.
//
// Invariants
// - A stage is a value; it knows no store.

public import VarveBase

/// One step of a chain of schemas.
public struct RecordStage: Sendable {
    /// The schema that a stage leads to.
    public enum Target: Sendable {
        /// Described in full.
        case described(SchemaDescription)
        /// The schema before it, changed.
        case edited(version: UInt32, @Sendable (inout SchemaDescription) throws -> Void)
    }

    /// Where it leads.
    public var target: Target
    /// Names of entities (`Note`) and properties (`Note.subtitle`) that go here with their data.
    public var removing: Set<String>
    /// Moves data between the two schemas; nil: automatic steps alone.
    public var body: (@Sendable (StageChange) throws -> Void)?
    /// What makes a new value for each row; see `RecordOptions.varyingDefault`.
    public var varyingDefault: @Sendable (String, String) -> (() -> StoredValue)?

    /// See `RecordOptions.derived`; of the classes of this stage.
    public var derived: @Sendable (String) -> DerivedAttributes? = { _ in nil }

    /// Joins the parts of a stage.
    public init(
        to target: Target,
        removing: Set<String> = [],
        varyingDefault: @escaping @Sendable (String, String) -> (() -> StoredValue)? = { _, _ in
            nil
        },
        body: (@Sendable (StageChange) throws -> Void)? = nil
    ) {
        self.target = target
        self.removing = removing
        self.varyingDefault = varyingDefault
        self.body = body
    }

    /// The number of the schema that it leads to.
    public var version: UInt32 {
        switch target {
        case .described(let description): description.version
        case .edited(let version, _): version
        }
    }

    /// The schema that it leads to from a stored one.
    ///
    /// Throws `invalidSchema`, and what the app's change of the description throws.
    func description(from stored: SchemaDescription) throws -> SchemaDescription {
        switch target {
        case .described(let description): return try description.checked()
        case .edited(let version, let edit):
            var description = stored
            try edit(&description)
            description.version = version
            return try description.checked()
        }
    }
}

/// How far a migration is.
public struct RecordMigrationProgress: Hashable, Sendable {
    /// The stage under way, from 0.
    public var stage: Int
    /// Stages of this migration.
    public var stages: Int
    /// The schema that the store had before the first stage.
    public var from: UInt32
    /// The schema that the stage leads to.
    public var version: UInt32
    /// What is done, as "Note: rows" or "Note: build indexes".
    public var step: String
    /// Rows of this step that are done.
    public var rowsDone: Int
    /// Rows of this step.
    public var rowsTotal: Int
}
