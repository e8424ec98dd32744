// Leaves of rows in layout 1, with symbol tables for their texts.
//
// Invariants
// - A set of tables lies below the leaves that name it, twice, and the copies begin and end so far
//   apart that no damaged page of 4 KiB takes both.
// - A set is written only where it saves more than it takes.
// - Whatever does not fit layout 1, or has few bytes beside its plans, stays in layout 0. Sizes are
//   not compared with LZ4's: a packed leaf is read faster at the same size.

internal import VarveBase
internal import VarveFormat

/// How the leaves of one tree are packed.
struct LeafPacking: Sendable {
    /// The tables of the tree's texts, and where they are.
    let symbols: (set: SymbolSet, address: SymbolSetAddress)?
    /// Whether also those are that have few bytes beside their plans: tests have small ones.
    var packsAny = false

    /// A page of layout 1; nil for an inner node, and where layout 0 is better.
    func frame(
        of node: TreeNode,
        tree: TreeID,
        commit: CommitNumber,
        seed: UInt64
    ) -> Frame.Prepared? {
        guard node.isLeaf, let rows = node.leafRows(),
            let body = packsAny
                ? LeafEncoder.anyBody(of: rows, symbols: symbols)
                : LeafEncoder.body(of: rows, symbols: symbols)
        else { return nil }
        let header = PageHeader(
            tree: tree,
            level: 0,
            layout: PageHeader.packedLayout,
            count: UInt16(node.count),
            commit: commit
        )
        let frame = Frame.prepare(
            .page,
            front: header.encoded(),
            body: body,
            compresses: false,
            seed: seed
        )
        // A long run of zeros, which no frame has, would have to be compressed.
        return frame.isCompressed ? nil : frame
    }
}

extension LeafPacking {
    /// Places in a tree from which rows are taken as samples.
    static let samplePlaces: UInt64 = 64
    /// Rows from each, at most as many bytes.
    private static let samplesInRow = 8
    private static let sampleBytesMax = 8 << 10

    /// Learns the tables of a tree from rows all over it, and writes them where they pay; nil for a
    /// tree that has no rows.
    ///
    /// - Complexity: O(samples), some milliseconds for each column of texts.
    /// - Throws: `damaged`, `ioFailed`.
    static func learned(
        _ tree: Tree,
        _ commit: CommitNumber,
        packsAny: Bool,
        writingTo log: inout LogWriter
    ) throws(EngineError) -> LeafPacking? {
        guard tree.id >= .firstFree, let samples = try samples(of: tree) else { return nil }
        let rows = packsAny ? UInt64.max : tree.root.rows
        guard let (set, body) = tables(samples, rows: rows) else {
            return LeafPacking(symbols: nil, packsAny: packsAny)
        }
        let first = append(body, tree.id, commit, to: &log)
        // Nothing reads it: it keeps the copies apart. Zeros would be compressed.
        let filler = [UInt8](repeating: 0x55, count: apart)
        _ = append(filler, tree.id, commit, to: &log)
        let twin = append(body, tree.id, commit, to: &log)
        let address = SymbolSetAddress(
            first: first.offset,
            twin: twin.offset,
            storedLength: first.storedLength,
            payloadHash: first.payloadHash
        )
        return LeafPacking(symbols: (set, address), packsAny: packsAny)
    }

    /// Tables for texts like those of some rows, and their bytes; nil where so many rows save less
    /// with them than both copies take with what lies between, and a quarter more.
    static func tables(_ samples: LeafRows, rows: UInt64) -> (set: SymbolSet, body: [UInt8])? {
        guard let set = SymbolSet.learned(from: samples) else { return nil }
        let body = set.encoded()
        let symbols = (set, SymbolSetAddress.nowhere)
        let plain = LeafEncoder.body(of: samples, symbols: nil)?.count ?? samples.bytes.count
        let coded = LeafEncoder.body(of: samples, symbols: symbols)?.count ?? plain
        let saved = Double(plain - coded) / Double(samples.count) * Double(rows)
        return saved > Double(2 * body.count + apart) * 1.25 ? (set, body) : nil
    }

    /// Bytes between the copies of a set.
    static let apart = 4096

    private static func append(
        _ body: [UInt8],
        _ tree: TreeID,
        _ commit: CommitNumber,
        to log: inout LogWriter
    ) -> PageAddress {
        let header = ValueHeader(
            entity: ValueHeader.blobEntity,
            column: ValueHeader.symbolsColumn,
            object: ObjectID(UInt64(tree.rawValue)),
            commit: commit
        )
        return log.appendBody(.value, front: header.encoded(), body: body, compresses: false)
    }

    /// Rows from places all over a tree, each once; nil where the entries are no rows.
    static func samples(of tree: Tree) throws(EngineError) -> LeafRows? {
        var rows = LeafRows()
        var cursor = TreeCursor(tree)
        let step = max(1, tree.root.rows / samplePlaces)
        var position: UInt64 = 0
        while position < tree.root.rows {
            guard try cursor.seek(position: position) else { break }
            var (count, bytes) = (0, 0)
            repeat {
                let object = cursor.key
                guard object.count == 8 else { return nil }
                var isRow = false
                cursor.withValue { isRow = $0.count > 0 }
                guard isRow else { return nil }
                let id = try cursor.trailingObjectID()
                // Leaves that are jumped to are not held against their neighbours.
                if let last = rows.objects.last, id.rawValue <= last {
                    throw EngineError.damaged("keys of tree \(tree.id.rawValue) do not ascend")
                }
                try cursor.withRow { version, row in
                    rows.append(object: id.rawValue, version: version.rawValue, row: row)
                    bytes += row.count
                }
                count += 1
                guard try cursor.next() else { break }
            } while count < min(Int(clamping: step), samplesInRow) && bytes < sampleBytesMax
            position += step
        }
        return rows.objects.isEmpty ? nil : rows
    }
}

extension SymbolSetAddress {
    /// An address for a leaf that is only measured.
    static let nowhere = SymbolSetAddress(
        first: FileHeader.logStart,
        twin: FileHeader.logStart,
        storedLength: 0,
        payloadHash: 0
    )
}
