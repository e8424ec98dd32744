// Between nodes in memory and pages in the file.
//
// Invariants
// - A page is checked once, when it is decoded: tree, level, counts, ascending keys. A node that
//   was made here has the invariants of `TreeNode`, whatever the bytes were.
// - Equal nodes give equal pages.

internal import VarveBase
internal import VarveFormat

/// Between nodes in memory and pages in the file.
enum PageCoding {
    /// The node of a verified page.
    static func node(
        _ frame: FrameBytes,
        tree: TreeID,
        level: Int
    ) throws(FormatError) -> TreeNode {
        let quick =
            level == 0
            ? LeafDecoding.leaf(frame, tree: tree)
            : InnerDecoding.inner(frame, tree: tree, level: level)
        let node = if let quick { quick } else { try carefulNode(frame, tree: tree, level: level) }
        if Invariants.areChecked { node.check() }
        return node
    }

    /// The layout of a verified page, as its front says.
    static func layout(of frame: FrameBytes) -> UInt8 {
        guard frame.payload.count >= PageHeader.length else { return PageHeader.rowLayout }
        return frame.bytes[frame.payload.lowerBound + PageHeader.layoutOffset]
    }

    /// The node of a verified page that is a packed leaf, with the tables that it names.
    static func packedLeaf(
        _ frame: FrameBytes,
        tree: TreeID,
        _ symbols: SymbolSet?
    ) throws(FormatError) -> TreeNode {
        let header = try header(frame, tree: tree, level: 0)
        let node = try TreeNode.packed(frame, header: header, symbols)
        if Invariants.areChecked { node.check() }
        return node
    }

    /// What a verified page of layout 2 says.
    static func editedLeaf(
        _ frame: FrameBytes,
        tree: TreeID
    ) throws(FormatError) -> (leaf: EditedLeaf, bytes: [UInt8], count: Int) {
        let place = FormatPlace("page", frame.offset)
        let header = try header(frame, tree: tree, level: 0)
        let (bytes, range) = try Frame.body(
            of: frame.bytes,
            payload: frame.payload,
            header: frame.header,
            frontLength: PageHeader.length,
            place: place
        )
        let leaf = try EditedLeaf(
            decoding: bytes,
            range: range,
            count: Int(header.count),
            offset: frame.offset
        )
        return (leaf, bytes, Int(header.count))
    }

    /// Where the symbol tables of a packed leaf are; they lie below it in the file.
    static func symbolSetAddress(of frame: FrameBytes) throws(FormatError) -> SymbolSetAddress? {
        let place = FormatPlace("page", frame.offset)
        guard let address = try TreeNode.symbolSetAddress(of: frame) else { return nil }
        for copy in address.copies {
            let (end, overflow) = copy.offset.rawValue.addingReportingOverflow(copy.frameLength)
            guard !overflow, end <= frame.offset.rawValue else {
                throw FormatError(
                    place: place,
                    field: "symbol tables",
                    found: copy.offset.frameName,
                    expected: "a frame below the page"
                )
            }
        }
        return address
    }

    private static func header(
        _ frame: FrameBytes,
        tree: TreeID,
        level: Int
    ) throws(FormatError) -> PageHeader {
        let place = FormatPlace("page", frame.offset)
        let header = try PageHeader(decoding: frame.bytes, range: frame.payload, place: place)
        guard header.tree == tree, Int(header.level) == level else {
            throw FormatError(
                place: place,
                field: "tree and level",
                found: "tree \(header.tree.rawValue), level \(header.level)",
                expected: "tree \(tree.rawValue), level \(level)"
            )
        }
        return header
    }

    /// The same, step by step: what pages with something wrong take, to say what.
    static func carefulNode(
        _ frame: FrameBytes,
        tree: TreeID,
        level: Int
    ) throws(FormatError) -> TreeNode {
        let place = FormatPlace("page", frame.offset)
        let header = try header(frame, tree: tree, level: level)
        let (bytes, range) = try Frame.body(
            of: frame.bytes,
            payload: frame.payload,
            header: frame.header,
            frontLength: PageHeader.length,
            place: place
        )
        let body = try PageBody(
            decoding: bytes,
            range: range,
            header: header,
            offset: frame.offset
        )
        // A prefix is stored once and unfolded for every key.
        let unfolded = body.suffixes.count.multipliedReportingOverflow(by: body.prefix.count)
        guard !unfolded.overflow, unfolded.partialValue <= FrameKind.page.payloadBytesMax else {
            throw FormatError(
                place: place,
                field: "prefix length",
                found: "\(body.prefix.count) bytes of \(body.suffixes.count) keys",
                expected: "at most \(FrameKind.page.payloadBytesMax) bytes in all"
            )
        }
        let node = TreeNode(
            stamp: TreeNode.cleanStamp,
            level: level,
            capacity: range.count + body.suffixes.count * (body.prefix.count + 24)
        )
        try appendEntries(of: body, bytes, to: node, place)
        try checkRows(of: body, place)
        for (index, child) in body.children.enumerated() {
            node.insertChild(
                ChildPointer(node: nil, address: child.address, rows: child.rows),
                at: index
            )
        }
        return node
    }

    private static func appendEntries(
        of body: PageBody,
        _ bytes: [UInt8],
        to node: TreeNode,
        _ place: FormatPlace
    ) throws(FormatError) {
        for index in body.suffixes.indices {
            let value = node.isLeaf ? body.values[index] : 0..<0
            let ascends = node.append(
                prefix: body.prefix,
                suffix: body.suffixes[index],
                value: value,
                of: bytes
            )
            guard ascends else {
                throw FormatError(
                    place: place,
                    field: "key",
                    found: "a key out of order",
                    expected: "ascending keys"
                )
            }
        }
    }

    /// As a root says: what counts on from here never overflows, signed or not.
    private static func checkRows(of body: PageBody, _ place: FormatPlace) throws(FormatError) {
        var sum: UInt64 = 0
        for child in body.children {
            let (next, overflow) = sum.addingReportingOverflow(child.rows)
            guard !overflow, child.rows > 0, next <= TreeRoots.rowsMax else {
                throw FormatError(
                    place: place,
                    field: "rows",
                    found: "\(child.rows)",
                    expected: "1 to 2^62 in all"
                )
            }
            sum = next
        }
    }

    /// A node's page. Every child of an inner node must have its address.
    ///
    /// - Parameter edits: whether a leaf may be written as a packed one with changes.
    static func frame(
        of node: TreeNode,
        tree: TreeID,
        commit: CommitNumber,
        seed: UInt64,
        edits: Bool
    ) -> Frame.Prepared {
        let (front, body): ([UInt8], [UInt8])
        if edits, let basis = node.writableBasis {
            if Invariants.areChecked { node.check() }
            let header = PageHeader(
                tree: tree,
                level: 0,
                layout: PageHeader.editedLayout,
                count: UInt16(node.count),
                commit: commit
            )
            (front, body) = (header.encoded(), node.editedBody(basis))
        } else {
            (front, body) = payload(of: node, tree: tree, commit: commit)
        }
        return Frame.prepare(
            .page,
            front: front,
            body: body,
            compresses: node.isLeaf,
            seed: seed
        )
    }

    /// Front and body of a node's page in layout 0.
    static func payload(
        of node: TreeNode,
        tree: TreeID,
        commit: CommitNumber
    ) -> (front: [UInt8], body: [UInt8]) {
        if Invariants.areChecked { node.check() }
        let node = node.unpacked
        let header = PageHeader(
            tree: tree,
            level: UInt8(node.level),
            count: UInt16(node.count),
            commit: commit
        )
        if node.isLeaf { return (header.encoded(), node.entryBytes()) }
        var writer = ByteWriter(appendingTo: node.entryBytes())
        for child in node.children {
            guard let address = child.address else {
                preconditionFailure("children are written before their parent")
            }
            PageChild(address: address, rows: child.rows).append(to: &writer)
        }
        return (header.encoded(), writer.bytes)
    }
}
