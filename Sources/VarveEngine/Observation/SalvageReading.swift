// What is left of a damaged store: entries past damaged pages, commits and values one by one.
//
// Invariants
// - Every page is checked against its parent, as in `PageAudit.swift`; what is damaged is told, and
//   what lies beside it is read all the same.
// - Nothing is cached: memory is bounded by one page a level, or by one value.

public import VarveBase
public import VarveFormat
internal import VarveIO

/// What the payload of a commit frame says after its record.
public enum CommitContent: Sendable {
    /// Roots of all trees, and with TREE the objects that the commit changed.
    case trees(roots: [StoredRoot], changes: [ChangedObjects])
    /// Places of new values, and row changes in the order in which they were made.
    case changes(places: [NewPlace], operations: [DeltaOperation])
    /// Nothing: a CLOSE.
    case nothing
}

extension LogReader {
    /// The rows that a leaf of layout 2 has itself; none of every other page, and of one that is
    /// damaged or out of its place.
    func ownRows(
        of page: AuditedPage
    ) throws(EngineError) -> [(key: [UInt8], value: [UInt8])] {
        guard let (leaf, bytes) = try changes(of: page) else { return [] }
        return zip(leaf.objects, leaf.values).compactMap { object, value in
            let key = EngineKeys.object(ObjectID(object))
            let isInside =
                ByteReader.compare(key, page.low) >= 0
                && page.high.map { ByteReader.compare(key, $0) < 0 } ?? true
            return isInside ? (key, Array(bytes[value])) : nil
        }
    }

    /// What a leaf of layout 2 changes; nil as with `ownRows`.
    func basis(of page: AuditedPage) throws(EngineError) -> PageAddress? {
        try changes(of: page)?.leaf.basis
    }

    private func changes(
        of page: AuditedPage
    ) throws(EngineError) -> (leaf: EditedLeaf, bytes: [UInt8])? {
        guard page.level == 0 else { return nil }
        let frame: FrameBytes
        do throws(EngineError) { frame = try self.frame(page.address, kind: .page) } catch {
            guard error.code == .damaged else { throw error }
            return nil
        }
        guard PageCoding.layout(of: frame) == PageHeader.editedLayout,
            let (leaf, bytes, count) = try? PageCoding.editedLeaf(frame, tree: page.tree),
            UInt64(count) == page.rows
        else { return nil }
        return (leaf, bytes)
    }
}

extension LogObserver {
    /// Visits the entries of a stored tree whose keys lie from `low` up to, not including, `high`,
    /// ascending by key, and in their places among them the pages that cannot be read.
    ///
    /// - Throws: `ioFailed`, and what the closures throw.
    /// - Complexity: O(pages of the range).
    public func forEachEntry(
        of root: StoredRoot,
        from low: [UInt8],
        to high: [UInt8]?,
        entry: (_ key: [UInt8], _ value: [UInt8]) throws -> Void,
        damaged: (AuditedPage, EngineError) throws -> Void
    ) throws {
        let page = AuditedPage(
            tree: root.tree,
            level: Int(root.level),
            address: root.address,
            rows: root.rows,
            low: [],
            high: nil
        )
        try visit(page, low, high, entry, damaged)
    }

    private func visit(
        _ page: AuditedPage,
        _ low: [UInt8],
        _ high: [UInt8]?,
        _ entry: (_ key: [UInt8], _ value: [UInt8]) throws -> Void,
        _ damaged: (AuditedPage, EngineError) throws -> Void
    ) throws {
        let node: TreeNode
        do throws(EngineError) {
            node = try checkedNode(page).node
        } catch {
            guard error.code == .damaged else { throw error }
            try damaged(page, error)
            // A leaf whose page is sound has its own rows, though what it changes is lost.
            for (key, value) in try log.ownRows(of: page) {
                if ByteReader.compare(key, low) < 0 { continue }
                if let high, ByteReader.compare(key, high) >= 0 { return }
                try entry(key, value)
            }
            return
        }
        if node.isLeaf {
            for index in 0..<node.count {
                if node.compareKey(index, with: low) < 0 { continue }
                if let high, node.compareKey(index, with: high) >= 0 { return }
                try entry(node.key(index), node.value(index))
            }
            return
        }
        for index in node.children.indices {
            // A child ends where its neighbour begins.
            if index + 1 < node.count, node.compareKey(index + 1, with: low) <= 0 { continue }
            if index > 0, let high, node.compareKey(index, with: high) >= 0 { return }
            try visit(child(index, of: node, page), low, high, entry, damaged)
        }
    }

    /// The newest sound commit frame that begins below an offset; nil when there is none, or when
    /// the frames above it overlap more than those of any log.
    ///
    /// - Throws: `ioFailed`, `formatTooNew`.
    /// - Complexity: O(bytes below the offset).
    public func newestCommit(below end: FileOffset) throws(EngineError) -> CommitFrame? {
        var found: CommitFrame?
        do throws(EngineError) {
            let scan = scan.bounded(dataEnd: dataEnd)
            try scan.searchBackward(
                from: min(end.rawValue, dataEnd)
            ) { offset, header throws(EngineError) in
                guard offset < end.rawValue, header.kind.isCommitFrame,
                    let commit = try scan.commit(at: FileOffset(offset))
                else { return true }
                found = CommitFrame(commit)
                return false
            }
        } catch {
            guard error.code == .damaged else { throw error }
        }
        return found
    }

    static let contentBytesMax: UInt32 = 64 << 20

    /// What a commit frame says after its record.
    ///
    /// - Throws: `damaged` when the frame or its content cannot be read, `limitExceeded` above
    ///   64 MiB, `ioFailed`.
    /// - Complexity: O(frame).
    public func content(of commit: CommitFrame) throws(EngineError) -> CommitContent {
        guard let scanned = try scan.commit(at: commit.offset) else {
            throw .damaged(
                "the commit at \(commit.offset.frameName) is damaged",
                place: commit.offset
            )
        }
        // Operations take more memory than bytes; what writers make is far below.
        guard scanned.header.rawLength <= Self.contentBytesMax else {
            throw EngineError(
                .limitExceeded,
                "commit \(commit.record.number.rawValue) says too much: "
                    + "\(scanned.header.rawLength) bytes",
                place: commit.offset
            )
        }
        do throws(FormatError) {
            var reader: ByteReader
            switch scanned.header.kind {
            case .tree, .checkpoint:
                reader = try Replay.bodyReader(scanned)
                let roots = try TreeRoots.decode(&reader, offset: scanned.offset)
                if scanned.header.kind == .checkpoint { return .trees(roots: roots, changes: []) }
                let changes = try ChangedObjects.decode(
                    &reader,
                    limit: UInt64(scanned.record.operationCount)
                )
                return .trees(roots: roots, changes: changes)
            case .delta:
                reader = try Replay.bodyReader(scanned)
                let places = try DeltaOps.decodePlaces(&reader, below: scanned.offset)
                let count = try reader.count("operation count", limit: reader.remaining)
                var operations: [DeltaOperation] = []
                for _ in 0..<count { operations.append(try DeltaOps.decodeOperation(&reader)) }
                return .changes(places: places, operations: operations)
            default: return .nothing
            }
        } catch {
            throw .damaged(error, place: commit.offset)
        }
    }

    /// The bytes of a large value or of a blob in the log, checked against their address.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    public func bytes(at place: ValuePlace) throws(EngineError) -> [UInt8] {
        try log.value(place)
    }

    /// Hands the file of a blob over piece by piece and checks its length and, at the end, its
    /// digest: what was handed over counts only when this returns.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `ioFailed`, and what `body` throws.
    public func readBlobFile(
        _ reference: BlobReference,
        _ body: ([UInt8]) throws(EngineError) -> Void
    ) throws(EngineError) {
        let store = BlobStore(files: blobs)
        var failure: EngineError?
        try store.engineError { () throws(BlobError) in
            let file = try blobs.open(reference)
            defer { file.close() }
            try file.forEachPiece { piece throws(BlobError) in
                if failure != nil { return }
                do throws(EngineError) { try body(piece) } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }

    /// Checks that the file of a blob is there with its length.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `ioFailed`.
    public func checkBlobFile(_ reference: BlobReference) throws(EngineError) {
        try BlobStore(files: blobs).engineError { () throws(BlobError) in
            try blobs.open(reference).close()
        }
    }
}
