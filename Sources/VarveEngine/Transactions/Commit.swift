// THE COMMIT PATH: from changes in memory to a durable, visible commit.
//
// Invariants
// - Nobody sees a commit before the sync that makes it durable returned.
// - Until `write` hands over the first byte, every failure leaves the store as it was.
// - From then on a failure means: outcome unknown, engine poisoned, no retry.
// - What recovery checks after the read is checked here before the write.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Makes the changes of `transaction` durable and visible.
    func commit(
        _ transaction: WriteTransaction,
        author: String,
        _ writer: inout WriterState
    ) throws(EngineError) {
        let before = writer.log
        let changes: CommitChanges
        let state: StoreState
        var pages: PageWriter?
        do throws(EngineError) {
            // 1. chooseForm: row changes, or pages when there are many or a checkpoint is overdue.
            let isTree =
                transaction.needsTree || transaction.editor.hasUnloggedValues
                || writer.log.tailBytes > checkpointTail(writer) * 2
            // 2. placeValues: large values and small blobs become VALUE frames of the body.
            let places = try placeValues(of: transaction, &writer)
            // 3. encode: the commit frame, behind its body, in one buffer.
            var record = self.record(for: transaction, author: author, writer)
            changes = CommitChanges(
                number: transaction.number,
                author: record.author,
                timeMicroseconds: record.clockMicroseconds,
                objects: try transaction.changedObjects(),
                schemaChanged: transaction.schemaChanged
            )
            record.entityCounts = Self.counts(of: changes.objects)
            if isTree {
                (state, pages) = try encodeTree(transaction, record, changes, &writer)
            } else {
                state = encodeDelta(transaction, record, places, &writer)
            }
            // 4. room: zeros written and synced ahead; the last place for "no space".
            try writer.log.makeRoom()
        } catch {
            throw giveUp(&writer, backTo: before, error)
        }
        do throws(IOError) {
            // 5. write: one write for the whole batch.
            options.environment.yield("commit.write")
            try writer.log.flush()
            // 6. sync: one sync makes it durable.
            options.environment.yield("commit.sync")
            try writer.log.sync()
        } catch {
            throw poison(
                &writer,
                .outcomeUnknown,
                "commit \(transaction.number.rawValue) may or may not be on disk; "
                    + "open the store again to find out",
                error
            )
        }
        pages?.keepNodes()
        // 7. publish: caches learn what changed, then readers may see it.
        options.environment.yield("commit.publish")
        delegate.willPublish(changes)
        published.withLock { $0.state = state }
        delegate.didPublish(changes)
        // 8. count and arrange: a checkpoint when the tail has grown long.
        writer.isDirty = true
        writer.isClosedCleanly = false
        if pages == nil {
            counters.deltaCommits.add(1, ordering: .relaxed)
        } else {
            counters.treeCommits.add(1, ordering: .relaxed)
        }
        if pages == nil && writer.log.tailBytes > checkpointTail(writer) {
            // The commit stands whatever happens here; a failure shows at the next write.
            try? checkpoint(&writer)
        }
    }

    /// Log bytes behind a checkpoint that call for the next one.
    func checkpointTail(_ writer: borrowing WriterState) -> UInt64 {
        min(max(writer.liveBytes / 8, options.checkpointTailMin), options.checkpointTailMax)
    }

    // MARK: Steps

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
            switch try blobStore.content(of: reference) {
            case .file:
                blobPlaces[reference] = .file
                places.append(.blobFile(reference))
            case .bytes(let bytes):
                let header = ValueHeader(
                    entity: ValueHeader.blobEntity,
                    column: ColumnID(0),
                    object: ObjectID(reference.digest.words.0),
                    commit: transaction.number
                )
                let place = try append(header, bytes, &writer)
                blobPlaces[reference] = .frame(place)
                places.append(.blobFrame(reference, place))
            }
        }
        // The names of new files must be durable before the commit that relies on them.
        if blobPlaces.values.contains(.file) {
            try blobStore.engineError { () throws(BlobError) in try blobStore.files.publish() }
        }
        try editor.settleBlobs(places: blobPlaces)
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
            do throws(IOError) { try writer.log.flush() } catch { throw .io(error) }
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
        record.liveBytes = writer.liveBytes
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
    ) -> StoreState {
        var body = ByteWriter(capacity: transaction.operations.count + 16)
        DeltaOps.append(places: places, to: &body)
        body.varint(transaction.operationCount)
        body.raw(transaction.operations.bytes)
        writer.log.appendCommit(.delta, flags: .carriesChanges, record: record, body: body.bytes)
        return transaction.editor.finished()
    }

    private func encodeTree(
        _ transaction: WriteTransaction,
        _ record: CommitRecord,
        _ changes: CommitChanges,
        _ writer: inout WriterState
    ) throws(EngineError) -> (StoreState, PageWriter) {
        var pages = PageWriter(
            commit: transaction.number,
            nodes: nodes,
            flushBytes: options.earlyWriteBytes
        )
        let state = try pages.write(transaction.editor.finished(), to: &writer.log)
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
        record.liveBytes += pages.pageBytes
        writer.liveBytes = record.liveBytes
        record.operationCount = UInt32(clamping: objects)
        writer.log.appendCommit(.tree, flags: .carriesChanges, record: record, body: body.bytes)
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

    // MARK: Failure

    /// Before the commit frame was written: the store is as it was. Bytes of a body that were
    /// handed over already become a void.
    func giveUp(
        _ writer: inout WriterState,
        backTo before: LogWriter,
        _ error: EngineError
    ) -> EngineError {
        writer.log.abandon(backTo: before)
        return error
    }

    /// After bytes of a commit frame were handed over: whether it is on disk is not known.
    func poison(
        _ writer: inout WriterState,
        _ code: EngineError.Code,
        _ message: String,
        _ cause: IOError
    ) -> EngineError {
        let error = EngineError(code, "\(message) (\(cause.description))", cause: cause)
        writer.status = .poisoned(error)
        return error
    }
}
