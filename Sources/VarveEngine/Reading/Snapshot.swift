// A read transaction: one retained state.
//
// Invariants
// - Every read of a snapshot sees the same commit, whatever is written meanwhile.
// - Holding a snapshot pins its commit until the last reference goes; it blocks nobody.

public import VarveBase
internal import VarveFormat

/// The store as of one commit. Reads from any thread.
public final class Snapshot: Sendable {
    private let published: PublishedState
    let engine: Engine

    /// The commit that this snapshot shows.
    public let number: CommitNumber
    /// The generation's, and the state's. Here as well, since a way through two objects costs a
    /// read a reference count, of an object that all readers share.
    let nodes: NodeCache
    let trees: TreeTable
    private let publication: UInt64
    private let token: UInt64

    init(_ published: PublishedState, engine: Engine, token: UInt64) {
        self.published = published
        number = published.state.number
        nodes = published.state.generation.nodes
        trees = published.state.trees
        publication = published.state.publication
        self.engine = engine
        self.token = token
    }

    var state: StoreState { published.state }

    deinit { engine.unpin(publication: publication, token: token) }

    /// Whether both read the same state of the same file.
    public func isSame(as other: Snapshot) -> Bool {
        publication == other.publication && number == other.number
            && state.generation === other.state.generation && state.frame == other.state.frame
    }

    /// The same commit once more, held by somebody else.
    public func held(for owner: PinOwner) -> Snapshot { engine.pinned(published, for: owner) }

    /// The stored schema's bytes; empty in a store that was just created.
    public var schema: [UInt8] { state.schema }
    /// The stored schema's version; 0 in a store that was just created.
    public var schemaVersion: UInt32 { state.schemaVersion }

    private func tree(_ id: TreeID) -> Tree {
        Tree(id: id, root: trees[id] ?? .empty, loader: nodes, isPublished: true)
    }

    /// One row of an entity's tree, copied, or nil.
    /// - Complexity: O(log n).
    /// - Throws: `damaged`, `ioFailed`.
    public func row(_ tree: TreeID, _ object: ObjectID) throws(EngineError) -> StoredRow? {
        try self.tree(tree).row(object)
    }

    /// Lends one row to `body`, with the commit that last changed it: no lock, no copy, no
    /// allocation.
    ///
    /// `body` should be short: what is evicted from memory meanwhile is freed only after it. It
    /// may read more.
    /// - Complexity: O(log n).
    /// - Returns: false when there is no such row.
    /// - Throws: `damaged`, `ioFailed`.
    public func withRow(
        _ tree: TreeID,
        _ object: ObjectID,
        _ body: (CommitNumber, Span<UInt8>) -> Void
    ) throws(EngineError) -> Bool {
        try trees.visit(tree, object, nodes, reads: true, body) == .found
    }

    /// As `withRow`, but reads nothing from the file: nil when the row's page is not in memory.
    public func withRowInMemory(
        _ tree: TreeID,
        _ object: ObjectID,
        _ body: (CommitNumber, Span<UInt8>) -> Void
    ) throws(EngineError) -> Bool? {
        switch try trees.visit(tree, object, nodes, reads: false, body) {
        case .found: true
        case .absent: false
        case .notInMemory: nil
        }
    }

    /// Lends rows of ascending object IDs to `body`, with their positions in `objects`, until it
    /// says false; positions without a row are left out. A leaf's rows share one descent.
    /// - Complexity: O(IDs + leaves touched x depth), no allocation.
    public func withRows(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ body: (Int, CommitNumber, Span<UInt8>) -> Bool
    ) throws(EngineError) {
        let passes = objects.count >= NodeCache.passingMin.objects
        try trees.visit(tree, objects, nodes, passes: passes, body)
    }

    /// Whether there is such a row.
    /// - Complexity: O(log n).
    public func contains(_ tree: TreeID, _ object: ObjectID) throws(EngineError) -> Bool {
        try self.tree(tree).contains(object)
    }

    /// Rows of ascending object IDs in one pass; neighbours share a leaf.
    ///
    /// `body` gets the position in `objects` and the row; positions without one are left out.
    /// - Complexity: O(IDs + leaves touched x depth).
    public func rows(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ body: (Int, StoredRow) -> Void
    ) throws(EngineError) {
        try self.tree(tree).rows(objects, body)
    }

    /// The value of a key, or nil.
    /// - Complexity: O(log n).
    public func value(_ tree: TreeID, _ key: [UInt8]) throws(EngineError) -> [UInt8]? {
        try self.tree(tree).value(key)
    }

    /// Number of entries. - Complexity: O(1).
    public func count(_ tree: TreeID) -> UInt64 { trees.rows(tree) }

    /// Number of entries whose key is below `key`. - Complexity: O(log n).
    public func position(_ tree: TreeID, of key: [UInt8]) throws(EngineError) -> UInt64 {
        try trees.position(tree, of: key, nodes)
    }

    /// A cursor that stands nowhere yet.
    public func cursor(_ tree: TreeID) -> TreeCursor { TreeCursor(self.tree(tree)) }

    /// A `String`'s UTF-8 or a `Data`'s bytes that are kept outside their row.
    ///
    /// - Throws: `damaged` when the store has no such value, `ioFailed`.
    public func largeValue(
        entity: EntityID,
        object: ObjectID,
        column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        let key = EngineKeys.largeValue(entity, object, column)
        return try LargeValues.read(key, in: tree(.largeValues), state.generation.value)
    }

    /// Where a blob's bytes are, or nil when no row of this commit names it.
    func blobEntry(_ reference: BlobReference) throws(EngineError) -> BlobEntry? {
        guard let bytes = try tree(.blobs).value(EngineKeys.digest(reference.digest)) else {
            return nil
        }
        do throws(FormatError) {
            return try BlobEntry(decoding: bytes)
        } catch {
            throw .damaged(error)
        }
    }
}
