// Checkpoints and the clean end of a log.
//
// Invariants
// - A checkpoint describes the state of the newest commit and changes none of its rows.
// - Its CKPT frame is written in the same batch as its pages and vouched for by their hashes, so a
//   crash in between leaves the store at the same commit, only with a longer replay.
// - A CLOSE frame says that everything before it is on disk; it is written after a sync, and no
//   frame ever chains to it.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// What a checkpoint wrote.
public struct CheckpointReport: Sendable, Hashable {
    /// The commit that it describes.
    public var commit: CommitNumber
    /// Pages that were written for it.
    public var pages: Int
    /// Their bytes in the file.
    public var pageBytes: UInt64
    /// Whether commits went on while its pages were written.
    public var isInBackground: Bool
}

extension Engine {
    /// Runs `body` and tells of it; without a listener nothing is measured.
    func telling<Report>(
        _ listener: (@Sendable (Result<Report, EngineError>, UInt64) -> Void)?,
        _ body: () throws(EngineError) -> Report
    ) throws(EngineError) -> Report {
        guard let listener else { return try body() }
        let start = options.environment.monotonicNanoseconds()
        let result = Result { () throws(EngineError) in try body() }
        listener(result, options.environment.monotonicNanoseconds() &- start)
        return try result.get()
    }

    /// Writes changed nodes and a CKPT frame; does nothing when there is nothing to write.
    /// Called with nothing on its way: the pending state is the published one.
    ///
    /// - Parameter reserve: prepared bytes that have to be left on a full disk.
    func checkpoint(
        _ writer: inout WriterState,
        leaving reserve: UInt64 = 0
    ) throws(EngineError) {
        guard writer.needsCheckpoint else { return }
        _ = try telling(options.checkpointed) { () throws(EngineError) in
            try writeCheckpoint(&writer, leaving: reserve)
        }
    }

    private func writeCheckpoint(
        _ writer: inout WriterState,
        leaving reserve: UInt64
    ) throws(EngineError) -> CheckpointReport {
        try syncHanded(&writer)
        let report: CheckpointReport
        let mark = writer.log.mark
        do throws(EngineError) {
            let (clean, pages) = try appendCheckpoint(known: [:], leaving: reserve, &writer)
            try writer.log.makeRoom(leaving: reserve)
            options.environment.yield(.checkpointWrite)
            do throws(IOError) { try writer.log.flush() } catch { throw .io(error) }
            options.environment.yield(.checkpointSync)
            do throws(IOError) { try writer.log.sync() } catch {
                throw EngineError(
                    .poisoned,
                    "a checkpoint failed while it was written; every commit is on disk "
                        + "(\(error.description))",
                    cause: error
                )
            }
            pages.keepNodes()
            writer.checkpointed(as: clean)
            _ = published.withLock { $0.show(clean, isDurable: true) }
            report = CheckpointReport(clean.number, pages, isInBackground: false)
        } catch {
            throw giveUp(&writer, backTo: mark, error)
        }
        counters.checkpoints.add(1, ordering: .relaxed)
        return report
    }

    /// Appends the pages that are not in the file yet and a CKPT frame for the pending state.
    ///
    /// - Parameter known: changed nodes that were written before, and where. The caller keeps them
    ///   alive.
    func appendCheckpoint(
        known: [ObjectIdentifier: PageAddress],
        leaving reserve: UInt64,
        _ writer: inout WriterState
    ) throws(EngineError) -> (clean: StoreState, pages: PageWriter) {
        let state = try sweepDropped(writer.pending, &writer)
        var pages = PageWriter(
            commit: state.number,
            nodes: state.generation.nodes,
            flushBytes: options.earlyWriteBytes,
            known: known,
            reserve: reserve
        )
        var clean = try pages.write(state, to: &writer.log)
        clean.liveBytes = state.liveBytes(withPages: pages.pageBytes)
        var body = ByteWriter(capacity: 1024)
        TreeRoots.append(PageWriter.roots(of: clean), to: &body)
        try writer.log.handLargeBody(leaving: reserve)
        let placed = writer.log.appendCommit(
            .checkpoint,
            flags: [],
            record: stateRecord(clean, writer),
            body: body.bytes
        )
        clean.becomeBase(at: placed.offset, liveBytes: clean.liveBytes)
        writer.wroteBehindItsEnd()
        return (clean, pages)
    }

    /// Makes what was handed over durable: `.relaxed` commits. Called with nothing on its way.
    ///
    /// - Throws: `poisoned`.
    func syncHanded(_ writer: inout WriterState) throws(EngineError) {
        guard writer.log.handedEnd > writer.log.durableEnd else { return }
        do throws(IOError) { try writer.log.sync() } catch {
            throw poison(&writer, EngineError(.ioFailed, error.description, cause: error))
        }
        published.withLock { $0.becomeDurable() }
    }

    /// Checkpoint, CLOSE frame, sync, and no zeros after the log. On a full disk no checkpoint,
    /// and the zeros stay: they are what deletes will need after the next opening.
    func closeCleanly(_ writer: inout WriterState) throws(EngineError) {
        try sweepOrphans(&writer)
        // A snapshot that has gone since may have kept dropped ones from the last checkpoint.
        if try hasSweepable(writer.pending) { writer.wantCheckpoint() }
        // IDs that were handed out without a commit must be known to the next opening.
        guard
            writer.needsCheckpoint || writer.logEnd != .closed
                || objectIDHighWater > writer.recordedHighWater
        else { return }
        do throws(EngineError) {
            try checkpoint(&writer, leaving: options.maintenanceReserve)
        } catch {
            // It only makes the next opening shorter.
            guard error.code == .noSpace, writer.isOpen else { throw error }
        }
        try syncHanded(&writer)
        let state = published.withLock { $0.state }
        // No zeros for it: what is not written yet is cut off right after.
        writer.log.appendCommit(.close, flags: [], record: stateRecord(state, writer), body: [])
        writer.log.room.pass(writer.log.end)
        do throws(IOError) {
            try writer.log.flush()
            try writer.log.sync()
            if !writer.log.room.isFull { try writer.log.cutZeros() }
            try writer.generation.file.syncAll()
        } catch {
            // Every commit is durable already; only the shortcut for the next opening is lost.
            throw .io(error)
        }
        writer.closedCleanly()
    }

    /// After a while without commits: the newest one gets a witness, so that damage to it is told
    /// from a write that never happened, and the next opening finds nothing in doubt.
    func witness(_ writer: inout WriterState) throws(EngineError) {
        guard writer.isOpen, writer.logEnd == .open else { return }
        try syncHanded(&writer)
        // IDs go on being handed out after a witness and leave no trace: a crash passes over them.
        try appendWitness(&writer, objectIDs: objectIDHighWater + Self.objectIDJump)
    }

    /// A CLOSE, synced. Everything before it is.
    ///
    /// - Parameter highWater: an opening after it hands out IDs from here on.
    func appendWitness(
        _ writer: inout WriterState,
        objectIDs highWater: UInt64
    ) throws(EngineError) {
        let mark = writer.log.mark
        var record = stateRecord(writer.pending, writer)
        record.objectIDHighWater = Self.toldHighWater(highWater)
        writer.log.appendCommit(.close, flags: [], record: record, body: [])
        do throws(EngineError) {
            try writer.log.makeRoom(leaving: 0)
            do throws(IOError) { try writer.log.flush() } catch { throw .io(error) }
        } catch {
            throw giveUp(&writer, backTo: mark, error)
        }
        do throws(IOError) { try writer.log.sync() } catch {
            throw poison(&writer, EngineError(.ioFailed, error.description, cause: error))
        }
        writer.witnessed()
        counters.witnesses.add(1, ordering: .relaxed)
    }

    private func stateRecord(
        _ state: StoreState,
        _ writer: borrowing WriterState
    ) -> CommitRecord {
        var record = CommitRecord()
        record.number = state.number
        record.epoch = writer.epoch
        record.clockMicroseconds = options.environment.wallClockMicroseconds()
        record.liveBytes = state.liveBytes
        record.objectIDHighWater = objectIDHighWater
        record.schemaVersion = state.schemaVersion
        return record
    }
}

extension CheckpointReport {
    init(_ commit: CommitNumber, _ pages: borrowing PageWriter, isInBackground: Bool) {
        self.init(
            commit: commit,
            pages: pages.written.count + pages.known.count,
            pageBytes: pages.pageBytes,
            isInBackground: isInBackground
        )
    }
}
