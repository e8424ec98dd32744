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
        guard let plan = schema.entity(entity)?.keyPlan else { return true }
        return plan.terms.contains { columns.contains($0.column) }
    }

    func entries(
        entity: EntityID,
        object: ObjectID,
        row: Span<UInt8>,
        changed: [ColumnID]?,
        into keys: inout EntryKeys
    ) throws(FormatError) {
        let entity = try stored(entity)
        // The indexes themselves have arrays, and each look at one would count references to it.
        let plan = entity.keyPlan
        if plan.indexes.isEmpty { return }
        let layout = try RowLayout(row)
        for number in plan.indexes.indices {
            let index = plan.indexes[number]
            if let changed, !plan.covers(changed, index) { continue }
            var isCut = false
            for term in index.terms {
                if try IndexKeys.append(row, layout, entity, plan.terms[term], to: &keys.bytes) {
                    isCut = true
                }
            }
            KeyCoding.appendObjectID(object, to: &keys.bytes)
            guard keys.openCount <= IndexKeys.keyBytesMax else {
                throw FormatError(
                    place: "index key",
                    field: "length",
                    found: "\(keys.openCount)",
                    expected: "at most \(IndexKeys.keyBytesMax), from columns of their types"
                )
            }
            keys.close(index.tree)
            if isCut, let cutTree = index.cutTree { keys.repeatLast(in: cutTree) }
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

/// What the keys of an entity's indexes are made of, without references in what is asked for with
/// every row.
struct KeyPlan: Sendable {
    struct Index: Sendable {
        let tree: TreeID
        let cutTree: TreeID?
        /// Where its columns stand in `terms`.
        let terms: Range<Int>
    }

    /// In the order of the entity's indexes.
    let indexes: [Index]
    /// The columns of all of them, one index after another.
    let terms: [RecordIndex.Term]

    init(_ indexes: [RecordIndex]) {
        var list: [Index] = []
        var terms: [RecordIndex.Term] = []
        for index in indexes {
            let start = terms.count
            terms += index.terms
            list.append(
                Index(tree: index.tree, cutTree: index.cutTree, terms: start..<terms.count)
            )
        }
        (self.indexes, self.terms) = (list, terms)
    }

    /// Whether an index has one of these columns.
    func covers(_ columns: [ColumnID], _ index: Index) -> Bool {
        index.terms.contains { columns.contains(terms[$0].column) }
    }
}
