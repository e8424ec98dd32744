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
    /// `body` should be short: what is evicted from memory meanwhile is freed only behind it.
    /// - Complexity: O(log n); no allocation where the row's page is in memory.
    /// - Returns: false when there is no such row.
    public func withRow(
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ body: (CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Void
    ) throws(RecordError) -> Bool {
        var failure: RecordError?
        let found: Bool?
        do throws(EngineError) {
            found = try storage.withRowInMemory(entity.tree, id) { version, row in
                failure = Self.lend(version, row, body)
            }
        } catch {
            throw .engine(error)
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
            let bytes = cached.view.bytes
            if let failure = Self.lend(cached.version, bytes.span, body) { throw failure }
            return true
        }
        var failure: RecordError?
        let found: Bool
        do throws(EngineError) {
            found = try storage.withRow(entity.tree, id) { version, row in
                failure = Self.lend(version, row, body)
            }
        } catch {
            throw .engine(error)
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

    /// Lends all rows of an entity to `body`, ascending by ID, until it says false.
    ///
    /// - Complexity: O(rows).
    public func forEachRow(
        _ entity: RecordEntity,
        _ body: (ObjectID, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) {
        var failure: RecordError?
        var count = 0
        do throws(EngineError) {
            var cursor = storage.cursor(entity.tree)
            guard try cursor.first() else { return }
            try cursor.visitRows { id, version, row in
                count += 1
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
    /// Rows are gathered in chunks: a chunk's IDs are sorted, its rows read in one pass that visits
    /// each page once and copies them into one block, and lent in the order of the request. Chunks
    /// begin small and grow to `chunkBytesMax`.
    ///
    /// - Complexity: that of `fetchIDs`, and O(rows).
    public func forEachRow(
        of query: RecordQuery,
        _ body: (ObjectID, CommitNumber, RowLayout, Span<UInt8>) throws(RecordError) -> Bool
    ) throws(RecordError) {
        let ids = try fetchIDs(query)
        let entity = try entity(query.entity)
        var chunk = RowChunk()
        var start = 0
        var length = Self.chunkRowsAtFirst
        while start < ids.count {
            let end = min(ids.count, start + length)
            do throws(EngineError) {
                try chunk.read(ids[start..<end], of: entity.tree, storage)
            } catch {
                throw .engine(error)
            }
            countReads(chunk.count)
            for place in 0..<(end - start) {
                guard let (version, range) = chunk.row(place) else { continue }
                let row = chunk.bytes.span.extracting(range)
                let layout: RowLayout
                do throws(FormatError) { layout = try RowLayout(row) } catch {
                    throw .format(error)
                }
                if try !body(ids[start + place], version, layout, row) { return }
            }
            start = end
            length = chunk.nextLength(bytesMax: Self.chunkBytesMax)
        }
    }

    private static var chunkRowsAtFirst: Int { 256 }
    /// Bytes of rows that a chunk holds at most, by the size of the rows before.
    public static var chunkBytesMax: Int { 16 << 20 }
}

/// Object IDs in ascending order, with their places in the list that they come from.
struct SortedPlaces {
    /// Ascending.
    let ids: [ObjectID]
    /// nil: the list ascended.
    private let places: [UInt32]?

    init(_ list: [ObjectID]) {
        self.init(list[...])
    }

    init(_ list: ArraySlice<ObjectID>) {
        let span = list.span
        var low = UInt64.max
        var high: UInt64 = 0
        var ascends = true
        for index in 0..<span.count {
            let id = span[index].rawValue
            if id < high { ascends = false }
            low = min(low, id)
            high = max(high, id)
        }
        precondition(span.count <= Int(UInt32.max), "a list of at most 2^32 IDs")
        if ascends {
            ids = Array(list)
            places = nil
            return
        }
        let bits = 64 - (high - low).leadingZeroBitCount
        if bits <= 40 && span.count < 1 << 24 {
            (ids, places) = Self.radixSorted(span, low, bits)
        } else {
            let order = (0..<span.count).sorted { span[$0] < span[$1] }
            ids = order.map { span[$0] }
            places = order.map { UInt32($0) }
        }
    }

    /// Where an ID stands in the list.
    @inline(__always)
    func place(_ index: Int) -> Int { places.map { Int($0[index]) } ?? index }

    /// ID and place in one word, sorted by as many bits as the IDs differ in, 11 at a time.
    private static func radixSorted(
        _ list: Span<ObjectID>,
        _ low: UInt64,
        _ bits: Int
    ) -> (ids: [ObjectID], places: [UInt32]) {
        var words = [UInt64](repeating: 0, count: list.count)
        var other = words
        for index in 0..<list.count {
            words[index] = (list[index].rawValue - low) << 24 | UInt64(index)
        }
        var shift = 24
        while shift < 24 + bits {
            var starts = [Int](repeating: 0, count: 2048)
            for word in words { starts[Int((word >> UInt64(shift)) & 2047)] += 1 }
            var sum = 0
            for digit in 0..<2048 {
                let count = starts[digit]
                starts[digit] = sum
                sum += count
            }
            for word in words {
                let digit = Int((word >> UInt64(shift)) & 2047)
                other[starts[digit]] = word
                starts[digit] += 1
            }
            swap(&words, &other)
            shift += 11
        }
        return (
            words.map { ObjectID(($0 >> 24) + low) },
            words.map { UInt32(truncatingIfNeeded: $0 & 0xFF_FFFF) }
        )
    }
}

/// Rows of a chunk of IDs, one behind another in one block.
private struct RowChunk {
    private struct Place {
        var start = 0
        var length: UInt32 = 0
        var version = CommitNumber(0)
    }

    private var places: [Place] = []
    private var writer = ByteWriter()
    /// Rows that were found.
    private(set) var count = 0

    var bytes: [UInt8] { writer.bytes }

    /// Reads the rows of IDs in any order.
    mutating func read(
        _ ids: ArraySlice<ObjectID>,
        of tree: TreeID,
        _ storage: Snapshot
    ) throws(EngineError) {
        places.removeAll(keepingCapacity: true)
        places.append(contentsOf: repeatElement(Place(), count: ids.count))
        writer.bytes.removeAll(keepingCapacity: true)
        count = 0
        let order = SortedPlaces(ids)
        try storage.withRows(tree, order.ids) { index, version, row in
            places[order.place(index)] = Place(
                start: writer.count + 1,
                length: UInt32(row.count),
                version: version
            )
            writer.raw(row, 0..<row.count)
            count += 1
            return true
        }
    }

    /// The row at a place, as a range of `bytes`; nil where there is none.
    func row(_ place: Int) -> (version: CommitNumber, range: Range<Int>)? {
        let found = places[place]
        // The start is one more than it is, so that 0 says: no row.
        if found.start == 0 { return nil }
        let start = found.start - 1
        return (found.version, start..<start + Int(found.length))
    }

    /// IDs of the next chunk: four times as many, as long as rows like these fit.
    func nextLength(bytesMax: Int) -> Int {
        let perRow = max(1, bytes.count / max(1, count)) + MemoryLayout<Place>.stride + 16
        return max(1, min(4 * places.count, bytesMax / perRow))
    }
}
