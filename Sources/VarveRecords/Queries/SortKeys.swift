// Keys of a sort in memory: all bytes in one block, one small entry per object.
//
// Invariants
// - No two keys are equal: each ends with its object's ID.
// - The first eight bytes stand in the entry and end most comparisons.

import VarveBase
import VarveFormat

/// Collects keys, sorts them, gives back object IDs.
struct SortKeys {
    private struct Entry {
        let head: UInt64
        let start: Int
        let end: Int
        let object: ObjectID
    }

    /// The keys, one after the other.
    var bytes: [UInt8] = []
    private var entries: [Entry] = []

    /// Ends the key that begins at `start`.
    mutating func close(from start: Int, _ object: ObjectID) {
        entries.append(
            Entry(head: Self.head(bytes, start), start: start, end: bytes.count, object: object)
        )
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

    /// The objects in order, strictly between two keys.
    func sortedIDs(after: [UInt8]?, before: [UInt8]?) -> [ObjectID] {
        var kept = entries
        if after != nil || before != nil {
            kept.removeAll { entry in
                if let after, compare(entry, after) <= 0 { return true }
                if let before, compare(entry, before) >= 0 { return true }
                return false
            }
        }
        kept.sort { left, right in
            if left.head != right.head { return left.head < right.head }
            return ByteReader.compare(
                bytes,
                left.start..<left.end,
                bytes,
                right.start..<right.end
            ) < 0
        }
        return kept.map(\.object)
    }

    private func compare(_ entry: Entry, _ key: [UInt8]) -> Int {
        ByteReader.compare(bytes, entry.start..<entry.end, key, 0..<key.count)
    }
}
