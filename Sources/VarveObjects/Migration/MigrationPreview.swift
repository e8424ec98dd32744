// What a migration would do, without doing it.
//
// Invariants
// - Nothing is written, and no code of a stage runs.

public import Foundation
import VarveBase
import VarveEngine
import VarveRecords

/// What opening a store would do to it.
public struct MigrationPreview: Sendable, CustomStringConvertible {
    /// One step of a stage.
    public struct Step: Sendable {
        /// What is done.
        public let step: MigrationStep
        /// Rows that are read for it.
        public let rowsRead: Int
        /// Rows that are written for it; those that a stage's code writes on its own are not known.
        public let rowsWritten: Int
    }

    /// One stage.
    public struct Stage: Sendable {
        /// The version of the schema that it leads to.
        public let version: Int
        /// Whether code of the app runs in it.
        public let isCustom: Bool
        /// Its steps.
        public let steps: [Step]
        /// Between the schemas before and after it.
        public let difference: SchemaDifference
        /// Rows in the store by the entity's name before the stage: what its code may go through.
        public let rows: [String: Int]
    }

    /// The version of the stored schema; nil: the store has none yet.
    public let storedVersion: Int?
    /// The version of the app's schema.
    public let version: Int
    /// The stages that are left. Empty: the store is as the app wants it.
    public let stages: [Stage]
    /// What is in the way, as far as the schemas tell.
    public let problems: [String]
    /// Between the stored schema and the app's.
    public let difference: SchemaDifference
    /// About how long it takes here, from the time that a sample of rows took to be read just now.
    /// Code of stages counts as reading and writing each row of the store once.
    public let estimatedDuration: Duration

    /// The stages and steps, line by line.
    public var description: String {
        var lines: [String] = []
        for stage in stages {
            lines.append("to version \(stage.version)\(stage.isCustom ? ", with code" : ""):")
            for step in stage.steps {
                var line = "  \(step.step)"
                if step.rowsRead > 0 { line += ", reads \(step.rowsRead) rows" }
                if step.rowsWritten > 0 { line += ", writes \(step.rowsWritten) rows" }
                lines.append(line)
            }
        }
        if lines.isEmpty { lines.append("nothing is to be done") }
        lines += problems.map { "in the way: \($0)" }
        if !stages.isEmpty { lines.append("about \(estimatedDuration)") }
        return lines.joined(separator: "\n")
    }

    /// A row that is written, and one whose index entries are made, in rows that are gone through
    /// unread: about 2.5 and 1.3 microseconds (docs/Performance.md) beside 0.06.
    static let costs = (written: 40.0, indexed: 20.0)

    init(_ outline: MigrationOutline, version: UInt32, rowSeconds: Double) {
        storedVersion = outline.version.map { Int($0) }
        self.version = Int(version)
        problems = outline.problems
        difference = outline.difference
        var rows = 0.0
        stages = outline.stages.map { stage in
            if stage.isCustom {
                let all = Double(stage.rows.values.reduce(0, +))
                rows += all * (1 + Self.costs.written)
            }
            return Stage(
                version: Int(stage.version),
                isCustom: stage.isCustom,
                steps: stage.steps.map { step in
                    let isIndex = step.step.kind == .buildIndex
                    rows += Double(step.rowsRead) * (isIndex ? Self.costs.indexed : 1)
                    if !stage.isCustom { rows += Double(step.rowsWritten) * Self.costs.written }
                    return Step(
                        step: step.step,
                        rowsRead: step.rowsRead,
                        rowsWritten: step.rowsWritten
                    )
                },
                difference: stage.difference,
                rows: stage.rows
            )
        }
        estimatedDuration = .seconds(rows * rowSeconds)
    }
}

extension PersistentContainer {
    /// What `open` with the same arguments would do to a store: a dry run, which writes nothing.
    ///
    /// - Parameters:
    ///   - url: the store.
    ///   - schema: the app's entities.
    ///   - migrations: the stages from older schemas to this one.
    ///   - options: how the store would be opened.
    /// - Throws: `StoreError` with what opening for reading throws; `schemaTooNew`,
    ///   `invalidSchema`; what changes of schemas in stages throw.
    /// - Complexity: O(1) in the rows; a sample of them is read.
    public static func planMigration(
        at url: URL,
        schema: any VersionedSchema.Type,
        migrations: (any MigrationPlan.Type)? = nil,
        options: ContainerOptions = ContainerOptions()
    ) async throws -> MigrationPreview {
        let wanted = try WantedSchema(schema, migrations)
        return try await onThread {
            try plan(try location(of: url), place: url.path, wanted, options)
        }
    }

    private static func plan(
        _ location: StoreLocation,
        place: String,
        _ wanted: WantedSchema,
        _ options: ContainerOptions
    ) throws -> MigrationPreview {
        var rowSeconds = 0.0
        do {
            let outline = try RecordStore.outlineMigration(
                location,
                schema: wanted.description,
                stages: try wanted.recordStages(place, options),
                options: try options.records(place, wanted.types)
            ) { rows, read in
                // Twice: the first time some of it comes from the disk.
                try read()
                let time = try ContinuousClock().measure { try read() }
                rowSeconds = time / .seconds(1) / Double(max(rows, 1))
            }
            return MigrationPreview(
                outline,
                version: wanted.description.version,
                rowSeconds: rowSeconds
            )
        } catch let error as RecordError {
            throw StoreError.translating(error, store: place, isOpening: true)
        }
    }
}
