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
        for index in entity.indexes {
            if let changed, !index.terms.contains(where: { changed.contains($0.column) }) {
                continue
            }
            var key: [UInt8] = []
            key.reserveCapacity(index.terms.count * 10 + 24)
            var isCut = false
            for term in index.terms {
                let absent = entity.defaultValue(term.column)
                if try IndexKeys.append(view, absent: absent, term, to: &key) { isCut = true }
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
            emit(index.tree, key)
            if isCut, let cutTree = index.cutTree { emit(cutTree, key) }
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
