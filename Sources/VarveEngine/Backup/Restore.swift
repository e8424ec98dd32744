// Restoring: a backup becomes a store at another place, where no store is open.
//
// Invariants
// - Until the new file takes the store's name, what was there is untouched, and whole. From then on
//   the restored store is whole. A crash at any moment leaves the one or the other.
// - Blob files are named by their content, so those of both stores lie beside each other meanwhile.
//   Those that only the earlier store needs go when the new name is durable.
// - The writer's lock is held from the first byte to the last: whoever opens the store waits.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Makes this store's newest commit, and those before it, the store at another place.
    ///
    /// - Parameters:
    ///   - location: the directory, and the name of the store.
    ///   - replacing: whether a store that has the name gives way.
    ///   - progress: called now and then with the bytes copied and the bytes to copy.
    ///   - isCancelled: asked now and then, not when the copy is whole.
    /// - Throws: `exists` when something has the name and is not to be replaced; `busy` when
    ///   somebody has the store there open; `cancelled`, `noSpace`, `permission`, `blobMissing`,
    ///   `blobDamaged`, `damaged`, `ioFailed`: what was there is as it was, unless the message says
    ///   that a power cut decides between the two.
    /// - Complexity: O(bytes of the store and its blobs). Those of the log are read twice: all of
    ///   them are checked first. Memory: about a megabyte.
    public func restore(
        to location: StoreLocation,
        replacing: Bool,
        progress: (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in },
        isCancelled: () -> Bool = { false }
    ) throws(EngineError) -> BackupReport {
        let (directory, name) = try Self.place(location, options.rights)
        if !replacing { try Self.checkFree(directory, name) }
        let lock = try Self.takeLock(directory, name)
        defer { lock.release() }
        try Self.checkNobodyReads(directory, name)
        try checkLog(isCancelled)
        let isThere = try Self.io { () throws(IOError) in
            try directory.exists(name + Self.fileSuffix)
        }
        if isThere, !replacing { try Self.checkFree(directory, name) }
        // What restores that did not end have left.
        try Self.removeLeftovers(name, in: directory)
        let report = try copy(
            to: directory,
            name,
            for: .store(replaces: isThere),
            progress,
            isCancelled,
            // Somebody may have opened it for reading, which no lock keeps from it.
            beforeNaming: { () throws(EngineError) in
                try Self.checkNobodyReads(directory, name)
            }
        )
        // Files that only the store before needs. What stays goes with the next clean close.
        try? removeBlobs(unneededIn: directory, name)
        return report
    }

    /// Every commit that the file holds is whole, with its pages and values: a backup that rotted
    /// is no store to come back to.
    ///
    /// - Complexity: O(bytes of the log).
    private func checkLog(_ isCancelled: () -> Bool) throws(EngineError) {
        let chain = try CommitChain(snapshot().state)
        var next: ScannedCommit? = try chain.commit(at: chain.newest)
        while let commit = next {
            if isCancelled() { throw EngineError(.cancelled, "the copy was cancelled") }
            if let place = try chain.scan.brokenBody(of: commit, checksPayloads: true) {
                throw .damaged(
                    "what commit \(commit.number.rawValue) needs at \(place.frameName) is damaged: "
                        + "this is no store to come back to",
                    place: place
                )
            }
            next = try chain.before(commit)
        }
    }

    private static func checkFree(
        _ directory: any StoreDirectory,
        _ name: String
    ) throws(EngineError) {
        let fileName = name + fileSuffix
        guard try io({ () throws(IOError) in try directory.exists(fileName) }) else { return }
        throw EngineError(
            .exists,
            "\(fileName) in \(directory.name) is there already, and nothing was to be replaced"
        )
    }

    /// A reader would go on with the file from before, and take what the shared page says of the
    /// new one for it.
    private static func checkNobodyReads(
        _ directory: any StoreDirectory,
        _ name: String
    ) throws(EngineError) {
        let locks = try io { () throws(IOError) in
            try directory.openLocks(name + lockSuffix, isReader: false)
        }
        defer { locks?.close() }
        guard let locks, locks.isLockedByOther(LockByte.reading..<LockByte.next) else { return }
        throw EngineError(
            .busy,
            "\(name + fileSuffix) is open; it can be replaced when it is closed"
        )
    }

    private func removeBlobs(
        unneededIn directory: any StoreDirectory,
        _ name: String
    ) throws(EngineError) {
        var needed: Set<BlobDigest> = []
        try forEachBlobFile(of: snapshot().state) { digest, _ throws(EngineError) in
            needed.insert(digest)
        }
        let files = BlobFiles(
            in: DirectoryNames(directory),
            name: name + Self.blobSuffix,
            environment: options.environment
        )
        try blobStore.engineError { () throws(BlobError) in
            for digest in try files.list() where !needed.contains(digest) {
                try files.remove(digest)
            }
            try files.removeLeftovers()
        }
    }
}
