// Index entries from rows: what the engine calls at commit and at replay.
//
// Invariants
// - A pure function of the stored schema and the row's bytes: no app code, no locale, no clock.
// - Every index of an entity gives exactly one entry per row, and a second one in its cut tree when
//   a value was cut. So an index's count is the entity's count.

internal import VarveBase
internal import VarveEngine
internal import VarveFormat

/// Derives index entries by a stored schema.
struct StoredDeriver: IndexDeriver {
    let schema: RecordSchema

    func tree(of entity: EntityID) throws(FormatError) -> TreeID {
        try stored(entity).tree
    }

    /// None: a row keeps the first bytes of a value outside it, and keys need no more.
    func indexedColumns(of entity: EntityID) -> [ColumnID] { [] }

    func covers(_ columns: [ColumnID], of entity: EntityID) -> Bool {
        guard let entity = schema.entity(entity) else { return true }
        return entity.indexes.contains { index in
            index.terms.contains { columns.contains($0.column) }
        }
    }

    func entries(
        entity: EntityID,
        object: ObjectID,
        row: [UInt8],
        changed: [ColumnID]?,
        emit: (TreeID, [UInt8]) -> Void
    ) throws(FormatError) {
        let entity = try stored(entity)
        if entity.indexes.isEmpty { return }
        let view = try RowView(row)
        // One array for all keys, unless who gets them keeps them.
        var key: [UInt8] = []
        key.reserveCapacity(64)
        // By number: a copy of each index would count references to all that it has.
        for number in entity.indexes.indices {
            let terms = entity.indexes[number].terms
            if let changed, !terms.contains(where: { changed.contains($0.column) }) {
                continue
            }
            key.removeAll(keepingCapacity: true)
            var isCut = false
            for term in terms {
                if try IndexKeys.append(view, entity, term, to: &key) { isCut = true }
            }
            KeyCoding.appendObjectID(object, to: &key)
            guard key.count <= IndexKeys.keyBytesMax else {
                throw FormatError(
                    place: "index key",
                    field: "length",
                    found: "\(key.count)",
                    expected: "at most \(IndexKeys.keyBytesMax), from columns of their types"
                )
            }
            emit(entity.indexes[number].tree, key)
            if isCut, let cutTree = entity.indexes[number].cutTree { emit(cutTree, key) }
        }
    }

    private func stored(_ id: EntityID) throws(FormatError) -> RecordEntity {
        if let entity = schema.entity(id) { return entity }
        throw FormatError(
            place: "schema",
            field: "entity",
            found: "\(id.rawValue)",
            expected: "a stored entity"
        )
    }
}
