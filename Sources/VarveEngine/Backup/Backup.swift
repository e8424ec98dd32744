// Backup: a copy of the store as of one commit, made while it is read and written.
//
// Invariants
// - Everything up to a published commit frame is there and never changes, so a backup is a copy of
//   the file's beginning and CLOSE frames: the same store, file ID and generation.
// - A new backup has no name of its own until it is whole, with its blobs, on disk.
// - An increment appends to a backup of the same generation that ends with a commit of this file;
//   anything else is refused before a byte of it is touched.

public import VarveBase
internal import VarveFormat
internal import VarveIO

/// What a backup holds and what it cost.
public struct BackupReport: Sendable, Hashable {
    /// The newest commit in it.
    public var commit: CommitNumber
    /// Bytes of the log copied.
    public var bytesCopied: UInt64
    /// Blob files copied; those that were there already are not.
    public var blobsCopied: Int
    /// Whether an earlier backup was brought up to date.
    public var isIncrement: Bool
}

extension Engine {
    static let backupPieceBytes: UInt64 = 1 << 20

    /// Copies the store to another place, or brings an earlier copy there up to date.
    ///
    /// Runs beside readers and writers and keeps nobody waiting. The copy opens as a store that was
    /// closed with the commit that was newest when the call began; earlier commits that the file
    /// holds are in it. While an increment is being written the earlier backup is not whole: after
    /// a power cut in that time it may be refused, and a new one is needed.
    ///
    /// - Parameters:
    ///   - location: the directory, and a name that is free or that of an earlier backup.
    ///   - progress: called now and then with the bytes copied and the bytes to copy, those of
    ///     blobs among them.
    ///   - isCancelled: asked now and then.
    /// - Throws: `invalid` when what has the name is no backup of this generation of the file, or
    ///   was written to since: make one under another name. `busy` when a writer has it open,
    ///   `cancelled`, `noSpace`, `permission`, `blobMissing`, `blobDamaged`, `ioFailed`.
    /// - Complexity: O(bytes that the copy lacks + blob files). Memory: about a megabyte.
    public func backup(
        to location: StoreLocation,
        progress: (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in },
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> BackupReport {
        let (directory, name) = try Self.place(location, options.rights)
        return try copy(to: directory, name, for: .backup, progress, isCancelled)
    }

    /// The newest commit and those before it, in a file of that name.
    func copy(
        to directory: any StoreDirectory,
        _ name: String,
        for purpose: BackupFile.Purpose,
        _ progress: (_ done: UInt64, _ all: UInt64) -> Void,
        _ isCancelled: () -> Bool,
        beforeNaming: () throws(EngineError) -> Void = {}
    ) throws(EngineError) -> BackupReport {
        try suspension.beginCopy()
        defer { suspension.endCopy() }
        func isToEnd() -> Bool { suspension.isEnding || isCancelled() }
        // Holds the file and keeps its blobs.
        let snapshot = snapshot(for: PinOwner(.backup, label: name))
        let newest = try CommitChain(snapshot.state).commit(at: snapshot.state.frame)
        let state = snapshot.state
        var copy = try BackupFile(of: state, newest, in: directory, name, options, for: purpose)
        do throws(EngineError) {
            let target = BlobFiles(
                in: DirectoryNames(directory),
                name: name + Self.blobSuffix,
                environment: options.environment
            )
            let log = newest.end.rawValue - copy.end
            // A store that is restored may be there because its blobs are damaged: all come anew.
            let isBackup = if case .backup = purpose { true } else { false }
            let known = isBackup ? target : nil
            var all = log
            try forEachBlobFile(of: state, missingIn: known) { _, length throws(EngineError) in
                all += length ?? 0
            }
            var done: UInt64 = 0
            let blobs = try copyBlobs(of: state, to: target, missingIn: known) { bytes in
                done += bytes
                progress(done, all)
                return !isToEnd()
            }
            try copy.begin()
            while copy.end < newest.end.rawValue {
                if isToEnd() { throw Self.copyCancelled }
                let count = min(Self.backupPieceBytes, newest.end.rawValue - copy.end)
                try copy.append(count, from: state.generation.log)
                done += count
                progress(done, all)
            }
            try beforeNaming()
            // Not what processes set aside: the copy is nobody's yet.
            try copy.finish(
                objectIDHighWater: max(newest.record.objectIDHighWater, objectIDs.own)
            )
            return BackupReport(
                commit: snapshot.number,
                bytesCopied: log,
                blobsCopied: blobs,
                isIncrement: copy.isIncrement
            )
        } catch {
            copy.abandon()
            throw suspension.isEnding ? Suspension.error : error
        }
    }

    private static var copyCancelled: EngineError {
        EngineError(.cancelled, "the copy was cancelled")
    }

    /// Copies the blob files that the commit names, and those that earlier ones do.
    ///
    /// - Parameters:
    ///   - known: files that are there stay as they are; nil: all are written.
    ///   - step: told of each piece; false ends it.
    private func copyBlobs(
        of state: StoreState,
        to target: BlobFiles,
        missingIn known: BlobFiles?,
        _ step: (UInt64) -> Bool
    ) throws(EngineError) -> Int {
        var copied: [BlobDigest] = []
        try forEachBlobFile(of: state, missingIn: known) { digest, length throws(EngineError) in
            guard step(0) else { throw Self.copyCancelled }
            let outcome = try blobStore.engineError { () throws(BlobError) in
                let outcome = try blobStore.files.copy(digest, to: target, step)
                // Of a dropped one the file may be gone: then no commit that is kept names it.
                if outcome == .missing, let length {
                    throw .missing(BlobReference(digest: digest, length: length))
                }
                return outcome
            }
            if outcome == .stopped { throw Self.copyCancelled }
            if outcome == .copied { copied.append(digest) }
        }
        do throws(EngineError) {
            try blobStore.engineError { () throws(BlobError) in try target.publish() }
        } catch {
            // A later sync that succeeds would say nothing of their names: the next backup must
            // not find them. A restore gives all names anew.
            if known != nil {
                for digest in copied { _ = try? target.remove(digest) }
            }
            throw error
        }
        return copied.count
    }

    /// Blobs in files of their own: those that a commit names, with their length, and those that
    /// it has dropped since an earlier one named them.
    func forEachBlobFile(
        of state: StoreState,
        missingIn known: BlobFiles? = nil,
        _ body: (_ digest: BlobDigest, _ length: UInt64?) throws(EngineError) -> Void
    ) throws(EngineError) {
        let there = Set(
            try blobStore.engineError { () throws(BlobError) in try known?.list() ?? [] }
        )
        var cursor = TreeCursor(state.tree(.blobs))
        var hasEntry = try cursor.first()
        while hasEntry {
            let (key, value) = (cursor.key, cursor.value)
            let (digest, entry) = try decoded { () throws(FormatError) in
                (try EngineKeys.digest(decoding: key), try BlobEntry(decoding: value))
            }
            if entry.place == .file, !there.contains(digest) { try body(digest, entry.length) }
            hasEntry = try cursor.next()
        }
        cursor = TreeCursor(state.tree(.droppedBlobs))
        hasEntry = try cursor.first()
        while hasEntry {
            let key = cursor.key
            let digest = try decoded { () throws(FormatError) in
                try EngineKeys.dropped(decoding: key).digest
            }
            if !there.contains(digest) { try body(digest, nil) }
            hasEntry = try cursor.next()
        }
    }
}

extension BlobFiles {
    enum CopyOutcome { case copied, missing, stopped }

    /// Copies one file. The copy is synced, and has the name that its content has.
    ///
    /// - Parameter step: told the bytes of each piece; false ends it, and leaves no file.
    func copy(
        _ digest: BlobDigest,
        to other: BlobFiles,
        _ step: (UInt64) -> Bool
    ) throws(BlobError) -> CopyOutcome {
        guard let source = try openRaw(digest) else { return .missing }
        defer { source.close() }
        let size = try Self.io { () throws(IOError) in try source.size() }
        let writer = try other.makeWriter()
        var position: UInt64 = 0
        while position < size {
            let count = min(UInt64(Self.pieceBytes), size - position)
            let bytes = try Self.io { () throws(IOError) in
                try source.read(at: FileOffset(position), count: Int(count))
            }
            try writer.append(bytes)
            position += count
            guard step(count) else { return .stopped }
        }
        let reference = try writer.finish()
        guard reference.digest == digest else {
            throw .damaged(BlobReference(digest: digest, length: size), found: "another content")
        }
        return .copied
    }
}
