// A state of a transaction that is not committed, kept for reading while the transaction goes on.
//
// Invariants
// - Its nodes never change: the transaction that made it changes copies of them.
// - Every value and blob that it names lies in the file, or in a file of its own.
// - It is worth something as long as its transaction lasts, or when that became a commit: bytes
//   that a transaction left behind belong to nobody.

public import VarveBase
internal import VarveFormat

/// What a transaction held when it was frozen. Reads from any thread.
public final class FrozenState: Sendable {
    private let state: StoreState
    private let engine: Engine

    init(_ state: StoreState, _ engine: Engine) {
        self.state = state
        self.engine = engine
    }

    private func tree(_ id: TreeID) -> Tree { state.tree(id, isPublished: true) }

    /// The stored schema's bytes.
    public var schema: [UInt8] { state.schema }

    /// One row of an entity's tree, copied, or nil.
    /// - Throws: `damaged`, `ioFailed`; so do the others.
    /// - Complexity: O(log n).
    public func row(_ tree: TreeID, _ object: ObjectID) throws(EngineError) -> StoredRow? {
        try self.tree(tree).row(object)
    }

    /// Rows of ascending object IDs in one pass; see `Snapshot.rows`.
    public func rows(
        _ tree: TreeID,
        _ objects: [ObjectID],
        _ body: (Int, StoredRow) -> Void
    ) throws(EngineError) {
        try self.tree(tree).rows(objects, body)
    }

    /// Number of entries. - Complexity: O(1).
    public func count(_ tree: TreeID) throws(EngineError) -> UInt64 { state.trees.rows(tree) }

    /// Number of entries whose key is below `key`. - Complexity: O(log n).
    public func position(_ tree: TreeID, of key: [UInt8]) throws(EngineError) -> UInt64 {
        try self.tree(tree).position(of: key)
    }

    /// A cursor that stands nowhere yet.
    public func cursor(_ tree: TreeID) throws(EngineError) -> TreeCursor {
        TreeCursor(self.tree(tree))
    }

    /// A `String`'s UTF-8 or a `Data`'s bytes that are kept outside their row.
    public func largeValue(
        entity: EntityID,
        object: ObjectID,
        column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        let key = EngineKeys.largeValue(entity, object, column)
        return try LargeValues.read(key, in: tree(.largeValues), state.generation.value)
    }

    /// Opens a blob that a row of this state names; nil when none does.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `damaged`, `ioFailed`.
    public func blob(_ reference: BlobReference) throws(EngineError) -> BlobReader? {
        guard let bytes = try tree(.blobs).value(EngineKeys.digest(reference.digest)) else {
            return nil
        }
        let entry = try decoded { () throws(FormatError) in try BlobEntry(decoding: bytes) }
        switch entry.place {
        case .frame(let place):
            let bytes = try state.generation.value(place)
            return BlobReader(reference, .bytes(bytes), engine.blobStore, keeping: self)
        case .file:
            let file = try engine.blobStore.engineError { () throws(BlobError) in
                try engine.blobStore.files.open(reference)
            }
            return BlobReader(reference, .file(file), engine.blobStore, keeping: self)
        }
    }
}
