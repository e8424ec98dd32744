// Unproven commits written once more as row changes: the settle of a full disk.
//
// Invariants
// - A settle of pages writes each page that was changed since the newest checkpoint, which may be
//   far more than what is kept for deletes. The row changes themselves were small enough once.
// - It is one DELTA, so that a crash in between leaves all of the commits or the old copies: its
//   changes are those of all, in order, and its number that of the last.
// - It chains to the newest proven commit; what the old copies named is copied.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension LogWriter {
    /// Whether the disk may have room for so many bytes after the log, and a reserve, zeros that
    /// are there included. A write that finds none leaves a void that reaches as far as it was to.
    func mayHold(_ bytes: UInt64, leaving reserve: UInt64) throws(EngineError) -> Bool {
        guard let free = file.freeBytes() else { return true }
        let size = try Engine.io { () throws(IOError) in try file.size() }
        let (needed, isMore) = bytes.addingReportingOverflow(reserve)
        return !isMore && size - min(size, end.rawValue) >= needed - min(needed, free)
    }
}

extension Settle {
    /// What a settle leaves on a full disk: the deletes behind it need room.
    var reserve: UInt64 { options.maintenanceReserve }

    /// Bytes of the commits as they are, at most.
    func bytes(of recovered: RecoveredLog) -> UInt64 {
        bytes(of: recovered.unproven) { $0.end }
    }

    /// About as many bytes as their pages will have: what changed in memory, and what was copied
    /// from their bodies. The pages of a TREE are in its body.
    func pageBytes(of state: StoreState, _ recovered: RecoveredLog) -> UInt64 {
        state.changedPageBytes
            + bytes(of: recovered.unproven) { $0.header.kind == .tree ? $0.end : $0.offset }
    }

    private func bytes(
        of commits: [ScannedCommit],
        upTo end: (ScannedCommit) -> FileOffset
    ) -> UInt64 {
        commits.reduce(0) { sum, commit in
            let (start, end) = (max(commit.record.bodyStart, provenEnd), end(commit))
            return sum + end.rawValue - min(start.rawValue, end.rawValue)
        }
    }

    /// Whether commits can be written so: pages of a TREE have no row changes beside them.
    static func canBeChanges(_ commits: [ScannedCommit]) -> Bool {
        commits.allSatisfy { $0.header.kind == .delta }
    }

    /// Appends and syncs the DELTA. Returns the state with it.
    ///
    /// - Parameters:
    ///   - recovered: with unsettled commits that are all DELTA.
    ///   - state: what they lead to.
    /// - Throws: `noSpace`, `damaged`, `ioFailed`.
    func runAsChanges(
        _ recovered: RecoveredLog,
        to state: StoreState,
        objectIDHighWater: UInt64,
        _ replay: Replay,
        _ log: inout LogWriter
    ) throws(EngineError) -> StoreState {
        var places: [NewPlace] = []
        var operations = ByteWriter()
        var count: UInt64 = 0
        for commit in recovered.unsettled {
            var reader = try decoded { () throws(FormatError) in try Replay.bodyReader(commit) }
            let named = try decoded { () throws(FormatError) in
                try DeltaOps.decodePlaces(&reader, below: commit.offset)
            }
            for place in named { places.append(try moved(place, &log)) }
            count += try decoded { () throws(FormatError) in try reader.varint("operation count") }
            let bytes = try decoded { () throws(FormatError) in
                try reader.bytes(count: reader.remaining, "operations")
            }
            operations.raw(bytes)
        }
        guard let last = recovered.unsettled.last else { return state }
        var body = ByteWriter(capacity: operations.count + 1024)
        DeltaOps.append(places: places, to: &body)
        body.varint(count)
        body.raw(operations.bytes)
        var record = last.record
        record.flags = 0
        record.operationCount = UInt32(clamping: count)
        record.objectIDHighWater = objectIDHighWater
        if recovered.unsettled.count > 1 { record.entityCounts = [] }
        try log.handLargeBody(leaving: reserve)
        let placed = log.appendCommit(
            .delta,
            flags: .carriesChanges,
            record: record,
            body: body.bytes
        )
        try put(&log)
        var settled = try replay.state(of: recovered.base)
        for commit in recovered.replay { settled = try replay.apply(commit, to: settled) }
        let chain = try CommitChain(generation: generation, newest: placed.offset)
        settled = try replay.apply(chain.commit(at: placed.offset), to: settled)
        settled.liveBytes = state.liveBytes
        for tree in Set(state.trees.keys).union(settled.trees.keys)
        where state.trees[tree]?.rows ?? 0 != settled.trees[tree]?.rows ?? 0 {
            throw .damaged("a settle has other entries than its commits", place: placed.offset)
        }
        return settled
    }

    private func moved(
        _ place: NewPlace,
        _ log: inout LogWriter
    ) throws(EngineError) -> NewPlace {
        switch place {
        case .largeValue(let entity, let object, let column, let old):
            return .largeValue(
                entity: entity,
                object: object,
                column: column,
                place: try copy(old, &log)
            )
        case .blobFrame(let reference, let old): return .blobFrame(reference, try copy(old, &log))
        case .blobFile: return place
        }
    }
}
