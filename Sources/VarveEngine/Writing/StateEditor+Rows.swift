// Rows as a transaction or a replay changes them: the row itself, its index entries, and what it
// holds elsewhere.
//
// Invariants
// - Most rows hold nothing elsewhere. They are changed where they lie, without being taken apart.
// - A row and its entries change together: entries come from the rows before and after.

internal import VarveBase
internal import VarveFormat

extension StateEditor {
    /// The tree of an entity's rows.
    func rowTree(_ entity: EntityID) throws(EngineError) -> TreeID {
        guard let deriver else {
            throw EngineError(.invalid, "the store has no schema yet, so it can hold no rows")
        }
        do throws(FormatError) {
            return try deriver.tree(of: entity)
        } catch {
            throw EngineError(.invalid, error.description, cause: error)
        }
    }

    /// The editor of an entity's rows. They have no entries that wait.
    func rowEditor(_ entity: EntityID) throws(EngineError) -> TreeEditor {
        if let lastRows, lastRows.entity == entity { return lastRows.editor }
        let editor = currentEditor(try rowTree(entity))
        lastRows = (entity, editor)
        return editor
    }

    /// Adds a row that has no blob and nothing outside it, without looking through it again.
    func insertPlain(
        _ entity: EntityID,
        _ object: ObjectID,
        row: [UInt8]
    ) throws(EngineError) {
        precondition(incomingPlaces.isEmpty, "a replay looks for large values")
        guard try rowEditor(entity).insertRow(object, number, row) else {
            throw Self.existsAlready(entity, object)
        }
        try noteEntries(entity, object, row.span, removes: false)
        try settleIndexesIfMany()
    }

    private static func existsAlready(_ entity: EntityID, _ object: ObjectID) -> EngineError {
        EngineError(
            .invalid,
            "object \(object.rawValue) of entity \(entity.rawValue) exists already"
        )
    }

    /// Adds a row in stored form (large values already outside).
    func insert(
        _ entity: EntityID,
        _ object: ObjectID,
        stored: [UInt8],
        moved: [MovedValue]
    ) throws(EngineError) {
        for value in moved { keep(entity, object, value) }
        try takeIncoming(entity, object, stored, changed: nil)
        guard try rowEditor(entity).insertRow(object, number, stored) else {
            throw Self.existsAlready(entity, object)
        }
        let row = try derivableRow(entity, object, stored)
        try noteEntries(entity, object, row.span, removes: false)
        try settleIndexesIfMany()
        try countBlobs(in: stored, by: 1)
    }

    /// Changes columns of a row. The patch is in stored form.
    func update(
        _ entity: EntityID,
        _ object: ObjectID,
        patch: borrowing RowPatch,
        moved: [MovedValue]
    ) throws(EngineError) {
        if moved.isEmpty, incomingPlaces.isEmpty, try updatePlain(entity, object, patch) { return }
        let rows = try rowEditor(entity)
        guard let old = try rows.tree.row(object) else { throw Self.isMissing(entity, object) }
        let new = try decoded { () throws(FormatError) in try patch.applied(to: old.bytes) }
        let before = try derivableRow(entity, object, old.bytes)
        // Values of changed columns that were outside and are replaced or gone.
        let wasOutside = try decoded { () throws(FormatError) in
            try RowCoding.outsideColumns(in: old.bytes)
        }
        for column in wasOutside where patch.columns.contains(column) {
            try forget(entity, object, column)
        }
        for value in moved { keep(entity, object, value) }
        try takeIncoming(entity, object, new, changed: patch.columns)
        // Found by its object, and not by its key: a forged page above it leads both ways.
        if try rows.put(EngineKeys.object(object), EngineKeys.rowValue(number, new)) {
            throw .damaged("row \(object.rawValue) of entity \(entity.rawValue) is misplaced")
        }
        let after = try derivableRow(entity, object, new)
        rowKeys.begin()
        try deriveKeys(entity, object, before.span, changed: patch.columns)
        let oldKeys = rowKeys.count
        try deriveKeys(entity, object, after.span, changed: patch.columns)
        try changeEntries(removing: oldKeys)
        try countBlobs(in: old.bytes, by: -1)
        try countBlobs(in: new, by: 1)
    }

    /// The usual change: nothing of the row is, or comes to lie, outside it. False, and nothing
    /// happened, when that is not so.
    private func updatePlain(
        _ entity: EntityID,
        _ object: ObjectID,
        _ patch: borrowing RowPatch
    ) throws(EngineError) -> Bool {
        if patch.holdsContentElsewhere { return false }
        let isIndexed = deriver?.covers(patch.columns, of: entity) ?? false
        rowKeys.begin()
        var old = 0
        let isChanged = try rowEditor(entity).changeRow(object) {
            row,
            value throws(EngineError) in
            let layout = try decoded { () throws(FormatError) in try RowLayout(row) }
            if layout.holdsContentElsewhere { return false }
            EngineKeys.append(number, to: &value)
            let start = value.count
            patch.apply(to: row, layout, into: &value)
            if isIndexed {
                try deriveKeys(entity, object, row, changed: patch.columns)
                old = rowKeys.count
                let new = value.span.extracting(start...)
                try deriveKeys(entity, object, new, changed: patch.columns)
            }
            return true
        }
        guard let isChanged else { throw Self.isMissing(entity, object) }
        if isChanged, isIndexed { try changeEntries(removing: old) }
        return isChanged
    }

    /// Index entries of a changed row: what goes and what comes.
    ///
    /// - Parameter old: how many of `rowKeys` the row had before; the others it has now.
    private func changeEntries(removing old: Int) throws(EngineError) {
        let (before, after) = (0..<old, old..<rowKeys.count)
        pending.add(rowKeys, before, notIn: after, removes: true)
        pending.add(rowKeys, after, notIn: before, removes: false)
        try settleIndexesIfMany()
    }

    static func isMissing(_ entity: EntityID, _ object: ObjectID) -> EngineError {
        EngineError(
            .objectMissing,
            "object \(object.rawValue) of entity \(entity.rawValue) does not exist",
            subject: (entity, object)
        )
    }

    /// Takes a row out; false when there is none.
    func deleteIfPresent(_ entity: EntityID, _ object: ObjectID) throws(EngineError) -> Bool {
        if incomingPlaces.isEmpty {
            switch try deletePlain(entity, object) {
            case nil: return false
            case true?: return true
            case false?: break
            }
        }
        let rows = try rowEditor(entity)
        guard let old = try rows.tree.row(object) else { return false }
        let row = try derivableRow(entity, object, old.bytes)
        try noteEntries(entity, object, row.span, removes: true)
        try settleIndexesIfMany()
        let outside = try decoded { () throws(FormatError) in
            try RowCoding.outsideColumns(in: old.bytes)
        }
        for column in outside { try forget(entity, object, column) }
        try rows.removeExisting(EngineKeys.object(object))
        try countBlobs(in: old.bytes, by: -1)
        return true
    }

    /// The same for a row that has no blob and nothing outside it, in one descent; else false.
    /// Nil when there is none.
    private func deletePlain(_ entity: EntityID, _ object: ObjectID) throws(EngineError) -> Bool? {
        let isGone = try rowEditor(entity).removeRow(object) { row throws(EngineError) in
            let layout = try decoded { () throws(FormatError) in try RowLayout(row) }
            if layout.holdsContentElsewhere { return false }
            try noteEntries(entity, object, row, removes: true)
            return true
        }
        if isGone == true { try settleIndexesIfMany() }
        return isGone
    }
}
