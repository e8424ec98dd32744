// Compaction, backup and restore of a container's store, and what its files hold.
//
// Invariants
// - The work is done on a thread of its own: no cooperative thread waits for the disk.
// - A cancelled task ends it, and leaves the store, an earlier backup and what was to be replaced
//   as they were.
//
// Progress is told by a closure, not by an async sequence: whoever does not want it pays nothing,
// there is nothing to be iterated before the work begins, and an actor of the caller's is reached
// from the closure as from anywhere.

public import Foundation
import VarveBase
import VarveEngine
import VarveRecords

/// How far a compaction, a backup or a restore is.
public struct MaintenanceProgress: Sendable, Hashable {
    /// What is done: entries of rows and indexes in a compaction, bytes in a backup or a restore.
    public var completedUnitCount: Int
    /// What there is. While others save during a compaction, more is done than this.
    public var totalUnitCount: Int

    /// What is done of all: from 0 to 1.
    public var fractionCompleted: Double {
        totalUnitCount == 0 ? 1 : min(1, Double(completedUnitCount) / Double(totalUnitCount))
    }
}

/// What a compaction did.
public struct CompactionResult: Sendable, Hashable {
    /// Bytes of the log before.
    public var bytesBefore: Int
    /// Bytes of the log after.
    public var bytesAfter: Int
    /// The oldest commit that is left.
    public var oldestCommit: CommitNumber
    /// The newest one.
    public var newestCommit: CommitNumber
    /// How long it took.
    public var duration: Duration
}

/// What a backup, or a restored store, holds, and what it cost.
public struct BackupResult: Sendable, Hashable {
    /// The newest commit in it.
    public var commit: CommitNumber
    /// Bytes of the log that were copied.
    public var bytesCopied: Int
    /// Blob files that were copied.
    public var blobsCopied: Int
    /// Whether an earlier backup was brought up to date.
    public var isIncrement: Bool
    /// How long it took.
    public var duration: Duration
}

/// What the files of a store hold.
public struct StoreSpace: Sendable, Hashable {
    /// Bytes of the store file.
    public var fileBytes: Int
    /// Bytes of it that the newest checkpoint needs.
    public var liveBytes: Int
    /// Bytes that earlier commits need which `ContainerOptions.retention` keeps.
    public var historyBytes: Int
    /// Bytes that a compaction gives back.
    public var reclaimableBytes: Int
    /// Blobs in files of their own; those of earlier commits and unsaved ones count.
    public var blobFiles: Int
    /// Their bytes.
    public var blobFileBytes: Int
    /// The oldest commit that the file holds.
    public var oldestCommit: CommitNumber
    /// When it was made.
    public var oldestCommitDate: Date
}

extension PersistentContainer {
    /// Told how far the work is, on the thread that does it: must be short.
    public typealias ProgressHandler = @Sendable (MaintenanceProgress) -> Void

    /// Copies what the store needs into a new file, which takes the place of the old one.
    ///
    /// Runs beside readers and savers; savers wait for the last commits only. Which commits stay is
    /// `ContainerOptions.retention`. Contexts go on reading the commits that they hold. If the task
    /// is cancelled, or anything fails, the store is as it was.
    ///
    /// - Parameter progress: told now and then.
    /// - Throws: `CancellationError`; `StoreError` with `busy` while another compaction runs,
    ///   `diskFull`, `damaged`, `ioFailed`, `readOnly`, `closed`; `outcomeUnknown` when the file
    ///   system refused while the files changed places: every commit is in both.
    /// - Complexity: O(live bytes + commits that are kept). Memory: at most 40 MiB beside what is
    ///   saved meanwhile. The disk holds both files until the end.
    @discardableResult
    public func compact(
        progress: ProgressHandler? = nil
    ) async throws -> CompactionResult {
        try await maintaining { container, flag in
            try container.compactNow(flag, progress)
        }
    }

    /// Copies the store, with its blobs, to another place; or brings an earlier backup there up to
    /// date, by copying what is new.
    ///
    /// Runs beside readers and savers and keeps nobody waiting. The copy holds the commit that was
    /// newest at the call, and the earlier ones that are in the file. It is a store: `restore`
    /// brings it to its place, and it can be opened with `isReadOnly` where it is. Once it was
    /// written to, it is brought up to date no more. A store in memory can be backed up to a file.
    /// A backup that is cancelled or fails leaves no new file; an earlier one stays as it was,
    /// except that a power cut while an increment is written may make a new one needed.
    ///
    /// - Parameters:
    ///   - url: the file of the backup, in a folder that exists; the end ".varve" is added to a
    ///     name without it. Its name is free, or that of an earlier backup of this store.
    ///   - progress: told now and then.
    /// - Throws: `CancellationError`; `StoreError` with `invalidRequest` when what has the name is
    ///   another store, was written to, or is from before a compaction: take another name. `busy`
    ///   when it is open, `closed`, `missingFolder`, `permissionDenied`, `diskFull`, `blobMissing`,
    ///   `blobDamaged`, `ioFailed`.
    /// - Complexity: O(bytes that the copy lacks + blobs). Memory: about a megabyte.
    @discardableResult
    public func backup(
        to url: URL,
        progress: ProgressHandler? = nil
    ) async throws -> BackupResult {
        let target = try Self.location(of: url)
        return try await maintaining { container, flag in
            try container.backupNow(to: target, place: url.path, flag, progress)
        }
    }

    /// Makes a backup the store at another place, where no store is open.
    ///
    /// The backup stays as it is; the lock file beside it is made if it is missing. All of it is
    /// checked before it is copied. Until the moment in which the restored store takes the name,
    /// what was at the place is untouched, and a crash, a failure or a cancelled task leaves it so.
    /// From that moment on the restored store is there, whole.
    ///
    /// - Parameters:
    ///   - backup: the file of a backup.
    ///   - url: the store file; the end ".varve" is added to a name without it. Its folder must
    ///     exist.
    ///   - replacing: whether a store that is there is replaced. False: `storeExists` is thrown.
    ///   - trace: told of it as a container tells `ContainerOptions.trace`.
    ///   - progress: told now and then.
    /// - Throws: `CancellationError`; `StoreError` with `storeExists`; `busy` when the store at the
    ///   place is open, in this process or another; `notAStore`, `damaged`, `blobMissing` and
    ///   `blobDamaged` of the backup; `missingFolder`, `permissionDenied`, `diskFull`, `ioFailed`.
    /// - Complexity: O(bytes of the backup and its blobs). Memory: about a megabyte.
    @discardableResult
    public static func restore(
        from backup: URL,
        to url: URL,
        replacing: Bool = false,
        trace: TraceHandler? = nil,
        progress: ProgressHandler? = nil
    ) async throws -> BackupResult {
        let (source, target) = (try location(of: backup), try location(of: url))
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await onThread {
                try traced(trace) { result, duration in
                    BackupResult.event(result, duration, isRestore: true)
                } _: {
                    try restoreNow(
                        (source, backup.path),
                        (target, url.path),
                        replacing,
                        flag,
                        progress
                    )
                }
            }
        } onCancel: {
            flag.cancel()
        }
    }

    /// What the files of the store hold now.
    ///
    /// - Throws: `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(bytes of the commit frames in the file, without rows and values, and blob
    ///   files, each of which is opened): not for every frame of a display. `statistics` has what
    ///   costs nothing.
    public func spaceUse() throws -> StoreSpace {
        try checkOpen()
        let use = try translating { () throws(RecordError) in try store.spaceUse() }
        return StoreSpace(
            fileBytes: Int(clamping: use.file),
            liveBytes: Int(clamping: use.log.live),
            historyBytes: Int(clamping: use.log.history),
            reclaimableBytes: Int(clamping: use.log.reclaimable),
            blobFiles: use.blobs.count,
            blobFileBytes: Int(clamping: use.blobs.bytes),
            oldestCommit: use.oldest.number,
            oldestCommitDate: Date(timeIntervalSince1970: Double(use.oldest.time) / 1_000_000)
        )
    }
}

// MARK: The work, on its thread

extension PersistentContainer {
    private func maintaining<Result: Sendable>(
        _ body: @escaping @Sendable (PersistentContainer, CancellationFlag) throws -> Result
    ) async throws -> Result {
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await Self.onThread { [self] in try body(self, flag) }
        } onCancel: {
            flag.cancel()
        }
    }

    /// On the caller's own thread: for tests.
    package func compactNow() throws { _ = try compactNow(CancellationFlag(), nil) }

    private func compactNow(
        _ flag: CancellationFlag,
        _ progress: ProgressHandler?
    ) throws -> CompactionResult {
        try checkOpen()
        let start = ContinuousClock.now
        let report = try Self.translating(place) { () throws(RecordError) in
            try store.compact(
                progress: { progress?(MaintenanceProgress($0.entriesDone, of: $0.entries)) },
                isCancelled: { flag.isCancelled }
            )
        }
        return CompactionResult(
            bytesBefore: Int(clamping: report.bytesBefore),
            bytesAfter: Int(clamping: report.bytesAfter),
            oldestCommit: report.oldest,
            newestCommit: report.newest,
            duration: ContinuousClock.now - start
        )
    }

    func backupNow(
        to target: StoreLocation,
        place: String,
        _ flag: CancellationFlag,
        _ progress: ProgressHandler?
    ) throws -> BackupResult {
        try traced(options.trace) { result, duration in
            BackupResult.event(result, duration, isRestore: false)
        } _: {
            try checkOpen()
            let start = ContinuousClock.now
            let report = try Self.translating(place) { () throws(RecordError) in
                try store.backup(
                    to: target,
                    progress: { progress?(MaintenanceProgress($0, of: $1)) },
                    isCancelled: { flag.isCancelled }
                )
            }
            return BackupResult(report, since: start)
        }
    }

    /// - Parameters:
    ///   - source: where the backup is, and its path for messages.
    ///   - target: the same of the store.
    static func restoreNow(
        _ source: (location: StoreLocation, path: String),
        _ target: (location: StoreLocation, path: String),
        _ replacing: Bool,
        _ flag: CancellationFlag,
        _ progress: ProgressHandler?
    ) throws -> BackupResult {
        let start = ContinuousClock.now
        let backup = try translating(source.path) { () throws(RecordError) in
            try RecordStore.openBackup(source.location)
        }
        defer { try? backup.close() }
        let report = try translating(target.path) { () throws(RecordError) in
            try backup.restore(
                to: target.location,
                replacing: replacing,
                progress: { progress?(MaintenanceProgress($0, of: $1)) },
                isCancelled: { flag.isCancelled }
            )
        }
        return BackupResult(report, since: start)
    }

    /// Runs a call of the layer below; that it was cancelled is Swift's error.
    private static func translating<Value>(
        _ place: String,
        _ body: () throws(RecordError) -> Value
    ) throws -> Value {
        do throws(RecordError) {
            return try body()
        } catch {
            if case .engine(let error) = error, error.code == .cancelled {
                throw CancellationError()
            }
            throw StoreError.translating(error, store: place)
        }
    }
}

extension MaintenanceProgress {
    init(_ done: UInt64, of all: UInt64) {
        self.init(
            completedUnitCount: Int(clamping: done),
            totalUnitCount: Int(clamping: all)
        )
    }
}

extension BackupResult {
    init(_ report: BackupReport, since start: ContinuousClock.Instant) {
        self.init(
            commit: report.commit,
            bytesCopied: Int(clamping: report.bytesCopied),
            blobsCopied: report.blobsCopied,
            isIncrement: report.isIncrement,
            duration: ContinuousClock.now - start
        )
    }
}
