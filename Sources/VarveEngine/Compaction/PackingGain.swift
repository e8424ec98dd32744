// What a compaction would make smaller by packing rows, judged by samples.
//
// Invariants
// - Looks at leaves all over each tree; those that are packed already count as they are, so what
//   was packed once is not packed again for nothing.
// - A look costs some milliseconds, so the next one waits until the file has grown.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

extension LeafPacking {
    /// Bytes by which the leaves of a tree would be smaller if they were packed; 0 for a tree that
    /// has no rows, and where most of its leaves are not written yet.
    ///
    /// - Complexity: O(samples): 64 leaves are read; some milliseconds for each column of texts.
    /// - Throws: `damaged`, `ioFailed`.
    static func gain(
        of tree: Tree,
        upTo bytesMax: UInt64 = .max / 2
    ) throws(EngineError) -> UInt64 {
        guard tree.id >= .firstFree, let samples = try samples(of: tree),
            let leaf = try storedLeaf(tree)
        else { return 0 }
        let tables = tables(samples, rows: tree.root.rows)
        let symbols = tables.map { ($0.set, SymbolSetAddress.nowhere) }
        var (bytes, rows) = (0, 0)
        for piece in samples.pieces(of: max(1, leaf.rows)) {
            guard let body = LeafEncoder.body(of: piece, symbols: symbols) else { return 0 }
            bytes += body.count
            rows += piece.count
        }
        let packed = Double(bytes) / Double(rows)
        let set = tables.map { Double(2 * $0.body.count + apart) } ?? 0
        let gain = (leaf.bytesPerRow - packed) * Double(tree.root.rows) - set
        // Counts of rows are what pages say; no store gains more than its file.
        return UInt64(max(0, min(gain, Double(bytesMax))))
    }

    /// What a row takes in pages of leaves, and how many rows a page has: means over places all
    /// over a tree. Nil where too few leaves are in the file.
    ///
    /// Places are positions of rows, so a page is met as often as it has rows.
    private static func storedLeaf(
        _ tree: Tree
    ) throws(EngineError) -> (bytesPerRow: Double, rows: Int)? {
        var cursor = TreeCursor(tree)
        let step = max(1, tree.root.rows / samplePlaces)
        var position: UInt64 = 0
        var (bytesPerRow, rows, pages, missing) = (0.0, 0, 0, 0)
        while position < tree.root.rows {
            guard try cursor.seek(position: position) else { break }
            if let page = cursor.leafPage, page.rows > 0 {
                bytesPerRow += Double(page.bytes) / Double(page.rows)
                rows += page.rows
                pages += 1
            } else {
                missing += 1
            }
            position += step
        }
        return pages > missing ? (bytesPerRow / Double(pages), rows / pages) : nil
    }
}

extension LeafRows {
    /// The rows, so many at a time, without what is left over.
    fileprivate func pieces(of size: Int) -> [LeafRows] {
        if count <= size { return [self] }
        return stride(from: 0, through: count - size, by: size).map { first in
            var piece = LeafRows()
            for place in first..<first + size {
                piece.append(
                    object: objects[place],
                    version: versions[place],
                    row: bytes.span.extracting(range(place))
                )
            }
            return piece
        }
    }
}

extension Engine {
    /// Bytes that a compaction would give back if it packed the rows of the store, with what it
    /// would give back anyway; nil: too little to be worth it, or nothing has changed since it was
    /// asked last.
    ///
    /// Worth it is an eighth of the file, and a 16th of `EngineOptions.compactionDeadBytesMin` at
    /// least: rows that are packed are read several times as fast. A store that grows has a quarter
    /// of rows that are not packed, or more, when it is written again: so over its life it is
    /// written some four times.
    ///
    /// - Parameter isStopping: asked between two trees; true ends it.
    func worthwhilePackingBytes(
        _ isStopping: () -> Bool = { false }
    ) throws(EngineError) -> UInt64? {
        guard options.packsLeaves, options.retention == .newest, !role.isReadOnly,
            !compaction.isRunning, !suspension.isEnding, role.turn?.isSuspended != true
        else { return nil }
        let state = published.withLock { $0.state }
        let file = state.frame.rawValue
        let least = options.compactionDeadBytesMin / 16
        guard file >= least, compaction.shouldLookAtRows(file: file, step: least) else {
            return nil
        }
        var bytes: UInt64 = 0
        for tree in state.trees.keys where tree >= .firstFree {
            if isStopping() { return nil }
            let gain = try LeafPacking.gain(of: state.tree(tree, isPublished: true), upTo: file)
            bytes = min(file, bytes + gain)
        }
        return bytes >= max(least, file / 8) ? bytes : nil
    }
}
