// Object IDs in an order that changes: a long list in pieces.
//
// Invariants
// - No piece is empty, and none is longer than `lengthMax`.
// - `starts` has the position of each piece's first ID.
// - A copy shares the pieces that neither side changes.

import VarveBase

/// IDs in the order of a list. Changing one costs the piece that it is in and O(pieces).
struct IDChunks {
    private static let lengthMax = 1024

    private var pieces: [[ObjectID]]
    private var starts: [Int]
    private(set) var count: Int

    /// - Complexity: O(IDs).
    init(_ ids: [ObjectID]) {
        count = ids.count
        if ids.count <= Self.lengthMax {
            (pieces, starts) = ids.isEmpty ? ([], []) : ([ids], [0])
            return
        }
        let length = Self.lengthMax / 2
        starts = Array(stride(from: 0, to: ids.count, by: length))
        pieces = starts.map { Array(ids[$0..<min(ids.count, $0 + length)]) }
    }

    /// The piece that holds a position, or the last one.
    private func piece(of index: Int) -> Int {
        starts.firstPlace { $0 > index } - 1
    }

    subscript(index: Int) -> ObjectID {
        precondition(index >= 0 && index < count, "a position of the list")
        let piece = piece(of: index)
        return pieces[piece][index - starts[piece]]
    }

    func ids(_ range: Range<Int>) -> [ObjectID] {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions of the list")
        var ids: [ObjectID] = []
        ids.reserveCapacity(range.count)
        var next = range.lowerBound
        while next < range.upperBound {
            let piece = piece(of: next)
            let end = min(range.upperBound, starts[piece] + pieces[piece].count)
            ids += pieces[piece][next - starts[piece]..<end - starts[piece]]
            next = end
        }
        return ids
    }

    mutating func insert(_ id: ObjectID, at index: Int) {
        precondition(index >= 0 && index <= count, "a position of the list")
        count += 1
        if pieces.isEmpty {
            (pieces, starts) = ([[id]], [0])
            return
        }
        let piece = max(0, piece(of: index))
        pieces[piece].insert(id, at: index - starts[piece])
        for later in pieces.indices.dropFirst(piece + 1) { starts[later] += 1 }
        guard pieces[piece].count > Self.lengthMax else { return }
        let half = pieces[piece].count / 2
        let second = Array(pieces[piece][half...])
        pieces[piece].removeSubrange(half...)
        pieces.insert(second, at: piece + 1)
        starts.insert(starts[piece] + half, at: piece + 1)
    }

    mutating func remove(at index: Int) {
        precondition(index >= 0 && index < count, "a position of the list")
        let piece = piece(of: index)
        pieces[piece].remove(at: index - starts[piece])
        count -= 1
        for later in pieces.indices.dropFirst(piece + 1) { starts[later] -= 1 }
        if pieces[piece].isEmpty {
            pieces.remove(at: piece)
            starts.remove(at: piece)
        }
    }
}
