// Single rows on their way into the new store, and those that do not get there.
//
// Invariants
// - A row is handed on only when all of it can be read and its index entries can be derived: the
//   new store never refuses it.
// - What is taken out of a row, a value or a blob that is lost, is said.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension Salvage {
    /// A row of the commit that is kept, or one that is wanted in its place.
    func emit(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ stored: StoredRow,
        isRebuilt: Bool
    ) throws {
        guard object.rawValue < DeltaOps.newObjectsEnd else {
            lose(entity, object, "no object has an ID of 2^62 - 1 or above")
            return
        }
        var row = stored.bytes
        do {
            let view = try RowView(row)
            try view.validate()
            try rules.deriveEntries(entity: entity.id, object: object, row: row) { _, _ in }
            if view.holdsContentElsewhere {
                row = try complete(entity, object, view, version: stored.version)
            }
        } catch let error as FormatError {
            lose(entity, object, "it cannot be read: \(error)")
            return
        }
        damage.counts[entity.id]?.kept += 1
        if isRebuilt { damage.counts[entity.id]?.rebuilt += 1 }
        if let hole = damage.hole(entity.id, object) {
            damage.told[entity.id, default: []].insert(object)
            damage.pages[hole.page].rebuilt += 1
        }
        report.bytes += UInt64(row.count)
        try writer?.add(entity.id, object, row)
    }

    /// The row with its large values inside, and its blobs in the new store.
    private func complete(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ view: RowView,
        version: CommitNumber
    ) throws -> [UInt8] {
        var row = view.bytes
        var moved: [MovedValue] = []
        var missing: [(column: ColumnID, value: StoredValue?)] = []
        for column in try RowCoding.outsideColumns(in: row) {
            let outside = try view.outside(view.slot(column))
            let key = RowStories.ValueKey(entity: entity.id, object: object, column: column)
            let bytes = try finder.value(
                entity.id,
                object,
                column,
                outside,
                version: version,
                told: stories.values[key]
            )
            if let bytes {
                moved.append(MovedValue(column: column, isText: outside.isText, bytes: bytes))
                report.values += 1
            } else {
                missing.append((column, Self.replacement(entity, column)))
                tellLost(
                    entity,
                    object,
                    column,
                    "\(outside.length) bytes of \(outside.isText ? "text" : "data")",
                    "its frame is damaged; they begin: "
                        + Self.beginning(outside)
                )
            }
        }
        for index in 0..<view.columnCount {
            let slot = view.slot(at: index)
            guard slot.tag == RowTag.blob else { continue }
            let column = ColumnID(UInt16(index))
            let reference = try view.blob(slot)
            guard let reason = try keep(reference, entity, column) else { continue }
            missing.append((column, Self.replacement(entity, column)))
            tellLost(
                entity,
                object,
                column,
                "blob \(reference.digest.hexText), \(reference.length) bytes",
                reason
            )
        }
        if !missing.isEmpty {
            row = try RowPatch.apply(RowPatch.encode(missing), to: row)
        }
        return moved.isEmpty ? row : try RowCoding.movingInside(row, moved)
    }

    /// What stands for a value that is lost: nothing, or the declared default.
    private static func replacement(_ entity: RecordEntity, _ column: ColumnID) -> StoredValue? {
        if case .attribute(let attribute)? = entity.column(column), !attribute.isOptional {
            return nil
        }
        return .null
    }

    private static func beginning(_ outside: OutsideValue) -> String {
        outside.isText
            ? Spelling.escaped(String(decoding: outside.prefix, as: UTF8.self))
            : Spelling.base64(outside.prefix)
    }

    private func tellLost(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ column: ColumnID,
        _ what: String,
        _ reason: String
    ) {
        report.add(
            SalvageReport.LostValue(
                object: names.object(entity.id, object),
                attribute: entity.column(column)?.name ?? "column \(column.rawValue)",
                what: what,
                reason: reason
            ),
            to: \.lostValues
        )
    }

    /// Brings a blob into the new store; why it is lost, or nil.
    private func keep(
        _ reference: BlobReference,
        _ entity: RecordEntity,
        _ column: ColumnID
    ) throws -> String? {
        if try writer?.has(reference) ?? false { return nil }
        var reason = "it is not there"
        for place in try finder.places(of: reference, told: stories.blobs[reference]) {
            do throws(InspectionError) {
                let finder = finder
                if let writer {
                    var limit: UInt64?
                    if case .attribute(let attribute)? = entity.column(column) {
                        limit = attribute.externalLimit
                    }
                    let isRight = try writer.add(reference, externalLimit: limit) {
                        body throws(EngineError) in
                        try finder.read(reference, at: place, body)
                    }
                    guard isRight else {
                        reason = "its content is another one"
                        continue
                    }
                    report.blobs += 1
                    report.blobBytes += reference.length
                } else {
                    try check(reference, at: place)
                }
                try goOn(reference.length)
                return nil
            } catch {
                guard error.kind == .damaged else { throw error }
                reason = error.message
            }
        }
        return reason
    }

    /// For a plan: a frame whole, a file by its length.
    private func check(
        _ reference: BlobReference,
        at place: ValuePlace?
    ) throws(InspectionError) {
        let (log, finder) = (log, finder)
        try engine { () throws(EngineError) in
            if place == nil {
                try log.checkBlobFile(reference)
            } else {
                try finder.read(reference, at: place) { _ in }
            }
        }
        report.blobs += 1
        report.blobBytes += reference.length
    }

    // MARK: What is lost

    func lose(_ entity: RecordEntity, _ object: ObjectID, _ reason: String) {
        note(
            entity,
            SalvageReport.LostRow(object: names.object(entity.id, object), reason: reason),
            object
        )
    }

    private func note(_ entity: RecordEntity, _ row: SalvageReport.LostRow, _ object: ObjectID) {
        let place = report.lostRows.count
        let hasRoom = place < SalvageReport.listMax
        report.add(row, to: \.lostRows)
        if row.isUsed { return }
        damage.lose(entity.id, object, at: hasRoom ? place : nil)
        if let hole = damage.hole(entity.id, object) { damage.pages[hole.page].lose(object) }
    }

    /// A row that is not known as of the commit that is kept.
    func setAside(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ older: [UInt8]?,
        asOf commit: CommitNumber,
        _ reason: String
    ) throws {
        var lost = SalvageReport.LostRow(
            object: names.object(entity.id, object),
            reason: reason
        )
        if let older {
            lost.asOf = commit.rawValue
            lost.older = values(of: older, entity)
            if options.usesOlder {
                let before = damage.counts[entity.id]?.kept
                try emit(
                    entity,
                    object,
                    StoredRow(version: commit, bytes: older),
                    isRebuilt: false
                )
                lost.isUsed = damage.counts[entity.id]?.kept != before
                if !lost.isUsed { return }
            }
        }
        note(entity, lost, object)
    }

    /// The attributes of a row, for the report.
    private func values(of row: [UInt8], _ entity: RecordEntity) -> [SalvageReport.Value] {
        guard let view = try? RowView(row) else { return [] }
        var values: [SalvageReport.Value] = []
        for index in 0..<view.columnCount {
            let column = ColumnID(UInt16(index))
            guard let known = entity.column(column), let content = try? view.content(column) else {
                continue
            }
            let value: InspectedValue
            switch content {
            case .absent: continue
            case .outside(let outside):
                value = .unreadable("\(outside.length) bytes, \(Self.beginning(outside))")
            case .value(let stored):
                switch known {
                case .attribute(let attribute):
                    value = names.inspected(stored, attribute.type, target: nil)
                case .relationship(let relationship):
                    value = names.inspected(stored, nil, target: relationship.target)
                }
            }
            values.append(SalvageReport.Value(name: known.name, value: value))
        }
        return values
    }
}
