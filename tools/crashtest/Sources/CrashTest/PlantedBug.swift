// Planted bugs: one step of the store left out or done wrongly, to see that the campaign notices.
//
// A programmer's mistakes, each at one place. Most stand between the engine and the simulated disk,
// where a call is not passed on; the engine's own yield points say which call it is. The rest are
// steps that the engine leaves out when its environment says so (`Environment.leavesOut`).

import Synchronization
import VarveTesting

/// One deliberately broken step.
enum PlantedBug: String, CaseIterable, Sendable {
    /// A commit is acknowledged without the sync of its data.
    case commitSyncMissing = "commit-sync-missing"
    /// A checkpoint counts as durable without its sync.
    case checkpointSyncMissing = "checkpoint-sync-missing"
    /// A settle counts as durable without its sync.
    case settleSyncMissing = "settle-sync-missing"
    /// Commits that were written again in place count as durable without a sync.
    case inPlaceSyncMissing = "in-place-sync-missing"
    /// A sync alone is to make certain what has no room to be written again.
    case inPlaceWriteMissing = "in-place-write-missing"
    /// The name of a new store is never made durable.
    case directorySyncMissing = "directory-sync-missing"
    /// A compacted file is put in place without the syncs of its data.
    case compactionSyncMissing = "compaction-sync-missing"
    /// A compacted file is put in place without the sync of the directory.
    case compactionDirectorySyncMissing = "compaction-directory-sync-missing"
    /// A blob's file gets its name without the sync of its data.
    case blobSyncMissing = "blob-sync-missing"
    /// A commit refers to a blob whose name is not durable.
    case blobNamedTooEarly = "blob-named-too-early"
    /// A sync that failed is tried again, and its success believed.
    case failedSyncRetried = "failed-sync-retried"
    /// A sync that failed is taken for one that succeeded.
    case syncErrorSwallowed = "sync-error-swallowed"
    /// A read that failed while the store is opened is taken for the end of the log.
    case readErrorTakenForEnd = "read-error-taken-for-end"
    /// `durableEnd` stays where it was at opening.
    case watermarkNotMoved = "watermark-not-moved"
    /// The hash of a page's or a value's bytes is not checked.
    case pageHashUnchecked = "page-hash-unchecked"
    /// A commit is believed without the hash over its body.
    case bodyHashUnchecked = "body-hash-unchecked"
    /// Commits that nothing proves are built on as they are.
    case settleMissing = "settle-missing"
    /// The sweep of orphans does not ask whether a row names the blob.
    case liveBlobSwept = "live-blob-swept"
    /// The sweep of dropped blobs does not ask whether a snapshot needs them.
    case pinnedBlobSwept = "pinned-blob-swept"
    /// Of symbol tables only the first copy is read.
    case symbolTwinUnread = "symbol-twin-unread"
    /// A leaf that changes a packed one is read as the packed one.
    case editsUnread = "edits-unread"

    /// The steps that the engine leaves out.
    var leftOut: OmittableStep? {
        switch self {
        case .watermarkNotMoved: .raiseDurableEnd
        case .pageHashUnchecked: .checkPayloadHash
        case .bodyHashUnchecked: .checkBodyHash
        case .settleMissing: .settle
        case .inPlaceWriteMissing: .writeInPlace
        case .liveBlobSwept: .keepNamedBlobs
        case .pinnedBlobSwept: .keepPinnedBlobs
        case .symbolTwinUnread: .readTwin
        case .editsUnread: .readEdits
        default: nil
        }
    }
}

/// The environment and the disk of a process with a planted bug.
final class PlantedSystem: Environment {
    let bug: PlantedBug
    private let base: FixedEnvironment
    /// The last point that the engine passed.
    private let point = Mutex<YieldPoint?>(nil)

    init(_ bug: PlantedBug, seed: UInt64) {
        self.bug = bug
        base = FixedEnvironment(seed: seed)
    }

    func randomBytes(_ count: Int) -> [UInt8] { base.randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 { base.wallClockMicroseconds() }
    func processID() -> Int32 { base.processID() }
    func yield(_ point: YieldPoint) { self.point.withLock { $0 = point } }
    func leavesOut(_ step: OmittableStep) -> Bool { bug.leftOut == step }

    func directory(_ base: any StoreDirectory) -> any StoreDirectory {
        PlantedDirectory(self, base, isRoot: true)
    }

    /// Whether the engine is right behind a point; asked once per passing.
    private func isBehind(_ passed: YieldPoint) -> Bool {
        point.withLock { point in
            guard point == passed else { return false }
            point = nil
            return true
        }
    }

    /// Whether a sync of a file is left out.
    func dropsSync(of name: String) -> Bool {
        switch bug {
        case .commitSyncMissing: isBehind(.commitSync)
        case .checkpointSyncMissing: isBehind(.checkpointSync)
        case .settleSyncMissing: isBehind(.settleSync)
        case .inPlaceSyncMissing: isBehind(.settleInPlaceSync)
        case .compactionSyncMissing: name.contains(".varve-new-")
        case .blobSyncMissing: name.hasPrefix("new-")
        default: false
        }
    }

    /// Whether a sync of a directory is left out.
    func dropsDirectorySync(isRoot: Bool) -> Bool {
        let isCompaction = isRoot && isBehind(.compactionDirectory)
        return switch bug {
        case .directorySyncMissing: isRoot && !isCompaction
        case .compactionDirectorySyncMissing: isCompaction
        case .blobNamedTooEarly: !isRoot
        default: false
        }
    }
}

private final class PlantedDirectory: StoreDirectory {
    private let system: PlantedSystem
    private let base: any StoreDirectory
    private let isRoot: Bool

    init(_ system: PlantedSystem, _ base: any StoreDirectory, isRoot: Bool) {
        self.system = system
        self.base = base
        self.isRoot = isRoot
    }

    var name: String { base.name }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        PlantedFile(system, try base.openFile(name, mode: mode))
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) {
        try base.rename(from, to: to, replacing: replacing)
    }
    func remove(_ name: String) throws(IOError) { try base.remove(name) }
    func removeDirectory(_ name: String) throws(IOError) { try base.removeDirectory(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) {
        if !system.dropsDirectorySync(isRoot: isRoot) { try base.sync() }
    }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        PlantedDirectory(system, try base.directory(name, create: create), isRoot: false)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        try base.lock(name, byte: byte, kind: kind, wait: wait)
    }
}

private final class PlantedFile: StoreFile {
    private let system: PlantedSystem
    private let base: any StoreFile

    init(_ system: PlantedSystem, _ base: any StoreFile) {
        self.system = system
        self.base = base
    }

    var name: String { base.name }
    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        do throws(IOError) {
            return try base.read(at: offset, count: count)
        } catch {
            guard system.bug == .readErrorTakenForEnd, error.kind == .other else { throw error }
            return [UInt8](repeating: 0, count: count)
        }
    }
    func size() throws(IOError) -> UInt64 { try base.size() }
    func identity() throws(IOError) -> FileIdentity { try base.identity() }
    func adviseDontNeed() { base.adviseDontNeed() }
    func close() { base.close() }
    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        try base.write(bytes, at: offset)
    }
    func syncData() throws(IOError) {
        if system.dropsSync(of: name) { return }
        do throws(IOError) {
            try base.syncData()
        } catch {
            switch system.bug {
            case .failedSyncRetried: try base.syncData()
            case .syncErrorSwallowed where error.kind == .other: return
            default: throw error
            }
        }
    }
    func syncAll() throws(IOError) { try syncData() }
    func cut(to size: UInt64) throws(IOError) { try base.cut(to: size) }
}
