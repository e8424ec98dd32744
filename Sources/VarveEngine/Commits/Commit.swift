// THE COMMIT PATH: from changes in memory to a durable, visible commit.
//
// Steps 1 to 4 run under the writer lock, one saver at a time (`enqueue`). Steps 5 to 7 are done
// for all savers that wait by one of them, the leader (`lead`): the writer lock is held for 5 only,
// so the next savers apply their changes while the disk works.
//
// Invariants
// - Nobody sees a commit before the sync that makes it durable returned (`.relaxed` ones: before
//   the system has it).
// - Until bytes of a commit frame are handed over, every failure leaves the store as it was.
// - From then on a failure means: outcome unknown, engine poisoned, no retry. A commit that stands
//   on the state of a failed one fails with it, and nothing of it was written.
// - What a state names can be read: a transaction begins only when every page and value of the
//   commits before it is handed over.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// A batch that was handed to the system.
    struct Batch {
        var commits: [QueuedCommit] = []
        var end: FileOffset
        var file: any StoreFile
        var progress: LogProgress
        /// Refused, or failed while they were written.
        var outcomes: [(QueuedCommit, QueuedCommit.Outcome)] = []
        var isSynced = false
        /// Who else has the store open, as of the moment when all of it was handed over.
        var company = Company.alone
        var hadTurn = true
        var passesTurn = false
    }

    /// Gives the changes of `transaction` their place in the log, after those that wait.
    func enqueue(
        _ transaction: WriteTransaction,
        author: String,
        durability: Durability,
        _ writer: inout WriterState
    ) throws(EngineError) -> QueuedCommit {
        let mark = writer.log.mark
        do throws(EngineError) {
            // 1. chooseForm: row changes, or pages when there are many or a checkpoint is overdue.
            let form = chooseForm(transaction, writer)
            // 2. placeValues: large values and small blobs become VALUE frames of the body.
            let places = try placeValues(of: transaction, &writer)
            try writer.log.handLargeBody()
            // 3. encode: the commit frame after its body.
            // 4. makeRoom: zeros written and synced ahead. A save that finds no space fails; others
            // in its batch do not.
            var record = self.record(for: transaction, author: author, writer)
            let changes = CommitChanges(
                number: transaction.number,
                author: record.author,
                timeMicroseconds: record.clockMicroseconds,
                objects: try transaction.changedObjects(),
                schemaChanged: transaction.schemaChanged
            )
            record.entityCounts = Self.counts(of: changes.objects)
            let (state, pages) = try encode(transaction, form, record, changes, places, &writer)
            let commit = QueuedCommit(
                epoch: writer.epoch,
                state: state,
                changes: changes,
                pages: pages,
                durability: durability,
                end: writer.log.end
            )
            writer.take(commit)
            queue.add(commit)
            return commit
        } catch {
            throw giveUp(&writer, backTo: mark, error)
        }
    }

    /// Makes everything that waits durable and visible. The caller has the lead and loses it.
    func lead() {
        var batch = writer.withLock { hand(&$0) }
        // After the write: a process that opens the store from now on finds the batch in the log.
        batch.company = company(hasTurn: batch.hadTurn)
        if let failure = sync(&batch) {
            writer.withLock { fail(&batch, failure, &$0) }
        } else {
            publish(&batch)
        }
        if batch.company == .waiting || batch.passesTurn {
            writer.withLock { passTurn(to: batch.company, &$0) }
        }
        endLead(batch.outcomes)
    }

    /// The lead ends. Called with no lock held.
    func endLead(_ outcomes: [(QueuedCommit, QueuedCommit.Outcome)]) {
        while !queue.endLead(outcomes) { writer.withLock { abandonTurn(&$0) } }
    }

    /// Step 5: what waits is handed to the system, in one write.
    func hand(_ writer: inout WriterState) -> Batch {
        var batch = Batch(
            commits: queue.takeAll(),
            end: writer.log.handedEnd,
            file: writer.generation.file,
            progress: writer.log.progress
        )
        (batch.hadTurn, batch.passesTurn) = (writer.hasTurn, writer.passesTurn)
        guard !batch.commits.isEmpty else { return batch }
        do throws(EngineError) {
            try checkWritable(writer)
            precondition(writer.log.hasRoom, "each of them has made its room")
            options.environment.yield(.commitWrite)
            try flush(&writer)
        } catch {
            refuse(&batch, error, &writer)
        }
        batch.end = writer.log.handedEnd
        return batch
    }

    /// Step 6: one sync makes the batch durable, if the store's file is still the store's.
    func sync(_ batch: inout Batch) -> EngineError? {
        guard !batch.commits.isEmpty else { return nil }
        let unsynced = batch.end.rawValue - min(batch.end, batch.progress.durableEnd).rawValue
        if unsynced <= UInt64(options.batchBytesMax), batch.company < .writers,
            batch.commits.allSatisfy({ $0.durability == .relaxed })
        {
            return nil
        }
        options.environment.yield(.commitSync)
        do throws(IOError) {
            let start = options.environment.monotonicNanoseconds()
            try batch.progress.sync(batch.file)
            counters.countSync(
                commits: batch.commits.count,
                nanoseconds: options.environment.monotonicNanoseconds() &- start
            )
        } catch {
            return EngineError(.ioFailed, error.description, cause: error)
        }
        do throws(EngineError) { try checkNamed(batch.file) } catch { return error }
        batch.progress.raise(to: batch.end)
        batch.isSynced = true
        return nil
    }

    /// Step 7: caches learn what changed, then readers may see it; commit by commit.
    func publish(_ batch: inout Batch) {
        let isDurable = batch.isSynced
        for commit in batch.commits {
            commit.pages?.keepNodes()
            if let changes = commit.changes {
                options.environment.yield(.commitPublish)
                delegate.willPublish(changes)
                let isSmall = commit.pages == nil
                _ = published.withLock {
                    $0.show(commit.state, isDurable: isDurable, isSmall: isSmall)
                }
                delegate.didPublish(changes)
                counters.countCommit(isTree: commit.pages != nil, isSynced: isDurable)
            } else {
                _ = published.withLock { $0.show(commit.state, isDurable: isDurable) }
                counters.checkpoints.add(1, ordering: .relaxed)
            }
            batch.outcomes.append((commit, .durable))
        }
        if batch.isSynced, batch.company >= .readers { share(durableEnd: batch.end) }
    }

    /// Log bytes after a checkpoint that call for the next one.
    func checkpointTail(_ writer: borrowing WriterState) -> UInt64 {
        let eighth = writer.pending.liveBytes / 8
        return min(max(eighth, options.checkpointTailMin), options.checkpointTailMax)
    }

    /// The same now: a file that is about to be replaced needs none soon, unless a replay of its
    /// tail would take longer than that of any other.
    func dueTail(_ writer: borrowing WriterState) -> UInt64 {
        let tail = checkpointTail(writer)
        return compaction.isRunning ? max(tail, min(4 * tail, options.checkpointTailMax)) : tail
    }

    // MARK: Steps

    /// What a transaction becomes in the log.
    private enum Form {
        case delta
        case tree
        /// As `tree`, only because a checkpoint is overdue: a DELTA does when there is no space.
        case treeIfSpace
    }

    private func chooseForm(
        _ transaction: WriteTransaction,
        _ writer: borrowing WriterState
    ) -> Form {
        let editor = transaction.editor
        if transaction.needsTree || editor.hasUnloggedValues || editor.hasSpilled { return .tree }
        // On a full disk the tail grows by what is prepared at most: pages would find no room.
        if writer.log.room.isFull { return .delta }
        return writer.log.tailBytes > dueTail(writer) * 2 ? .treeIfSpace : .delta
    }

    /// Steps 3 and 4.
    ///
    /// - Throws: `noSpace` and others: nothing of the commit frame was handed over.
    private func encode(
        _ transaction: WriteTransaction,
        _ form: Form,
        _ record: CommitRecord,
        _ changes: CommitChanges,
        _ places: [NewPlace],
        _ writer: inout WriterState
    ) throws(EngineError) -> (StoreState, PageWriter?) {
        let reserve = transaction.onlyDeletes ? 0 : options.tailReserve
        let (mark, voids) = (writer.log.mark, writer.log.voids)
        if form != .delta {
            do throws(EngineError) {
                let (state, pages) = try encodeTree(transaction, record, changes, &writer)
                try writer.log.makeRoom(leaving: reserve)
                return (state, pages)
            } catch {
                // Values that lie in a void cannot be named.
                let isIntact = writer.log.voids == voids && !writer.log.isBroken
                guard form == .treeIfSpace, error.code == .noSpace, isIntact else { throw error }
                writer.log.rollback(to: mark)
            }
        }
        let state = try encodeDelta(transaction, record, places, &writer)
        try writer.log.makeRoom(leaving: reserve)
        return (state, nil)
    }

    private func placeValues(
        of transaction: WriteTransaction,
        _ writer: inout WriterState
    ) throws(EngineError) -> [NewPlace] {
        var places: [NewPlace] = []
        let editor = transaction.editor
        for (_, pending) in editor.pendingValues.sorted(by: {
            $0.key.lexicographicallyPrecedes($1.key)
        }) {
            let header = ValueHeader(
                entity: pending.entity,
                column: pending.value.column,
                object: pending.object,
                commit: transaction.number
            )
            let place = try append(header, pending.value.bytes, &writer)
            try editor.place(pending.entity, pending.object, pending.value.column, at: place)
            places.append(
                .largeValue(
                    entity: pending.entity,
                    object: pending.object,
                    column: pending.value.column,
                    place: place
                )
            )
        }
        var blobPlaces: [BlobReference: BlobEntry.Place] = [:]
        for reference in try editor.blobsWithoutPlace() {
            guard let bytes = try blobStore.bytes(of: reference) else {
                blobPlaces[reference] = .file
                places.append(.blobFile(reference))
                continue
            }
            let header = ValueHeader(of: reference, commit: transaction.number)
            let place = try append(header, bytes, &writer)
            blobPlaces[reference] = .frame(place)
            places.append(.blobFrame(reference, place))
        }
        // The names of new files must be durable before the commit that relies on them.
        if blobPlaces.values.contains(.file) {
            try blobStore.engineError { () throws(BlobError) in try blobStore.files.publish() }
        }
        try editor.applyDeferredBlobs(places: blobPlaces)
        return places
    }

    private func append(
        _ header: ValueHeader,
        _ bytes: [UInt8],
        _ writer: inout WriterState
    ) throws(EngineError) -> ValuePlace {
        guard bytes.count <= EngineOptions.valueBytesMax else {
            throw EngineError(
                .limitExceeded,
                "a value has \(bytes.count) bytes, the limit is \(EngineOptions.valueBytesMax)"
            )
        }
        let address = writer.log.appendBody(
            .value,
            front: header.encoded(),
            body: bytes,
            compresses: bytes.count >= 256
        )
        if writer.log.bufferedBytes > options.earlyWriteBytes {
            try writer.log.makeRoom()
            try flush(&writer)
        }
        return ValuePlace(address: address, length: UInt64(bytes.count))
    }

    private func record(
        for transaction: WriteTransaction,
        author: String,
        _ writer: borrowing WriterState
    ) -> CommitRecord {
        var record = CommitRecord()
        record.number = transaction.number
        record.epoch = writer.epoch
        record.clockMicroseconds = options.environment.wallClockMicroseconds()
        record.liveBytes = writer.pending.liveBytes
        record.objectIDHighWater = objectIDHighWater
        record.schemaVersion = transaction.editor.schemaVersion
        record.operationCount = UInt32(clamping: transaction.operationCount)
        var label = author
        while label.utf8.count > CommitRecord.authorBytesMax { label.removeLast() }
        record.author = label
        return record
    }

    private func encodeDelta(
        _ transaction: WriteTransaction,
        _ record: CommitRecord,
        _ places: [NewPlace],
        _ writer: inout WriterState
    ) throws(EngineError) -> StoreState {
        var body = ByteWriter(capacity: transaction.operations.count + 16)
        DeltaOps.append(places: places, to: &body)
        body.varint(transaction.operationCount)
        body.raw(transaction.operations.bytes)
        let placed = writer.log.appendCommit(
            .delta,
            flags: .carriesChanges,
            record: record,
            body: body.bytes
        )
        var state = try transaction.editor.finished()
        state.frame = placed.offset
        return state
    }

    private func encodeTree(
        _ transaction: WriteTransaction,
        _ record: CommitRecord,
        _ changes: CommitChanges,
        _ writer: inout WriterState
    ) throws(EngineError) -> (StoreState, PageWriter) {
        var pages = PageWriter(
            commit: transaction.number,
            nodes: writer.generation.nodes,
            flushBytes: options.earlyWriteBytes,
            threads: options.encodingThreads
        )
        let changed = try transaction.editor.finished()
        var state = try pages.write(changed, to: &writer.log)
        var body = ByteWriter(capacity: 1024)
        TreeRoots.append(PageWriter.roots(of: state), to: &body)
        ChangedObjects.append(changes.objects, to: &body)
        // The number of changed objects bounds the list for its reader.
        let objects = changes.objects.reduce(0) { $0 + $1.objects.count }
        guard body.count < FrameKind.tree.payloadBytesMax / 2,
            objects <= Int(ChangedObjects.objectsMax)
        else {
            throw EngineError(.limitExceeded, "a transaction changes too many objects")
        }
        var record = record
        record.liveBytes = changed.liveBytes(
            withPages: pages.pageBytes,
            transaction.editor.changedNodes
        )
        record.operationCount = UInt32(clamping: objects)
        try writer.log.handLargeBody()
        let placed = writer.log.appendCommit(
            .tree,
            flags: .carriesChanges,
            record: record,
            body: body.bytes
        )
        state.becomeBase(at: placed.offset, liveBytes: record.liveBytes)
        return (state, pages)
    }

    private static func counts(of objects: [ChangedObjects]) -> [CommitRecord.EntityCounts] {
        var counts: [CommitRecord.EntityCounts] = []
        for list in objects {
            if counts.last?.entity != list.entity {
                counts.append(
                    CommitRecord.EntityCounts(
                        entity: list.entity,
                        added: 0,
                        changed: 0,
                        deleted: 0
                    )
                )
            }
            let number = UInt64(list.objects.count)
            switch list.kind {
            case .inserted: counts[counts.count - 1].added = number
            case .updated: counts[counts.count - 1].changed = number
            case .deleted: counts[counts.count - 1].deleted = number
            }
        }
        return counts
    }

    /// Hands the buffer over. A write that failed is told apart by `log.isBroken`.
    private func flush(_ writer: inout WriterState) throws(EngineError) {
        do throws(IOError) { try writer.log.flush() } catch { throw .io(error) }
    }
}
