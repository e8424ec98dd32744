// Rows of many IDs, copied: where a lookup lends one row, a list wants them all.
//
// Invariants
// - The blocks are in the order of the IDs, whatever thread made them.
// - A list of `parallelRowsMin` IDs and more is read by several threads, each a part of it: such a
//   list is mostly pages to restore, and each page is restored by one of them.

public import VarveBase
internal import VarveFormat
internal import VarveIO

/// Rows, one behind another.
public struct RowBlock: Sendable {
    /// One row that was found.
    public struct Row: Sendable {
        /// Position in the list of IDs.
        public let position: Int
        /// Where it lies in `bytes`.
        public let start: Int
        /// Its length in bytes.
        public let count: Int
        /// The commit that last changed it.
        public let version: CommitNumber
    }

    /// The rows' bytes.
    public private(set) var bytes: [UInt8] = []
    /// Ascending by position. IDs without a row are left out.
    public private(set) var rows: [Row] = []

    fileprivate init(
        _ state: StoreState,
        _ tree: TreeID,
        _ objects: [ObjectID],
        from first: Int
    ) throws(EngineError) {
        var writer = ByteWriter()
        var rows: [Row] = []
        rows.reserveCapacity(objects.count)
        try state.visit(tree, objects, state.generation.nodes) { index, version, row in
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
        let threads = engine.options.readingThreads
        if threads < 2 || objects.count < Self.parallelRowsMin {
            return [try RowBlock(state, tree, objects, from: 0)]
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
                    try RowBlock(state, tree, part, from: range.lowerBound)
                )
            } catch {
                return .failure(error)
            }
        }
        return try blocks.map { (block) throws(EngineError) in try block.get() }
    }
}
