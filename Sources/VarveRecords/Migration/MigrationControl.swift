// Who hears how far a migration is, and may end it.
//
// Invariants
// - Asked between rows, never inside a change of one: an error from here ends the transaction.

import VarveBase

/// Progress of one migration, on the thread that does it.
final class MigrationControl {
    /// Rows between two reports.
    static let rowsPerReport = 512

    private var progress = RecordMigrationProgress(
        stage: 0,
        stages: 1,
        from: 0,
        version: 0,
        step: "",
        rowsDone: 0,
        rowsTotal: 0
    )
    private let report: (RecordMigrationProgress) throws -> Void

    init(_ report: @escaping (RecordMigrationProgress) throws -> Void = { _ in }) {
        self.report = report
    }

    func begin(stage: Int, of stages: Int, from: UInt32, version: UInt32) throws {
        progress.stage = stage
        progress.stages = stages
        progress.from = from
        progress.version = version
        try begin("begin", rows: 0)
    }

    func begin(_ step: String, rows: Int) throws {
        progress.step = step
        progress.rowsDone = 0
        progress.rowsTotal = rows
        try report(progress)
    }

    /// So many rows of the step are done.
    func done(_ rows: Int) throws {
        progress.rowsDone = rows
        try report(progress)
    }

    /// The same for each row: tells of some.
    func count(_ row: Int) throws {
        if row > 0, row % Self.rowsPerReport == 0 { try done(row) }
    }

    /// Asks whether to go on.
    func check() throws { try report(progress) }
}

/// Steps of a stage that tests of tests leave out (docs/Testing.md).
package enum PlantedStageBug: Sendable {
    case readsWhatItWrites
    case checksNoConstraint
    case forgetsInverses
}
