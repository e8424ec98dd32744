// Rows read where they lie: lent to a closure, neither copied nor cached.
//
// Invariants
// - What is lent is the row at the snapshot's commit, checked once (`RowLayout`); it is gone when
//   the closure returns.
// - The row cache is asked where it saves a read of the file, and never filled: who reads rows this
//   way reads them once.
// - Nothing is allocated per row.

public import VarveBase
import VarveEngine
public import VarveFormat

extension RecordSnapshot {
    /// Lends one row to `body`.
    ///
    /// `body` should be short: what is evicted from memory meanwhile is freed only after it.
    /// - Complexity: O(log n); no allocation where the row's page is in memory.
    /// - Returns: false when there is no such row.
    public func withRow(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ body: (CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Void
    ) throws(RecordError) -> Bool {
        var failure: RecordError?
        let found = try RecordError.ofEngine { () throws(EngineError) in
            try storage.withRowInMemory(entity.tree, id) { version, row in
                failure = Self.lend(version, row, body)
            }
        }
        if let failure { throw failure }
        if let found { return found }
        return try withStoredRow(entity, id, body)
    }

    /// The way to a row whose page is not in memory.
    @inline(never)
    private func withStoredRow(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ body: (CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Void
    ) throws(RecordError) -> Bool {
        if let cached = cachedRow(entity.id, id) {
            try cached.withRow { layout, row throws(RecordError) in
                try body(cached.version, layout, row)
            }
            return true
        }
        var failure: RecordError?
        let found = try RecordError.ofEngine { () throws(EngineError) in
            try storage.withRow(entity.tree, id) { version, row in
                failure = Self.lend(version, row, body)
            }
        }
        countReads(found ? 1 : 0)
        if let failure { throw failure }
        return found
    }

    @inline(__always)
    private static func lend(
        _ version: CommitNumber,
        _ row: Span<UInt8>,
        _ body: (CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Void
    ) -> RecordError? {
        let layout: RowLayout
        do throws(FormatError) { layout = try RowLayout(row) } catch { return .format(error) }
        do throws(RecordError) { try body(version, layout, row) } catch { return error }
        return nil
    }

    /// Lends all rows of an entity to `body`, ascending by ID, until it says false. They may have
    /// no more than some columns; others read as if they were not stored.
    ///
    /// - Complexity: O(rows).
    public func forEachRow(
        _ entity: RecordEntity,
        reading columns: RowColumns = .all,
        _ body: (ObjectID, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) {
        var failure: RecordError?
        var count = 0
        do throws(EngineError) {
            var cursor = storage.cursor(entity.tree)
            guard try cursor.first() else { return }
            try cursor.visitRows(RowReading(columns), &count) { id, version, row, _ in
                var goesOn = false
                failure = Self.lend(version, row) { (version, layout, row) throws(RecordError) in
                    goesOn = try body(id, version, layout, row)
                }
                return goesOn
            }
        } catch {
            throw .engine(error)
        }
        countReads(count)
        if let failure { throw failure }
    }

    /// Lends the rows of IDs to `body` with their positions in `ids`, until it says false. `ids`
    /// may have any order; the rows come ascending by ID, so that each page is read once. Positions
    /// without a row are left out.
    ///
    /// - Complexity: O(IDs); allocates one list of `ids`' length unless `ids` ascends.
    public func withRows(
        _ entity: RecordEntity,
        _ ids: [ObjectID],
        _ body: (Int, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) {
        let order = SortedPlaces(ids)
        var failure: RecordError?
        var count = 0
        do throws(EngineError) {
            try storage.withRows(entity.tree, order.ids) { index, version, row in
                count += 1
                var goesOn = false
                failure = Self.lend(version, row) { (version, layout, row) throws(RecordError) in
                    goesOn = try body(order.place(index), version, layout, row)
                }
                return goesOn
            }
        } catch {
            throw .engine(error)
        }
        countReads(count)
        if let failure { throw failure }
    }

    /// Lends the rows of a request to `body`, in its order, until it says false.
    ///
    /// Rows of a short list are lent one by one while their pages are in memory. Others are
    /// gathered in chunks: a chunk's IDs are sorted, its rows read in one pass that visits each
    /// page once and copies them into one block, and lent in the order of the request. Chunks begin
    /// small and grow to `chunkBytesMax`. `body` should be short, as that of `withRow`.
    ///
    /// A request without order and window whose filter no index answers is one pass over the rows,
    /// which may have no more than some columns then.
    ///
    /// - Complexity: that of `fetchIDs`, and O(rows).
    public func forEachRow(
        of query: RecordQuery,
        reading columns: RowColumns = .all,
        _ body: (ObjectID, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) {
        guard let ids = try reader.scan(query, columns, body) else { return }
        let entity = try entity(query.entity)
        // Rows that were lent count with those of the chunk that goes on with them.
        var (start, lent, goesOn) = (0, 0, true)
        defer { if lent > 0 { countReads(lent) } }
        if ids.count <= RowChunk.rowsAtFirst {
            start = try lendInMemory(entity, ids) { place, version, row throws(RecordError) in
                lent += 1
                goesOn = try Self.taken(ids[place], version, row, body)
                return goesOn
            }
            if !goesOn { return }
        }
        var chunk = RowChunk()
        var length = RowChunk.rowsAtFirst
        while start < ids.count {
            let end = min(ids.count, start + length)
            do throws(EngineError) {
                try chunk.read(ids[start..<end], of: entity.tree, storage)
            } catch {
                throw .engine(error)
            }
            countReads(lent + chunk.count)
            lent = 0
            for place in 0..<min(ComingMemory.rowsAhead, end - start) { chunk.foresee(place) }
            for place in 0..<(end - start) {
                chunk.foresee(place + ComingMemory.rowsAhead)
                let goesOn = try chunk.withRow(place) { version, row throws(RecordError) in
                    try Self.taken(ids[start + place], version, row, body)
                }
                if goesOn == false { return }
            }
            start = end
            // The reader may end soon.
            length = min(4 * length, chunk.rowsMax(bytes: Self.chunkBytesMax))
        }
    }

    @inline(__always)
    private static func taken(
        _ id: ObjectID,
        _ version: CommitNumber,
        _ row: Span<UInt8>,
        _ body: (ObjectID, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) -> Bool {
        let layout: RowLayout
        do throws(FormatError) { layout = try RowLayout(row) } catch { throw .format(error) }
        return try body(id, version, layout, row)
    }

    /// Lends rows in the order of a short list as long as their pages are in memory: nothing is
    /// sorted, copied or allocated. IDs without a row are left out. Ends when `body` says false,
    /// and in front of the first row whose page has to be read: what is left is for a pass that
    /// reads each page once. That is so from the beginning where the IDs ascend: they need no
    /// sorting, and neighbours share a descent.
    ///
    /// - Complexity: O(IDs x depth).
    /// - Returns: how many IDs are done.
    func lendInMemory(
        _ entity: RecordEntity,
        _ ids: [ObjectID],
        _ body: (Int, CommitNumber, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) -> Int {
        var place = 0
        if ids.count > 1, !zip(ids, ids.dropFirst()).contains(where: { $0 > $1 }) { return 0 }
        while place < ids.count {
            var goesOn = true
            var failure: RecordError?
            let found = try RecordError.ofEngine { () throws(EngineError) in
                try storage.withRowInMemory(entity.tree, ids[place]) { version, row in
                    do throws(RecordError) { goesOn = try body(place, version, row) } catch {
                        failure = error
                    }
                }
            }
            if let failure { throw failure }
            if found == nil { break }
            place += 1
            if !goesOn { break }
        }
        return place
    }

    /// Bytes of rows that a chunk holds at most, by the size of the rows before.
    public static var chunkBytesMax: Int { 16 << 20 }
}
