// From a verified frame to its node, whatever its layout.
//
// Invariants
// - A packed leaf keeps the set of symbol tables that it names. The reader of the log keeps every
//   set that was read, so that leaves share it; sets of more than `bytesMax` in all are refused.
//   A compaction writes one set for a tree, so only a forged file has so many.
// - A set is there twice. While one copy is sound, nothing is lost.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

extension LogReader {
    /// The node of a verified page.
    ///
    /// - Throws: `damaged`; `ioFailed` while symbol tables are read.
    func node(_ frame: FrameBytes, tree: TreeID, level: Int) throws(EngineError) -> TreeNode {
        let layout = level == 0 ? PageCoding.layout(of: frame) : PageHeader.rowLayout
        if layout == PageHeader.packedLayout { return try packedLeaf(frame, tree: tree) }
        if layout == PageHeader.editedLayout { return try editedLeaf(frame, tree: tree) }
        do throws(FormatError) {
            return try PageCoding.node(frame, tree: tree, level: level)
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    private func packedLeaf(
        _ frame: FrameBytes,
        tree: TreeID
    ) throws(EngineError) -> TreeNode {
        let set = try symbolSet(of: frame)
        do throws(FormatError) {
            return try PageCoding.packedLeaf(frame, tree: tree, set)
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    /// Two pages are read: the leaf's, and the one that it changes.
    private func editedLeaf(
        _ frame: FrameBytes,
        tree: TreeID
    ) throws(EngineError) -> TreeNode {
        let (changes, bytes, count): (EditedLeaf, [UInt8], Int)
        do throws(FormatError) {
            (changes, bytes, count) = try PageCoding.editedLeaf(frame, tree: tree)
        } catch {
            throw .damaged(error, place: frame.offset)
        }
        let below = try self.frame(changes.basis, kind: .page)
        guard PageCoding.layout(of: below) == PageHeader.packedLayout else {
            throw .damaged(
                "page \(frame.offset.frameName) changes \(below.offset.frameName), which is no "
                    + "packed leaf",
                place: frame.offset
            )
        }
        let leaf = try packedLeaf(below, tree: tree)
        if !readsEdits, leaf.count == count { return leaf }
        do throws(FormatError) {
            let node = try TreeNode.edited(
                changes,
                bytes,
                count: count,
                LeafBasis(leaf: leaf, address: changes.basis),
                FormatPlace("page", frame.offset)
            )
            if Invariants.areChecked { node.check() }
            return node
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    /// As `node`, and each row of a packed leaf is looked at: for tools.
    ///
    /// - Returns: the node, and where the copies of its symbol tables are.
    func checkedNode(
        _ frame: FrameBytes,
        tree: TreeID,
        level: Int
    ) throws(EngineError) -> (node: TreeNode, symbols: [PageAddress]) {
        let node = try node(frame, tree: tree, level: level)
        guard node.hasPackedRows else { return (node, []) }
        if let basis = node.basis?.address {
            do throws(FormatError) {
                // Its own rows are looked at by whoever reads them.
                _ = try node.wholeUnpacked(FormatPlace("page", frame.offset))
            } catch {
                throw .damaged(error, place: frame.offset)
            }
            let below = try self.frame(basis, kind: .page)
            return (node, try checkedNode(below, tree: tree, level: 0).symbols)
        }
        do throws(FormatError) {
            try node.checkRows(FormatPlace("page", frame.offset))
        } catch {
            throw .damaged(error, place: frame.offset)
        }
        return (node, try symbolSetAddress(of: frame)?.copies ?? [])
    }

    /// Stored bytes of the packed leaf that a leaf changes; 0: it changes none.
    func basisBytes(of address: PageAddress, tree: TreeID) throws(EngineError) -> UInt64 {
        let layoutPlace = FrameHeader.length + PageHeader.layoutOffset
        // Most leaves change none: their first bytes say so.
        let front = try read(at: address.offset, count: layoutPlace + 1)
        guard front.count > layoutPlace, front[layoutPlace] == PageHeader.editedLayout else {
            return 0
        }
        let frame = try frame(address, kind: .page)
        do throws(FormatError) {
            return try PageCoding.editedLeaf(frame, tree: tree).leaf.basis.frameLength
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    private func symbolSetAddress(of frame: FrameBytes) throws(EngineError) -> SymbolSetAddress? {
        do throws(FormatError) {
            return try PageCoding.symbolSetAddress(of: frame)
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }

    private func symbolSet(of frame: FrameBytes) throws(EngineError) -> SymbolSet? {
        guard let address = try symbolSetAddress(of: frame) else { return nil }
        return try symbols.set(address, self)
    }
}

extension SymbolSetAddress {
    /// Where the copies are, the first one in front.
    var copies: [PageAddress] {
        [first, twin].map {
            PageAddress(offset: $0, storedLength: storedLength, payloadHash: payloadHash)
        }
    }
}

/// The sets of symbol tables of one file that were read.
final class SymbolSets: Sendable {
    private struct Known {
        var sets: [SymbolSetAddress: SymbolSet] = [:]
        /// Memory that they take.
        var bytes = 0
    }

    private let known = Mutex(Known())
    private let bytesMax: Int
    /// False in tests that plant a bug, never else.
    private let readsTwins: Bool

    /// - Parameter bytesMax: memory for all sets: room for some 28,000 tables.
    init(bytesMax: Int = 256 << 20, readsTwins: Bool = true) {
        self.bytesMax = bytesMax
        self.readsTwins = readsTwins
    }

    /// The set at an address.
    ///
    /// - Throws: `damaged` when neither copy is sound, or when all sets take more memory than a
    ///   reader gives them; `ioFailed`.
    func set(_ address: SymbolSetAddress, _ log: LogReader) throws(EngineError) -> SymbolSet {
        if let set = known.withLock({ $0.sets[address] }) { return set }
        var failure: EngineError?
        for copy in address.copies.prefix(readsTwins ? 2 : 1) {
            do throws(EngineError) {
                return try keep(Self.read(copy, log), address)
            } catch {
                guard error.code == .damaged else { throw error }
                failure = failure ?? error
            }
        }
        guard let failure else { preconditionFailure("a set has two copies") }
        throw failure
    }

    /// The set that stands for an address from now on: another thread may have read it first.
    private func keep(
        _ set: SymbolSet,
        _ address: SymbolSetAddress
    ) throws(EngineError) -> SymbolSet {
        let kept = known.withLock { known -> SymbolSet? in
            if let there = known.sets[address] { return there }
            if known.bytes + set.byteCount > bytesMax { return nil }
            known.sets[address] = set
            known.bytes += set.byteCount
            return set
        }
        if let kept { return kept }
        throw .damaged(
            "the symbol tables of the file take more than \(bytesMax) bytes of memory",
            place: address.first
        )
    }

    /// One copy of a set.
    ///
    /// - Throws: `damaged` when it is not sound, `ioFailed`.
    static func read(
        _ address: PageAddress,
        _ log: LogReader
    ) throws(EngineError) -> SymbolSet {
        let frame = try log.frame(address, kind: .value)
        let place = FormatPlace("symbol tables", frame.offset)
        do throws(FormatError) {
            let front = try ValueHeader(decoding: frame.bytes, range: frame.payload, place: place)
            guard front.column == ValueHeader.symbolsColumn else {
                throw FormatError(
                    place: place,
                    field: "column",
                    found: "\(front.column.rawValue)",
                    expected: "\(ValueHeader.symbolsColumn.rawValue)"
                )
            }
            let (bytes, range) = try Frame.body(
                of: frame.bytes,
                payload: frame.payload,
                header: frame.header,
                frontLength: ValueHeader.length,
                place: place
            )
            return try SymbolSet(decoding: bytes, range: range, place: place)
        } catch {
            throw .damaged(error, place: frame.offset)
        }
    }
}
