// Rows of many IDs: read in the order of IDs, each page once; given back in the order of a list.
//
// Invariants
// - A chunk's rows lie in a few blocks of memory, which go with the next chunk.

import VarveBase
import VarveEngine
import VarveFormat

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
        if bits <= 40 && span.count <= Self.comparedMax {
            // A pass over digits looks at 2,048 counters, however short the list is.
            var words = Self.words(span, low)
            words.sort()
            (ids, places) = Self.taken(words, low)
        } else if bits <= 40 && span.count < 1 << 24 {
            (ids, places) = Self.radixSorted(span, low, bits)
        } else {
            let order = (0..<span.count).sorted { span[$0] < span[$1] }
            ids = order.map { span[$0] }
            places = order.map { UInt32($0) }
        }
    }

    /// So many IDs are sorted by comparing them.
    private static let comparedMax = 256

    /// Where an ID stands in the list.
    @inline(__always)
    func place(_ index: Int) -> Int { places.map { Int($0[index]) } ?? index }

    /// ID and place in one word, sorted by as many bits as the IDs differ in, 11 at a time.
    private static func radixSorted(
        _ list: Span<ObjectID>,
        _ low: UInt64,
        _ bits: Int
    ) -> (ids: [ObjectID], places: [UInt32]) {
        var words = words(list, low)
        var other = words
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
        return taken(words, low)
    }

    private static func words(_ list: Span<ObjectID>, _ low: UInt64) -> [UInt64] {
        var words: [UInt64] = []
        words.reserveCapacity(list.count)
        for index in 0..<list.count {
            words.append((list[index].rawValue - low) << 24 | UInt64(index))
        }
        return words
    }

    private static func taken(
        _ words: [UInt64],
        _ low: UInt64
    ) -> (ids: [ObjectID], places: [UInt32]) {
        (
            words.map { ObjectID(($0 >> 24) + low) },
            words.map { UInt32(truncatingIfNeeded: $0 & 0xFF_FFFF) }
        )
    }
}

/// Rows of a chunk of IDs, found by their places in it.
struct RowChunk {
    /// IDs of the first chunk: enough to learn how large rows are.
    static let rowsAtFirst = 256

    /// All of a row, so that lending one looks at nothing else first.
    private struct Place {
        var version: CommitNumber
        var start: Int
        var count: UInt32
        /// Number of the block, and 1; 0: no row.
        var block: UInt32
    }

    private var places: [Place] = []
    private var blocks: [[UInt8]] = []
    /// Rows that were found.
    private(set) var count = 0
    private var byteCount = 0

    /// Reads the rows of IDs in any order.
    mutating func read(
        _ ids: ArraySlice<ObjectID>,
        of tree: TreeID,
        _ storage: Snapshot
    ) throws(EngineError) {
        blocks = []
        let order = SortedPlaces(ids)
        take(try storage.rowBlocks(tree, order.ids), order)
    }

    /// The same, unless the rows have more than `bytesMax` bytes: then false, and none is here.
    mutating func read(
        _ ids: ArraySlice<ObjectID>,
        of tree: TreeID,
        _ storage: Snapshot,
        bytesMax: Int
    ) throws(EngineError) -> Bool {
        blocks = []
        let order = SortedPlaces(ids)
        let read = try storage.rowBlocks(tree, order.ids, bytesMax: bytesMax)
        take(read ?? [], order)
        return read != nil
    }

    private mutating func take(_ read: [RowBlock], _ order: SortedPlaces) {
        blocks = read.map(\.bytes)
        places.removeAll(keepingCapacity: true)
        places.reserveCapacity(order.ids.count)
        let none = Place(version: CommitNumber(0), start: 0, count: 0, block: 0)
        places.append(contentsOf: repeatElement(none, count: order.ids.count))
        (count, byteCount) = (0, 0)
        for (number, block) in read.enumerated() {
            count += block.rows.count
            byteCount += block.bytes.count
            for row in block.rows {
                places[order.place(row.position)] = Place(
                    version: row.version,
                    start: row.start,
                    count: UInt32(row.count),
                    block: UInt32(number + 1)
                )
            }
        }
    }

    /// Asks for the memory of a row that will be lent soon, if there is one.
    @inline(__always)
    func foresee(_ place: Int) {
        if place >= places.count { return }
        let found = places[place]
        if found.block == 0 { return }
        let bytes = blocks[Int(found.block) - 1]
        let range = found.start..<found.start + Int(found.count)
        ComingMemory.foresee(bytes.span.extracting(range))
    }

    /// Lends the row at a place; nil where there is none.
    @inline(__always)
    func withRow<R, Failure: Error>(
        _ place: Int,
        _ body: (CommitNumber, Span<UInt8>) throws(Failure) -> R
    ) throws(Failure) -> R? {
        let found = places[place]
        if found.block == 0 { return nil }
        let bytes = blocks[Int(found.block) - 1]
        let range = found.start..<found.start + Int(found.count)
        return try body(found.version, bytes.span.extracting(range))
    }

    /// What a row weighs beside its bytes.
    static let weightPerRow = MemoryLayout<Place>.stride

    /// Bytes of memory.
    var weight: Int {
        blocks.reduce(places.capacity * MemoryLayout<Place>.stride) { $0 + $1.capacity }
    }

    /// How many rows like these fit so many bytes, with what finding them costs; at least one.
    func rowsMax(bytes: Int) -> Int {
        let perRow = max(1, byteCount / max(1, count)) + Self.weightPerRow + 16
        return max(1, bytes / perRow)
    }
}
