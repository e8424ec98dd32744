// Unproven commits written once more, so that what was accepted becomes certain.
//
// Invariants
// - A settle chains to the newest proven commit and declares the old copies a void: it never builds
//   on a frame that may not be on disk.
// - Every byte of the new state that lies at or above the proven end is written again: changed
//   nodes, pages, large values and small blobs (SettleValues.swift).
// - A crash inside a settle leaves the same choice to the next opening.
// - It leaves half of what is kept for deletes on a full disk: things are deleted behind an
//   opening, too. Where it finds no room the commits are written as row changes, and where those
//   find none, once more in place: SettleAsChanges.swift, SettleInPlace.swift.
// - Another way begins only while no commit frame of this opening was handed to the system.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct Settle {
    let generation: Generation
    let options: EngineOptions
    let provenEnd: FileOffset

    /// Appends and syncs the settle. Returns the clean state.
    func run(
        _ state: StoreState,
        of recovered: RecoveredLog,
        record: CommitRecord,
        stamp: UInt64,
        _ log: inout LogWriter
    ) throws(EngineError) -> StoreState {
        let commits = recovered.unsettled
        let editor = StateEditor(
            base: state,
            number: state.number,
            stamp: stamp,
            generation,
            options
        )
        try copyValues(of: recovered.unproven, editor, &log)
        var pages = PageWriter(
            commit: state.number,
            nodes: generation.nodes,
            flushBytes: options.earlyWriteBytes,
            rewriteFrom: provenEnd,
            reserve: reserve
        )
        var clean = try pages.write(try editor.finished(), to: &log)
        var body = ByteWriter(capacity: 1024)
        TreeRoots.append(PageWriter.roots(of: clean), to: &body)
        let changes = try Self.changes(of: commits)
        ChangedObjects.append(changes, to: &body)
        Self.append(absorbed: commits, to: &body)
        var record = record
        record.operationCount = UInt32(clamping: changes.reduce(0) { $0 + $1.objects.count })
        record.liveBytes = SpaceUse.add(Int64(clamping: pages.pageBytes), to: record.liveBytes)
        try log.handLargeBody(leaving: reserve)
        let placed = log.appendCommit(
            .tree,
            flags: [.carriesChanges, .settle],
            record: record,
            body: body.bytes
        )
        try put(&log)
        pages.keepNodes()
        clean.becomeBase(at: placed.offset, liveBytes: record.liveBytes)
        // Pages that were written again need the old ones no more.
        var before = state
        before.trees = state.baseTrees
        if let change = try? SpaceUse.change(from: before, to: clean) {
            clean.liveBytes = SpaceUse.add(change, to: state.liveBytes)
        }
        return clean
    }

    /// Writes and syncs what was appended.
    func put(_ log: inout LogWriter) throws(EngineError) {
        try log.makeRoom(leaving: reserve)
        do throws(IOError) {
            options.environment.yield(.settleWrite)
            try log.flush()
            options.environment.yield(.settleSync)
            try log.sync()
        } catch {
            throw .io(error)
        }
    }

    // MARK: What was absorbed

    private static func append(absorbed commits: [ScannedCommit], to writer: inout ByteWriter) {
        writer.count(commits.count)
        for commit in commits {
            writer.varint(commit.record.number.rawValue)
            writer.u64(commit.record.epoch)
            writer.i64(commit.record.clockMicroseconds)
            writer.sizedText(commit.record.author)
        }
    }

    /// What all of them changed together, each object once.
    private static func changes(
        of commits: [ScannedCommit]
    ) throws(EngineError) -> [ChangedObjects] {
        var merge = ChangeMerge()
        for commit in commits {
            for list in try Replay.changes(of: commit) { merge.add(list) }
        }
        let lists = merge.lists
        guard lists.reduce(0, { $0 + $1.objects.count }) <= Int(ChangedObjects.objectsMax) else {
            throw EngineError(.limitExceeded, "what has to be settled changes too many objects")
        }
        return lists
    }
}
