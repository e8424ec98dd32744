// Checkpoints and the clean end of a log.
//
// Invariants
// - A checkpoint describes the state of the newest commit and changes none of its rows.
// - Its CKPT frame is written in the same batch as its pages and vouched for by their hashes, so a
//   crash in between leaves the store at the same commit, only with a longer replay.
// - A CLOSE frame says that everything before it is on disk; it is written after a sync, and no
//   frame ever chains to it.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Writes changed nodes and a CKPT frame; does nothing when there is nothing to write.
    func checkpoint(_ writer: inout WriterState) throws(EngineError) {
        guard writer.isDirty else { return }
        let before = writer.log
        let state = try sweepDropped(published.withLock { $0.state }, &writer)
        var pages = PageWriter(
            commit: state.number,
            nodes: nodes,
            flushBytes: options.earlyWriteBytes
        )
        let clean: StoreState
        do throws(EngineError) {
            clean = try pages.write(state, to: &writer.log)
            appendCheckpoint(of: clean, pageBytes: pages.pageBytes, &writer)
            try writer.log.makeRoom()
        } catch {
            throw giveUp(&writer, backTo: before, error)
        }
        do throws(IOError) {
            options.environment.yield("checkpoint.write")
            try writer.log.flush()
            options.environment.yield("checkpoint.sync")
            try writer.log.sync()
        } catch {
            // The commits that it describes are on disk.
            throw poison(
                &writer,
                .poisoned,
                "a checkpoint failed while it was written; every commit is on disk",
                error
            )
        }
        pages.keepNodes()
        published.withLock { $0.state = clean }
        writer.isDirty = false
        counters.checkpoints.add(1, ordering: .relaxed)
    }

    private func appendCheckpoint(
        of state: StoreState,
        pageBytes: UInt64,
        _ writer: inout WriterState
    ) {
        writer.liveBytes += pageBytes
        var body = ByteWriter(capacity: 1024)
        TreeRoots.append(PageWriter.roots(of: state), to: &body)
        writer.log.appendCommit(
            .checkpoint,
            flags: [],
            record: stateRecord(state, writer),
            body: body.bytes
        )
    }

    /// Checkpoint, CLOSE frame, sync, and no zeros behind the log.
    func closeCleanly(_ writer: inout WriterState) throws(EngineError) {
        try sweepOrphans(&writer)
        // IDs that were handed out without a commit must be known to the next opening.
        guard
            writer.isDirty || !writer.isClosedCleanly
                || objectIDHighWater > writer.recordedHighWater
        else { return }
        try checkpoint(&writer)
        let state = published.withLock { $0.state }
        // No zeros for it: what is not written yet is cut off right after.
        writer.log.appendCommit(.close, flags: [], record: stateRecord(state, writer), body: [])
        do throws(IOError) {
            try writer.log.flush()
            try writer.log.sync()
            try writer.log.cutZeros()
            try writer.file.syncAll()
        } catch {
            // Every commit is durable already; only the shortcut for the next opening is lost.
            throw .io(error)
        }
        writer.isClosedCleanly = true
    }

    private func stateRecord(
        _ state: StoreState,
        _ writer: borrowing WriterState
    ) -> CommitRecord {
        var record = CommitRecord()
        record.number = state.number
        record.epoch = writer.epoch
        record.clockMicroseconds = options.environment.wallClockMicroseconds()
        record.liveBytes = writer.liveBytes
        record.objectIDHighWater = objectIDHighWater
        record.schemaVersion = state.schemaVersion
        return record
    }
}
