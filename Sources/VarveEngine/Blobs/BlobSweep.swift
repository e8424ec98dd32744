// Removing blob files that nothing names any more.
//
// Invariants
// - A file goes only when no row of the newest commit names it, no snapshot pins and no retention
//   keeps a commit from before it was dropped, nobody holds it as pending, and no blob is being
//   written; and while no other process has the store open.
// - The list of dropped blobs shrinks after the files are gone; a crash in between only makes the
//   next sweep look at names that are no longer there.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Other processes may read older commits, or be about to name a blob that is there.
    private var canSweep: Bool { role.turn.map { $0.company() == .alone } ?? true }

    private func hasDropped(_ state: StoreState) -> Bool {
        state.trees[.droppedBlobs] != nil && canSweep
            && !options.environment.leavesOut(.sweepDropped)
    }

    /// Removes files of dropped blobs, and their entries from `state`. Called at a checkpoint.
    func sweepDropped(
        _ state: StoreState,
        _ writer: inout WriterState
    ) throws(EngineError) -> StoreState {
        guard hasDropped(state) else { return state }
        let leavesPinsOut = options.environment.leavesOut(.keepPinnedBlobs)
        let oldest =
            leavesPinsOut ? state.number : min(oldestPinned(), try oldestRetained(state))
        var keys: [BlobDigest: [[UInt8]]] = [:]
        var stillRead: Set<BlobDigest> = []
        var cursor = TreeCursor(state.tree(.droppedBlobs))
        var hasEntry = try cursor.first()
        while hasEntry {
            let (commit, digest) = try decoded { () throws(FormatError) in
                try EngineKeys.dropped(decoding: cursor.key)
            }
            if commit > oldest {
                // A snapshot reads it or may read it later, also when it was dropped before.
                stillRead.insert(digest)
            } else {
                keys[digest, default: []].append(cursor.key)
            }
            hasEntry = try cursor.next()
        }
        let blobs = state.tree(.blobs)
        var free: [BlobDigest] = []
        for digest in keys.keys.sorted() where !stillRead.contains(digest) {
            if try blobs.value(EngineKeys.digest(digest)) == nil { free.append(digest) }
        }
        let removed = Set(try blobStore.remove(free))
        counters.blobFilesSwept.add(UInt64(removed.count), ordering: .relaxed)
        // A blob that is named again, or was since, needs its older entry no more either.
        let settled = keys.filter { removed.contains($0.key) || !free.contains($0.key) }
        guard !settled.isEmpty else { return state }
        writer.stamp += 1
        let editor = TreeEditor(
            id: .droppedBlobs,
            stamp: writer.stamp,
            loader: state.generation.nodes,
            splitWeight: options.nodeWeightMax,
            innerWeight: options.innerSplitWeight,
            root: state.trees[.droppedBlobs] ?? .empty
        )
        for key in settled.values.joined() { try editor.remove(key) }
        var swept = state
        swept.trees[.droppedBlobs] = editor.root.rows == 0 ? nil : editor.root
        return swept
    }

    /// A compaction's own snapshots kept blobs that were dropped meanwhile: they go now, also when
    /// no commit follows.
    func sweepBehindCompaction() throws(EngineError) {
        try exclusively { writer throws(EngineError) in
            try checkWritable(writer)
            guard try hasSweepable(writer.pending) else { return }
            writer.wantCheckpoint()
            try checkpoint(&writer)
        }
    }

    /// Whether a dropped blob is needed by nobody any more.
    func hasSweepable(_ state: StoreState) throws(EngineError) -> Bool {
        guard hasDropped(state) else { return false }
        var cursor = TreeCursor(state.tree(.droppedBlobs))
        guard try cursor.first() else { return false }
        let (commit, _) = try decoded { () throws(FormatError) in
            try EngineKeys.dropped(decoding: cursor.key)
        }
        return commit <= min(oldestPinned(), try oldestRetained(state))
    }

    /// Removes blob files that no commit ever named, and unfinished ones. Called at a clean close.
    func sweepOrphans(_ writer: inout WriterState) throws(EngineError) {
        guard canSweep, !options.environment.leavesOut(.sweepOrphans) else { return }
        try blobStore.removeLeftovers()
        let state = published.withLock { $0.state }
        let named = state.tree(.blobs)
        var dropped: Set<BlobDigest> = []
        var cursor = TreeCursor(state.tree(.droppedBlobs))
        var hasEntry = try cursor.first()
        while hasEntry {
            dropped.insert(
                try decoded { () throws(FormatError) in
                    try EngineKeys.dropped(decoding: cursor.key).digest
                }
            )
            hasEntry = try cursor.next()
        }
        let files = try blobStore.engineError { () throws(BlobError) in
            try blobStore.files.list()
        }
        var orphans: [BlobDigest] = []
        let leavesNamesOut = options.environment.leavesOut(.keepNamedBlobs)
        for digest in files where !dropped.contains(digest) {
            let isNamed = try named.value(EngineKeys.digest(digest)) != nil
            if !isNamed || leavesNamesOut { orphans.append(digest) }
        }
        let removed = try blobStore.remove(orphans)
        counters.blobFilesSwept.add(UInt64(removed.count), ordering: .relaxed)
    }
}
