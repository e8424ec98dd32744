// Rows of many IDs, copied: where a lookup lends one row, a list wants them all.
//
// Invariants
// - The blocks are in the order of the IDs, whatever thread made them.
// - A list of `parallelRowsMin` IDs and more is read by several threads, each a part of it: such a
//   list is mostly pages to restore, and each page is restored by one of them.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// Rows, one after another.
public struct RowBlock: Sendable {
    /// One row that was found.
    public struct Row: Sendable {
        /// Position in the list of IDs.
        public var position: Int { Int(storedPosition) }
        /// Where it lies in `bytes`.
        public let start: Int
        /// Its length in bytes.
        public var count: Int { Int(storedCount) }
        private let storedPosition: UInt32
        private let storedCount: UInt32
        /// The commit that last changed it.
        public let version: CommitNumber

        fileprivate init(position: Int, start: Int, count: Int, version: CommitNumber) {
            precondition(position <= Int(UInt32.max), "a list of at most 2^32 IDs")
            storedPosition = UInt32(position)
            self.start = start
            storedCount = UInt32(count)
            self.version = version
        }
    }

    /// The rows' bytes.
    public private(set) var bytes: [UInt8] = []
    /// Ascending by position. IDs without a row are left out.
    public private(set) var rows: [Row] = []

    /// Rows by which it is guessed how large the others are.
    private static let sampled = 32
    /// No guess makes more room than this, in bytes.
    private static let reservedMax = 16 << 20

    fileprivate init(
        _ state: StoreState,
        _ tree: TreeID,
        _ objects: [ObjectID],
        from first: Int,
        passes: Bool,
        _ room: RowBlockRoom?
    ) throws(EngineError) {
        var writer = ByteWriter()
        var rows: [Row] = []
        rows.reserveCapacity(objects.count)
        var untold = 0
        let nodes = state.generation.nodes
        try state.trees.visit(tree, objects, nodes, passes: passes) { index, version, row in
            if let room {
                untold += row.count
                if untold >= RowBlockRoom.piece {
                    if !room.take(untold) { return false }
                    untold = 0
                }
            }
            // Once it is known how large these rows are: an array that grows is written twice.
            if rows.count == Self.sampled, objects.count > 4 * Self.sampled {
                let expected = writer.count / Self.sampled * objects.count
                let most = min(Self.reservedMax, room?.most ?? .max)
                writer.reserve(min(expected + expected / 16, most) - writer.count)
            }
            rows.append(
                Row(
                    position: first + index,
                    start: writer.count,
                    count: row.count,
                    version: version
                )
            )
            writer.raw(row, 0..<row.count)
            return true
        }
        (bytes, self.rows) = (writer.bytes, rows)
        // A list with a bound is kept; it should not keep twice what it has.
        if room != nil, bytes.capacity > bytes.count / 8 * 9 {
            var exact: [UInt8] = []
            exact.reserveCapacity(bytes.count)
            exact.append(contentsOf: bytes)
            bytes = exact
        }
    }
}

/// Bytes that the blocks of one list may still take.
private final class RowBlockRoom: Sendable {
    /// Bytes that a block takes before it says so.
    static let piece = 16 << 10
    /// Bytes that all blocks together may take.
    let most: Int
    private let left: Atomic<Int>

    init(_ bytes: Int) {
        most = bytes
        left = Atomic(bytes)
    }

    var isExceeded: Bool { left.load(ordering: .relaxed) < 0 }

    /// False when there is no more.
    func take(_ bytes: Int) -> Bool {
        left.subtract(bytes, ordering: .relaxed).newValue >= 0
    }
}

extension Snapshot {
    /// Fewer IDs than these are not worth a second thread.
    private static let parallelRowsMin = 4096
    /// Parts for each thread: neighbouring parts may cost much or little.
    private static let partsPerThread = 4

    /// Copies of the rows of ascending object IDs, in a block or, of a long list, in several.
    /// - Complexity: O(IDs + leaves touched x depth), shared by `EngineOptions.readingThreads`.
    /// - Throws: `damaged`, `ioFailed`.
    public func rowBlocks(
        _ tree: TreeID,
        _ objects: [ObjectID]
    ) throws(EngineError) -> [RowBlock] {
        try blocks(tree, objects, nil)
    }

    /// The same, but nil when the rows have more than `bytesMax` bytes in all, and some 16 KiB a
    /// block.
    public func rowBlocks(
        _ tree: TreeID,
        _ objects: [ObjectID],
        bytesMax: Int
    ) throws(EngineError) -> [RowBlock]? {
        let room = RowBlockRoom(bytesMax)
        let blocks = try blocks(tree, objects, room)
        return room.isExceeded ? nil : blocks
    }

    private func blocks(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ room: RowBlockRoom?
    ) throws(EngineError) -> [RowBlock] {
        let threads = engine.options.readingThreads
        let passes = objects.count >= NodeCache.passingMin.objects
        if objects.count <= NodeCache.foreseenMax {
            trees.foresee(tree, objects, nodes)
        }
        if threads < 2 || objects.count < Self.parallelRowsMin {
            return [try RowBlock(state, tree, objects, from: 0, passes: passes, room)]
        }
        let parts = threads * Self.partsPerThread
        let ranges = (0..<parts).map { part in
            objects.count * part / parts..<objects.count * (part + 1) / parts
        }
        let state = state
        let blocks = BackgroundThread.map(ranges, threads: threads, together: 1) { range in
            do throws(EngineError) {
                let part = Array(objects[range])
                return Result<RowBlock, EngineError>.success(
                    try RowBlock(state, tree, part, from: range.lowerBound, passes: passes, room)
                )
            } catch {
                return .failure(error)
            }
        }
        return try blocks.map { (block) throws(EngineError) in try block.get() }
    }
}
