// Every page of a stored tree, checked against its parent: for tools.
//
// Invariants
// - No page is cached: memory is one page a level, and the places of the pages seen, so that a
//   page that two parents name is found and read once.
// - A damaged page hides its own subtree only; its neighbours are checked all the same.

public import VarveBase
public import VarveFormat
internal import VarveIO

/// One page of a tree as its parent describes it.
public struct AuditedPage: Sendable {
    /// Whose node it is.
    public let tree: TreeID
    /// 0 for a leaf.
    public let level: Int
    /// Where it is.
    public fileprivate(set) var address: PageAddress
    /// Entries below it, as its parent says.
    public let rows: UInt64
    /// No key below it is smaller.
    public let low: [UInt8]
    /// Every key below it is smaller; nil at the right edge.
    public let high: [UInt8]?
    /// Whether it is no page, but a copy of the symbol tables that leaves of the tree name. While
    /// one of two copies is sound, no row is lost.
    public var isSymbols = false
    /// Whether it hangs in no parent, but is the packed leaf that the leaf before it changes.
    public var isBasis = false

    /// What a leaf changes.
    fileprivate func below(_ basis: PageAddress) -> AuditedPage {
        var page = self
        page.address = basis
        page.isBasis = true
        return page
    }
}

extension LogObserver {
    /// Visits every page of a stored tree, parents first, after a leaf the packed one that it
    /// changes, and after the first leaf that names them both copies of its symbol tables.
    ///
    /// Checks hash, length, tree and level, ascending keys inside the parent's fences, and row
    /// counts.
    ///
    /// - Parameter visit: gets each page and what is wrong with it; false ends the walk.
    /// - Returns: false when `visit` ended it.
    /// - Throws: `ioFailed`.
    /// - Complexity: O(bytes of the tree).
    @discardableResult
    public func audit(
        _ root: StoredRoot,
        visit: (AuditedPage, EngineError?) -> Bool
    ) throws(EngineError) -> Bool {
        let page = AuditedPage(
            tree: root.tree,
            level: Int(root.level),
            address: root.address,
            rows: root.rows,
            low: [],
            high: nil
        )
        var seen: Set<FileOffset> = []
        return try audit(page, &seen, visit)
    }

    private func audit(
        _ page: AuditedPage,
        _ seen: inout Set<FileOffset>,
        _ visit: (AuditedPage, EngineError?) -> Bool
    ) throws(EngineError) -> Bool {
        let node: TreeNode
        let symbols: [PageAddress]
        do throws(EngineError) {
            guard seen.insert(page.address.offset).inserted else {
                throw .damaged(
                    "page \(page.address.offset.frameName) hangs in its tree twice",
                    place: page.address.offset
                )
            }
            (node, symbols) = try checkedNode(page)
        } catch {
            guard error.code == .damaged else { throw error }
            guard visit(page, error) else { return false }
            // The leaf is sound, what it changes is not.
            guard let basis = try log.basis(of: page), basis.offset == error.place,
                seen.insert(basis.offset).inserted
            else { return true }
            return visit(page.below(basis), error)
        }
        guard visit(page, nil) else { return false }
        if let basis = node.basis?.address {
            // It was read with the leaf.
            guard seen.insert(basis.offset).inserted else {
                let error = EngineError.damaged(
                    "page \(basis.offset.frameName) is changed by two leaves, or hangs in its tree",
                    place: page.address.offset
                )
                return visit(page, error)
            }
            guard visit(page.below(basis), nil) else { return false }
        }
        for copy in symbols where seen.insert(copy.offset).inserted {
            guard try self.visit(symbols: copy, of: page, visit) else { return false }
        }
        for index in node.children.indices {
            guard try audit(child(index, of: node, page), &seen, visit) else { return false }
        }
        return true
    }

    private func visit(
        symbols copy: PageAddress,
        of leaf: AuditedPage,
        _ visit: (AuditedPage, EngineError?) -> Bool
    ) throws(EngineError) -> Bool {
        var page = AuditedPage(
            tree: leaf.tree,
            level: 0,
            address: copy,
            rows: 0,
            low: leaf.low,
            high: leaf.high
        )
        page.isSymbols = true
        do throws(EngineError) {
            _ = try SymbolSets.read(copy, log)
        } catch {
            guard error.code == .damaged else { throw error }
            return visit(page, error)
        }
        return visit(page, nil)
    }

    /// A child as its parent describes it.
    func child(_ index: Int, of node: TreeNode, _ page: AuditedPage) -> AuditedPage {
        let child = node.children[index]
        guard let address = child.address else {
            preconditionFailure("children of a page are in the file")
        }
        return AuditedPage(
            tree: page.tree,
            level: page.level - 1,
            address: address,
            rows: child.rows,
            low: index == 0 ? page.low : node.key(index),
            high: index + 1 < node.count ? node.key(index + 1) : page.high
        )
    }

    func checkedNode(
        _ page: AuditedPage
    ) throws(EngineError) -> (node: TreeNode, symbols: [PageAddress]) {
        let place = page.address.offset
        let frame = try log.frame(page.address, kind: .page)
        let (node, symbols) = try log.checkedNode(frame, tree: page.tree, level: page.level)
        let first = node.isLeaf ? 0 : 1
        let isInside =
            node.count <= first
            || (node.compareKey(first, with: page.low) >= 0
                && page.high.map { node.compareKey(node.count - 1, with: $0) < 0 } ?? true)
        guard isInside else {
            throw .damaged(
                "page \(place.frameName) holds keys outside the range that its parent gives it",
                place: place
            )
        }
        guard node.rows == page.rows else {
            throw .damaged(
                "page \(place.frameName) counts \(node.rows) entries, its parent \(page.rows)",
                place: place
            )
        }
        return (node, symbols)
    }
}

// MARK: Values and blobs

/// An entry of the tree of large values.
public struct KnownValue: Sendable {
    /// Whose value.
    public let entity: EntityID
    /// Whose row.
    public let object: ObjectID
    /// Which column.
    public let column: ColumnID
    /// Where it lies.
    public let place: ValuePlace

    /// What a key of `TreeID.largeValues` names.
    public static func key(
        _ key: [UInt8]
    ) throws(FormatError) -> (entity: EntityID, object: ObjectID, column: ColumnID) {
        var reader = ByteReader(key, place: "large value key")
        let entity = EntityID(try reader.u16("entity").byteSwapped)
        let object = ObjectID(try reader.u64("object").byteSwapped)
        let column = ColumnID(try reader.u16("column").byteSwapped)
        try reader.finish("large value key")
        return (entity, object, column)
    }

    /// Reads an entry of `TreeID.largeValues`.
    public init(key: [UInt8], value: [UInt8]) throws(FormatError) {
        (entity, object, column) = try Self.key(key)
        var places = ByteReader(value, place: "large value")
        place = try ValuePlace(from: &places, below: FileOffset(.max))
        try places.finish("large value")
    }
}

/// An entry of the tree of blobs.
public struct KnownBlob: Sendable {
    /// Digest and length.
    public let reference: BlobReference
    /// How many rows name it.
    public let references: UInt64
    /// Where it lies in the log; nil for a file of its own.
    public let place: ValuePlace?

    /// Reads an entry of `TreeID.blobs`.
    public init(key: [UInt8], value: [UInt8]) throws(FormatError) {
        let entry = try BlobEntry(decoding: value)
        reference = BlobReference(
            digest: try EngineKeys.digest(decoding: key),
            length: entry.length
        )
        references = entry.references
        if case .frame(let place) = entry.place { self.place = place } else { place = nil }
    }
}

extension LogObserver {
    /// Checks the frame of a large value.
    ///
    /// - Throws: `damaged` with its place, `ioFailed`.
    public func check(_ value: KnownValue) throws(EngineError) {
        let bytes = try log.value(value.place)
        guard UInt64(bytes.count) == value.place.length else {
            throw .damaged("a value of another length", place: value.place.address.offset)
        }
        guard let frame = try frame(at: value.place.address.offset), let front = frame.value,
            front.entity == value.entity, front.object == value.object,
            front.column == value.column
        else {
            throw .damaged(
                "value \(value.place.address.offset.frameName) belongs to another row",
                place: value.place.address.offset
            )
        }
    }

    /// Checks that a blob is there with the right length, and with `readsContent` its digest.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `damaged` with its place, `ioFailed`.
    /// - Complexity: O(1) for a file, O(length) with its content or for a blob in the log.
    public func check(_ blob: KnownBlob, readsContent: Bool) throws(EngineError) {
        let reference = blob.reference
        if let place = blob.place {
            let bytes = try log.value(place)
            guard UInt64(bytes.count) == reference.length,
                !readsContent || BlobHasher.digest(of: bytes) == reference.digest
            else {
                throw EngineError(
                    .blobDamaged,
                    "blob \(reference.digest.shortName) is not what its digest says",
                    place: place.address.offset
                )
            }
            return
        }
        let store = BlobStore(files: blobs)
        try store.engineError { () throws(BlobError) in
            let file = try blobs.open(reference)
            defer { file.close() }
            if readsContent { try file.verify() }
        }
    }

    /// Digests of all blob files, named by a row or not.
    ///
    /// - Throws: `ioFailed`.
    public func blobFiles() throws(EngineError) -> [BlobDigest] {
        try BlobStore(files: blobs).engineError { () throws(BlobError) in try blobs.list() }
    }
}
