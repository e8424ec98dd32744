// Measures migrations and backups, and passes on what the engine tells.

import VarveBase
import VarveEngine
import VarveRecords

extension TraceHandler {
    /// What the engine tells of compactions.
    /// - Parameter place: of the store, for errors.
    func compactions(
        _ place: String
    ) -> @Sendable (Result<CompactionReport, EngineError>, UInt64) -> Void {
        { result, nanoseconds in
            let report = try? result.get()
            let event = CompactionTrace(
                bytesBefore: Int(clamping: report?.bytesBefore ?? 0),
                bytesAfter: Int(clamping: report?.bytesAfter ?? 0),
                duration: .nanoseconds(Int64(clamping: nanoseconds)),
                failure: TraceFailure(result, place)
            )
            self(.compaction(event))
        }
    }

    /// What the engine tells of checkpoints.
    func checkpoints(
        _ place: String
    ) -> @Sendable (Result<CheckpointReport, EngineError>, UInt64) -> Void {
        { result, nanoseconds in
            let report = try? result.get()
            let event = CheckpointTrace(
                commit: report?.commit,
                pages: report?.pages ?? 0,
                bytesWritten: Int(clamping: report?.pageBytes ?? 0),
                isInBackground: report?.isInBackground ?? false,
                duration: .nanoseconds(Int64(clamping: nanoseconds)),
                failure: TraceFailure(result, place)
            )
            self(.checkpoint(event))
        }
    }
}

extension TraceFailure {
    fileprivate init?<Report>(_ result: Result<Report, EngineError>, _ place: String) {
        guard case .failure(let error) = result else { return nil }
        if error.code == .cancelled {
            self = .cancelled
        } else {
            self = .store(StoreError.translating(.engine(error), store: place).code)
        }
    }
}

/// Runs work, and tells of it what `event` says; nil says nothing. Without a handler nothing is
/// measured.
func traced<Value>(
    _ trace: TraceHandler?,
    _ event: (Result<Value, any Error>, Duration) -> TraceEvent?,
    _ body: () throws -> Value
) throws -> Value {
    guard let trace else { return try body() }
    let start = ContinuousClock.now
    let result = Result { try body() }
    if let event = event(result, ContinuousClock.now - start) { trace(event) }
    return try result.get()
}

extension Result {
    /// Why it failed.
    fileprivate var traceFailure: TraceFailure? {
        if case .failure(let error) = self { TraceFailure(error) } else { nil }
    }
}

/// What an opening hears of its migration, if there is one.
final class MigrationWatch {
    private var newest: RecordMigrationProgress?
    private var rows = 0
    private var stages = 0

    func note(_ progress: RecordMigrationProgress) {
        let isNext = newest?.stage != progress.stage || newest == nil
        if isNext { stages += 1 }
        if isNext || newest?.step != progress.step { rows += progress.rowsTotal }
        newest = progress
    }

    /// - Parameter version: of the app's schema.
    /// - Returns: nil, if there was no migration.
    func event<Value>(
        _ result: Result<Value, any Error>,
        _ duration: Duration,
        to version: UInt32
    ) -> TraceEvent? {
        newest.map { newest in
            .migration(
                MigrationTrace(
                    fromVersion: Int(newest.from),
                    toVersion: Int(version),
                    isRevert: false,
                    stages: stages,
                    rows: rows,
                    duration: duration,
                    failure: result.traceFailure
                )
            )
        }
    }
}

extension RevertedMigration {
    static func event(_ result: Result<Self, any Error>, _ duration: Duration) -> TraceEvent? {
        let reverted = try? result.get()
        return .migration(
            MigrationTrace(
                fromVersion: reverted?.fromVersion,
                toVersion: reverted?.toVersion,
                isRevert: true,
                stages: 0,
                rows: 0,
                duration: duration,
                failure: result.traceFailure
            )
        )
    }
}

extension BackupResult {
    static func event(
        _ result: Result<Self, any Error>,
        _ duration: Duration,
        isRestore: Bool
    ) -> TraceEvent? {
        let done = try? result.get()
        return .backup(
            BackupTrace(
                kind: isRestore ? .restore : done?.isIncrement == true ? .increment : .backup,
                commit: done?.commit,
                bytesCopied: done?.bytesCopied ?? 0,
                blobsCopied: done?.blobsCopied ?? 0,
                duration: duration,
                failure: result.traceFailure
            )
        )
    }
}
