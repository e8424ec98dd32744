// Backup: a copy of the store as of one commit, made while it is read and written.
//
// Invariants
// - Everything up to a published commit frame is there and never changes, so a backup is a copy of
//   the file's beginning and a CLOSE: the same store, file ID and generation.
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
    ///   - progress: called now and then with the bytes copied and the bytes to copy.
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
        let (directory, name) = try Self.place(location)
        // Holds the file and keeps its blobs.
        let snapshot = snapshot(for: PinOwner(.backup, label: name))
        let newest = try CommitChain(snapshot.state).commit(at: snapshot.state.frame)
        var copy = try BackupFile(of: snapshot.state, newest, in: directory, name, options)
        do throws(EngineError) {
            let blobs = try copyBlobs(of: snapshot.state, to: directory, name, isCancelled)
            try copy.begin()
            let all = newest.end.rawValue - copy.end
            var done: UInt64 = 0
            while done < all {
                if isCancelled() { throw EngineError(.cancelled, "the backup was cancelled") }
                let count = min(Self.backupPieceBytes, all - done)
                try copy.append(count, from: snapshot.state.generation.log)
                done += count
                progress(done, all)
            }
            // Not what processes set aside: the copy is nobody's yet.
            try copy.finish(
                objectIDHighWater: max(newest.record.objectIDHighWater, objectIDs.own)
            )
            return BackupReport(
                commit: snapshot.number,
                bytesCopied: all,
                blobsCopied: blobs,
                isIncrement: copy.isIncrement
            )
        } catch {
            copy.abandon()
            throw error
        }
    }

    /// Copies the blob files that the commit names, and those that earlier ones do.
    private func copyBlobs(
        of state: StoreState,
        to directory: any StoreDirectory,
        _ name: String,
        _ isCancelled: () -> Bool
    ) throws(EngineError) -> Int {
        let target = BlobFiles(
            in: DirectoryNames(directory),
            name: name + Self.blobSuffix,
            environment: options.environment
        )
        let there = Set(
            try blobStore.engineError { () throws(BlobError) in try target.list() }
        )
        var copied: [BlobDigest] = []
        var cursor = TreeCursor(state.tree(.blobs))
        var hasEntry = try cursor.first()
        while hasEntry {
            let (key, value) = (cursor.key, cursor.value)
            let (digest, entry) = try decoded { () throws(FormatError) in
                (try EngineKeys.digest(decoding: key), try BlobEntry(decoding: value))
            }
            if entry.place == .file, !there.contains(digest) {
                if isCancelled() { throw EngineError(.cancelled, "the backup was cancelled") }
                let reference = BlobReference(digest: digest, length: entry.length)
                try blobStore.engineError { () throws(BlobError) in
                    guard try blobStore.files.copy(digest, to: target) else {
                        throw .missing(reference)
                    }
                }
                copied.append(digest)
            }
            hasEntry = try cursor.next()
        }
        cursor = TreeCursor(state.tree(.droppedBlobs))
        hasEntry = try cursor.first()
        while hasEntry {
            let key = cursor.key
            let digest = try decoded { () throws(FormatError) in
                try EngineKeys.dropped(decoding: key).digest
            }
            // Its file may be gone already: then no commit that is kept names it.
            if !there.contains(digest) {
                let isCopied = try blobStore.engineError { () throws(BlobError) in
                    try blobStore.files.copy(digest, to: target)
                }
                if isCopied { copied.append(digest) }
            }
            hasEntry = try cursor.next()
        }
        do throws(EngineError) {
            try blobStore.engineError { () throws(BlobError) in try target.publish() }
        } catch {
            // A later sync that succeeds would say nothing of their names: the next backup must
            // not find them.
            for digest in copied { _ = try? target.remove(digest) }
            throw error
        }
        return copied.count
    }
}

extension BlobFiles {
    /// Copies one file; false when there is none. The copy is synced, and has the name that its
    /// content has.
    func copy(_ digest: BlobDigest, to other: BlobFiles) throws(BlobError) -> Bool {
        guard let source = try openRaw(digest) else { return false }
        defer { source.close() }
        let size = try Self.io { () throws(IOError) in try source.size() }
        let writer = try other.makeWriter()
        var position: UInt64 = 0
        while position < size {
            let count = Int(min(UInt64(Self.pieceBytes), size - position))
            let bytes = try Self.io { () throws(IOError) in
                try source.read(at: FileOffset(position), count: count)
            }
            try writer.append(bytes)
            position += UInt64(count)
        }
        let reference = try writer.finish()
        guard reference.digest == digest else {
            throw .damaged(BlobReference(digest: digest, length: size), found: "another content")
        }
        return true
    }
}
