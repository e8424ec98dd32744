// Keys of a sort in memory: all bytes in one block, one small entry per object.
//
// Invariants
// - No two keys are equal: each ends with its object's ID.
// - The first eight bytes stand in the entry and end most comparisons.
// - With `keep`, the block and the entries hold at most twice that many keys, whatever is added:
//   what cannot be among the first ones is dropped at once.

import VarveBase
import VarveFormat

/// Collects keys, sorts them, gives back object IDs.
struct SortKeys {
    private struct Entry {
        let head: UInt64
        var start: Int
        var end: Int
        let object: ObjectID
    }

    /// The keys, one after the other. The next one is appended, then `close` is called.
    var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// Only so many are asked for; nil: all.
    private let keep: Int?
    /// Whether the last ones are asked for rather than the first.
    private let fromEnd: Bool
    /// Keys of the places between which objects count.
    private let after: [UInt8]?
    private let before: [UInt8]?
    /// The last key that was kept when there were too many: what does not precede it is of no use.
    private var bound: [UInt8]?

    /// More keys than this are never kept only to sort less often.
    private static let keptMin = 32

    init(keep: Int?, fromEnd: Bool, after: [UInt8]?, before: [UInt8]?) {
        // Where nearly all fits in there is nothing to drop.
        self.keep = keep.flatMap { $0 < 1 << 30 ? max($0, Self.keptMin) : nil }
        self.fromEnd = fromEnd
        self.after = after
        self.before = before
    }

    /// Ends the key that begins at `start`, or drops it.
    mutating func close(from start: Int, _ object: ObjectID) {
        let key = start..<bytes.count
        if isDropped(key) {
            bytes.removeSubrange(key)
            return
        }
        entries.append(
            Entry(head: Self.head(bytes, start), start: start, end: bytes.count, object: object)
        )
        if let keep, entries.count >= 2 * keep { cut(to: keep) }
    }

    /// Drops the key that begins at `start`, if what there is of it says already that it comes too
    /// late: then its other terms need not be read.
    mutating func drops(from start: Int) -> Bool {
        guard let bound else { return false }
        let end = min(bytes.count, start + bound.count)
        let order = ByteReader.compare(bytes, start..<end, bound, 0..<(end - start))
        guard fromEnd ? order < 0 : order > 0 else { return false }
        bytes.removeSubrange(start...)
        return true
    }

    private func isDropped(_ key: Range<Int>) -> Bool {
        if let bound {
            let order = compare(key, bound)
            if fromEnd ? order < 0 : order > 0 { return true }
        }
        if let after, compare(key, after) <= 0 { return true }
        if let before, compare(key, before) >= 0 { return true }
        return false
    }

    /// Keeps the keys that are asked for only, and packs their bytes.
    private mutating func cut(to keep: Int) {
        sort()
        if fromEnd {
            entries.removeFirst(entries.count - keep)
        } else {
            entries.removeLast(entries.count - keep)
        }
        var packed: [UInt8] = []
        packed.reserveCapacity(entries.reduce(0) { $0 + $1.end - $1.start } * 2)
        for index in entries.indices {
            let start = packed.count
            packed += bytes[entries[index].start..<entries[index].end]
            entries[index].start = start
            entries[index].end = packed.count
        }
        bytes = packed
        if let last = fromEnd ? entries.first : entries.last {
            bound = Array(bytes[last.start..<last.end])
        }
    }

    /// The first eight bytes as a number.
    /// A key has at least eight bytes, because an object ID ends it.
    private static func head(_ bytes: [UInt8], _ start: Int) -> UInt64 {
        var head: UInt64 = 0
        var index = start
        let end = min(bytes.count, start + 8)
        while index < end {
            head = head << 8 | UInt64(bytes[index])
            index += 1
        }
        return head
    }

    private mutating func sort() {
        entries.sort { [bytes] left, right in
            if left.head != right.head { return left.head < right.head }
            return ByteReader.compare(
                bytes,
                left.start..<left.end,
                bytes,
                right.start..<right.end
            ) < 0
        }
    }

    /// The objects in order: all of them, or at least as many as are asked for.
    consuming func sortedIDs() -> [ObjectID] {
        sort()
        return entries.map(\.object)
    }

    private func compare(_ range: Range<Int>, _ key: [UInt8]) -> Int {
        ByteReader.compare(bytes, range, key, 0..<key.count)
    }
}
