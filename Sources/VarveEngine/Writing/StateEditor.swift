// Row changes applied to a state: the one way in, for transactions and for replay alike.
//
// Invariants
// - Applying the same operations to the same state gives trees of the same entries: index entries
//   come from `IndexDeriver`, blob counts and large values from the rows themselves. A replay may
//   join other nodes than the transaction did.
// - The base state is never touched; dropping the editor drops every change.

internal import VarveBase
internal import VarveFormat

final class StateEditor {
    private(set) var base: StoreState
    /// What the transaction began on; `base` moves with `freeze`.
    private let origin: StoreState
    private(set) var number: CommitNumber
    private var stamp: UInt64
    private let loader: NodeCache
    private let splitWeight: Int
    private let innerWeight: Int
    private let readPlace: (ValuePlace) throws(EngineError) -> [UInt8]

    // Asked for with every row. Exclusivity is not checked at run time: an editor has one thread,
    // and who reads or writes these calls nobody in between but a deriver: it knows no editor.
    @safe @exclusivity(unchecked) private var editors: [TreeID: TreeEditor] = [:]
    /// Where the row before went.
    @safe @exclusivity(unchecked) var lastRows: (entity: EntityID, editor: TreeEditor)?
    /// The keys of the row at hand; those of the row before it are forgotten.
    @safe @exclusivity(unchecked) var rowKeys = EntryKeys()
    /// Index entries that are not in their trees yet.
    @safe @exclusivity(unchecked) var pending = PendingIndexes()
    /// Older ones, in files.
    @safe @exclusivity(unchecked) private var runs: [TreeID: [SortedRun]] = [:]
    let changedNodes: TransactionNodes
    /// Whether something of this transaction is in the file, or in one of its own.
    private(set) var hasSpilled = false
    /// Budgets: waiting entries in bytes, nodes of imports and nodes of all kinds.
    private let pendingBytesMax: Int
    private let appendedNodesMax: Int
    private let changedNodesMax: Int
    /// Where to write what does not fit into memory; replays stay small.
    private let spill: Spill?
    @safe @exclusivity(unchecked) private(set) var deriver: (any IndexDeriver)?
    private(set) var schema: [UInt8]
    private(set) var schemaVersion: UInt32

    /// Replay only: where the commit put its large values, by key.
    @safe @exclusivity(unchecked) var incomingPlaces: [[UInt8]: ValuePlace] = [:]
    /// Large values of this transaction that are not in the file yet.
    private(set) var pendingValues: [[UInt8]: PendingValue] = [:]
    /// A large value came and went inside this transaction. It is written nowhere, so a replay
    /// could not derive the index entries that came and went with it: the commit must be a TREE.
    private(set) var hasUnloggedValues = false
    /// How the number of references to a blob changes.
    private(set) var blobChanges: [BlobReference: Int64] = [:]

    struct PendingValue {
        var entity: EntityID
        var object: ObjectID
        var value: MovedValue
    }

    init(
        base: StoreState,
        number: CommitNumber,
        stamp: UInt64,
        _ generation: Generation,
        _ options: EngineOptions,
        spill: Spill? = nil
    ) {
        self.spill = spill
        loader = generation.nodes
        splitWeight = options.nodeWeightMax
        innerWeight = options.innerSplitWeight
        // What a replay reads does not count.
        readPlace = { [isReplay = spill == nil] place throws(EngineError) in
            try isReplay ? generation.log.value(place) : generation.value(place)
        }
        pendingBytesMax = spill?.options.sortBytesMax ?? EngineOptions.replaySortBytesMax
        appendedNodesMax = (spill?.options.appendedBytesMax ?? .max) / splitWeight
        changedNodes = TransactionNodes(notedFrom: appendedNodesMax / 4)
        changedNodesMax = (spill?.options.changedBytesMax ?? .max) / splitWeight
        self.base = base
        origin = base
        self.number = number
        self.stamp = stamp
        deriver = base.deriver
        schema = base.schema
        schemaVersion = base.schemaVersion
    }

    /// A replay of several commits goes on with the next.
    func begin(_ next: CommitNumber) {
        number = next
        incomingPlaces = [:]
    }

    /// The state with every change in it.
    func finished() throws(EngineError) -> StoreState {
        try applyDeferredIndexes()
        var state = base
        state.number = number
        state.schema = schema
        state.schemaVersion = schemaVersion
        state.deriver = deriver
        for (id, editor) in editors {
            state.trees[id] = editor.root.rows == 0 ? nil : editor.root
        }
        return state
    }

    func tree(_ id: TreeID) throws(EngineError) -> Tree {
        try settleIndex(id)
        return editors[id]?.tree ?? base.tree(id, loader)
    }

    func baseTree(_ id: TreeID) -> Tree { base.tree(id, loader) }

    /// A tree as the transaction found it.
    func originTree(_ id: TreeID) -> Tree { origin.tree(id, loader) }

    /// Puts everything in place and keeps it as a state that never changes: what comes later copies
    /// the nodes of now. Values that are nowhere yet have to be placed before.
    ///
    /// - Parameter next: a stamp that no node has.
    func freeze(next: UInt64) throws(EngineError) -> StoreState {
        precondition(pendingValues.isEmpty, "a frozen state finds its values in the file")
        let state = try finished()
        for editor in editors.values { editor.retire() }
        editors = [:]
        lastRows = nil
        base = state
        stamp = next
        return state
    }

    /// To be used at once: index entries that come later may wait.
    func editor(_ id: TreeID) throws(EngineError) -> TreeEditor {
        try settleIndex(id)
        return currentEditor(id)
    }

    func currentEditor(_ id: TreeID) -> TreeEditor {
        if let existing = editors[id] { return existing }
        let editor = TreeEditor(
            id: id,
            stamp: stamp,
            loader: loader,
            splitWeight: splitWeight,
            innerWeight: innerWeight,
            root: base.trees[id] ?? .empty,
            changed: changedNodes
        )
        editors[id] = editor
        return editor
    }

    func setSchema(_ bytes: [UInt8], version: UInt32, deriver: any IndexDeriver) throws(EngineError)
    {
        schema = bytes
        schemaVersion = version
        self.deriver = deriver
        lastRows = nil
        try editor(.catalog).put(EngineKeys.schema, bytes)
        try editor(.catalog).put(EngineKeys.schema(version: version), bytes)
    }

    // MARK: Large values

    /// A large value as this state has it.
    func largeValue(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID
    ) throws(EngineError) -> [UInt8] {
        let key = EngineKeys.largeValue(entity, object, column)
        if let pending = pendingValues[key] { return pending.value.bytes }
        return try LargeValues.read(key, in: tree(.largeValues), readPlace)
    }

    // MARK: Places

    /// Notes where a large value is now.
    func place(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID,
        at place: ValuePlace
    ) throws(EngineError) {
        var writer = ByteWriter(capacity: 20)
        place.append(to: &writer)
        let key = EngineKeys.largeValue(entity, object, column)
        try editor(.largeValues).put(key, writer.bytes)
        pendingValues[key] = nil
    }

    /// Blobs that this transaction names and the store does not have yet, ascending by digest.
    func blobsWithoutPlace() throws(EngineError) -> [BlobReference] {
        var list: [BlobReference] = []
        for (reference, change) in blobChanges where change > 0 {
            if try tree(.blobs).value(EngineKeys.digest(reference.digest)) == nil {
                list.append(reference)
            }
        }
        return list.sorted { $0.digest < $1.digest }
    }

    /// Counts those references of new blobs that are there by now; what comes later is added then.
    /// Blobs that go wait for the end: another row may take them.
    func countBlobsNow(_ places: [BlobReference: BlobEntry.Place]) throws(EngineError) {
        let rest = blobChanges.filter { places[$0.key] == nil }
        blobChanges = blobChanges.filter { places[$0.key] != nil }
        try applyDeferredBlobs(places: places)
        blobChanges = rest
    }

    /// Brings the reference counts of blobs up to date. `places` knows the new ones.
    func applyDeferredBlobs(places: [BlobReference: BlobEntry.Place]) throws(EngineError) {
        // Ascending, so that two replays build the same pages.
        for (reference, change) in blobChanges.sorted(by: { $0.key.digest < $1.key.digest })
        where change != 0 {
            let key = EngineKeys.digest(reference.digest)
            let blobs = try editor(.blobs)
            var entry: BlobEntry
            if let bytes = try blobs.tree.value(key) {
                entry = try decoded { () throws(FormatError) in try BlobEntry(decoding: bytes) }
            } else if let place = places[reference] {
                entry = BlobEntry(references: 0, length: reference.length, place: place)
            } else {
                throw EngineError(
                    .invalid,
                    "a row names the blob \(reference.digest.shortName), which was never written"
                )
            }
            let (count, overflow) = Int64(clamping: entry.references)
                .addingReportingOverflow(change)
            guard count >= 0, !overflow else {
                throw .damaged("blob \(reference.digest.shortName) has a wrong count of rows")
            }
            if count > 0 {
                entry.references = UInt64(count)
                try blobs.put(key, entry.encoded())
            } else {
                try blobs.remove(key)
                if entry.place == .file {
                    try editor(.droppedBlobs).put(
                        EngineKeys.dropped(reference.digest, by: number),
                        []
                    )
                }
            }
        }
        blobChanges = [:]
    }

    // MARK: Steps

    func keep(_ entity: EntityID, _ object: ObjectID, _ value: MovedValue) {
        pendingValues[EngineKeys.largeValue(entity, object, value.column)] =
            PendingValue(entity: entity, object: object, value: value)
    }

    /// Replay: large values that the row names get the places that the commit lists.
    func takeIncoming(
        _ entity: EntityID,
        _ object: ObjectID,
        _ row: [UInt8],
        changed: [ColumnID]?
    ) throws(EngineError) {
        guard !incomingPlaces.isEmpty else { return }
        let outside = try decoded { () throws(FormatError) in
            try RowCoding.outsideColumns(in: row)
        }
        for column in outside where changed?.contains(column) ?? true {
            let key = EngineKeys.largeValue(entity, object, column)
            if let place = incomingPlaces[key] { try self.place(entity, object, column, at: place) }
        }
    }

    func forget(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID
    ) throws(EngineError) {
        let key = EngineKeys.largeValue(entity, object, column)
        if pendingValues.removeValue(forKey: key) != nil { hasUnloggedValues = true }
        try editor(.largeValues).remove(key)
    }

    /// The row with the large values back inside that an index needs; usually the row itself.
    func derivableRow(
        _ entity: EntityID,
        _ object: ObjectID,
        _ stored: [UInt8]
    ) throws(EngineError) -> [UInt8] {
        guard let deriver else { return stored }
        let outside = try decoded { () throws(FormatError) in
            try RowCoding.outsideColumns(in: stored)
        }
        guard !outside.isEmpty else { return stored }
        let indexed = deriver.indexedColumns(of: entity)
        var values: [MovedValue] = []
        let view = try decoded { () throws(FormatError) in try RowView(stored) }
        for column in outside where indexed.contains(column) {
            let kind = try decoded { () throws(FormatError) in
                try view.outside(view.slot(column))
            }
            values.append(
                MovedValue(
                    column: column,
                    isText: kind.isText,
                    bytes: try largeValue(entity, object, column)
                )
            )
        }
        if values.isEmpty { return stored }
        return try decoded { () throws(FormatError) in
            try RowCoding.movingInside(stored, values)
        }
    }

    /// Notes the index entries of a row that comes or goes.
    func noteEntries(
        _ entity: EntityID,
        _ object: ObjectID,
        _ row: Span<UInt8>,
        removes: Bool
    ) throws(EngineError) {
        rowKeys.begin()
        try deriveKeys(entity, object, row, changed: nil)
        pending.add(rowKeys, 0..<rowKeys.count, removes: removes)
    }

    /// Entries of a row that is there already, for an index that is built anew.
    func addEntries(
        _ entity: EntityID,
        _ object: ObjectID,
        _ row: [UInt8],
        of indexes: [TreeID]
    ) throws(EngineError) {
        rowKeys.begin()
        try deriveKeys(entity, object, row.span, changed: nil)
        for index in 0..<rowKeys.count where indexes.contains(rowKeys.tree(index)) {
            pending.add(rowKeys, index..<index + 1, removes: false)
        }
        try settleIndexesIfMany()
    }

    // MARK: Index entries that wait

    /// Puts everything that waits for one tree in place.
    private func settleIndex(_ id: TreeID) throws(EngineError) {
        guard runs[id] != nil || pending.bytes > 0 else { return }
        if let entries = pending.take(id) { try applyDeferred(entries, id) }
        // Also when the rest was put aside, so that all goes into the tree in one pass.
        if let runs = runs.removeValue(forKey: id) { try merge(runs, id) }
    }

    /// Puts entries aside when others were before, else in place.
    private func applyDeferred(_ waiting: PendingEntries, _ id: TreeID) throws(EngineError) {
        var entries = waiting
        entries.sort()
        if runs[id] != nil, try putAside(entries, id) { return pending.giveBack(entries, id) }
        if let older = runs.removeValue(forKey: id) { try merge(older, id) }
        try apply(entries, id)
        pending.giveBack(entries, id)
    }

    /// Puts sorted entries in place, writing nodes when they become many.
    ///
    /// - Parameter isBehindAll: whether all others were in front of them.
    private func apply(
        _ sorted: PendingEntries,
        _ id: TreeID,
        isBehindAll: Bool = false
    ) throws(EngineError) {
        let editor = currentEditor(id)
        let base = baseTree(id)
        // What this transaction has changed already is not where the base state has it.
        let isCurrent = (isBehindAll || editor.changed == 0) && base.root.rows > 0
        let ahead =
            isCurrent
            ? LeafReadAhead.start(sorted.count, spill?.options) { index throws(EngineError) in
                try base.restoreLeaf(of: index, sorted)
            } : nil
        defer { ahead?.end() }
        try editor.apply(sorted) { before, next throws(EngineError) in
            ahead?.advance(from: before, to: next)
            // What other trees hold does not go by writing this one.
            if changedNodes.count > appendedNodesMax, editor.changed > appendedNodesMax / 8 {
                try write([editor])
            }
        }
    }

    /// False when that is not possible.
    private func putAside(_ sorted: PendingEntries, _ id: TreeID) throws(EngineError) -> Bool {
        guard let run = spill?.putAside(sorted) else { return false }
        hasSpilled = true
        runs[id, default: []].append(run)
        return true
    }

    /// What waits in files, in one pass; what is finished after it is written at once.
    private func merge(_ older: [SortedRun], _ id: TreeID) throws(EngineError) {
        var merge = try RunMerge(older)
        while true {
            let chunk = try merge.nextChunk(1 << 20)
            if chunk.isEmpty { return }
            try apply(chunk, id, isBehindAll: true)
        }
    }

    /// Keeps what waits within its budget.
    func settleIndexesIfMany() throws(EngineError) {
        guard pending.bytes > pendingBytesMax else { return }
        pending.endMemory()
        for id in pending.trees {
            // Few entries are cheaper to keep.
            guard pending.bytes(of: id) > pendingBytesMax / 16, var entries = pending.take(id)
            else { continue }
            entries.sort()
            if try putAside(entries, id) {
                // The next ones take the same memory, untouched by the system.
                pending.giveBack(consume entries, id, keepsAll: true)
            } else {
                try applyDeferred(entries, id)
            }
        }
    }

    // MARK: Memory

    /// Changed nodes in memory.
    var changedNodeCount: Int { changedNodes.count }

    /// Writes changed nodes when there are many. To be called between changes.
    func spillIfLarge() throws(EngineError) {
        guard changedNodes.count > appendedNodesMax else { return }
        // What an import leaves behind itself is written once. Other changes may come back to their
        // nodes, so these wait until there are more.
        let isLarge = changedNodes.count > changedNodesMax
        // A tree with few of them gives little: at each change it would be written page by page.
        let few = (isLarge ? changedNodesMax : appendedNodesMax) / 8
        let chosen = editors.values.filter {
            $0.changed > few && (isLarge || $0.isAppending)
        }
        if !chosen.isEmpty { try write(chosen.sorted { $0.id < $1.id }) }
    }

    /// Writes changed nodes of an entity's rows when there are many. Only while changes come in the
    /// order of objects: what lies after them is finished.
    func spillFinished(_ entity: EntityID) throws(EngineError) {
        guard changedNodes.count > appendedNodesMax else { return }
        let rows = try rowEditor(entity)
        if rows.changed > appendedNodesMax / 8 { try write([rows]) }
    }

    private func write(_ editors: [TreeEditor]) throws(EngineError) {
        guard let spill else { return }
        hasSpilled = true
        try spill.write(editors, loader, commit: number, changedNodes)
    }

    /// Puts every index entry in place: the last thing before the commit takes the log.
    func applyDeferredIndexes() throws(EngineError) {
        for id in pending.trees { try settleIndex(id) }
        pending.endMemory()
        for id in runs.keys.sorted() { try settleIndex(id) }
    }

    /// Adds the keys of a row to `rowKeys`.
    func deriveKeys(
        _ entity: EntityID,
        _ object: ObjectID,
        _ row: Span<UInt8>,
        changed: [ColumnID]?
    ) throws(EngineError) {
        guard let deriver else { return }
        do throws(FormatError) {
            try deriver.entries(
                entity: entity,
                object: object,
                row: row,
                changed: changed,
                into: &rowKeys
            )
        } catch {
            throw EngineError.damaged(error)
        }
    }

    func countBlobs(in row: [UInt8], by change: Int64) throws(EngineError) {
        let references = try decoded { () throws(FormatError) in
            try RowCoding.blobReferences(in: row)
        }
        for reference in references { blobChanges[reference, default: 0] += change }
    }
}
