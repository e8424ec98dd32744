// What is known of lost rows, and the references that led to them.
//
// Invariants
// - Indexes are asked for objects and attributes of lost rows; that enters the report only.
// - A reference is cleared only when it leads to an object that is lost and not there.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension Salvage {
    /// Asks an entity's indexes for the objects of damaged pages and for their attributes.
    func askIndexes(about entity: RecordEntity) throws {
        guard damage.mayHaveLost(entity.id) else { return }
        var named: [Int: UInt64] = [:]
        var isNamed = false
        for index in entity.indexes {
            guard let root = roots[index.tree] else { continue }
            // Each index has every row once: the first that is whole names them all.
            var isWhole = true
            var found: [Int: UInt64] = [:]
            try log.forEachEntry(
                of: root,
                from: [],
                to: nil,
                entry: { key, _ in
                    try goOn(UInt64(key.count))
                    guard key.count >= 8 else { return }
                    var reader = ByteReader(Array(key.suffix(8)), place: "index key")
                    let object = ObjectID(try reader.u64("object").byteSwapped)
                    if let hole = damage.hole(entity.id, object),
                        damage.told[entity.id]?.contains(object) != true,
                        damage.lost[entity.id]?[object] == nil, !isNamed
                    {
                        found[hole.page, default: 0] += 1
                        lose(entity, object, "its page is damaged")
                    }
                    if let place = damage.lost[entity.id]?[object] {
                        know(place, index, entity, key)
                    }
                },
                damaged: { _, _ in isWhole = false }
            )
            named.merge(found) { $0 + $1 }
            isNamed = isNamed || isWhole
        }
        for (number, page) in damage.pages.enumerated()
        where page.entity == entity.id && !page.isCovered {
            let known = min(page.page.rows, page.rebuilt + (named[number] ?? 0))
            if !isNamed, page.lost + page.rebuilt < page.page.rows {
                damage.counts[entity.id]?.unnamed += page.page.rows - max(known, page.lost)
            }
        }
    }

    private func know(
        _ place: Int,
        _ index: RecordIndex,
        _ entity: RecordEntity,
        _ key: [UInt8]
    ) {
        guard report.lostRows.indices.contains(place) else { return }
        var reader = ByteReader(key, place: "index key")
        for term in index.terms {
            guard let part = try? KeyCoding.decode(&reader, descending: term.isDescending) else {
                return
            }
            guard let column = entity.column(term.column),
                !report.lostRows[place].known.contains(where: { $0.name == column.name })
            else { continue }
            var value: InspectedValue
            switch part {
            case .value(let stored):
                switch column {
                case .attribute(let attribute):
                    value = names.inspected(stored, attribute.type, target: nil)
                case .relationship(let relationship):
                    value = names.inspected(stored, nil, target: relationship.target)
                }
            case .cut(_, let prefix):
                value = .unreadable("begins with " + String(decoding: prefix, as: UTF8.self))
            }
            report.lostRows[place].known.append(
                SalvageReport.Value(name: column.name, value: value)
            )
        }
    }

    /// Says of each damaged page what became of its rows.
    func tellDamage() {
        for page in damage.pages {
            let frame = try? log.frame(at: page.page.address.offset)
            let isLeaf = page.page.level == 0
            var outcome: [String] = []
            if page.rebuilt > 0 {
                let source = page.source.map { " as of \(Spelling.commit($0.rawValue))" } ?? ""
                outcome.append(
                    "\(page.rebuilt) rows put together from older pages\(source) and the commits "
                        + "since"
                )
            }
            if page.lost > 0, let first = page.first, let last = page.last {
                let entity = page.entity
                outcome.append(
                    "\(page.lost) rows lost, \(names.object(entity, first)) … "
                        + names.object(entity, last)
                )
            }
            if outcome.isEmpty {
                outcome.append(
                    page.isCovered ? "all of its rows were deleted" : "none of its rows is known"
                )
            }
            report.add(
                SalvageReport.Damage(
                    subject: (isLeaf ? "leaf of " : "inner page of ") + names.name(page.page.tree),
                    place: page.page.address.offset.rawValue,
                    bytes: page.page.address.frameLength,
                    rows: page.page.rows,
                    writtenBy: frame?.page.map { $0.commit.rawValue },
                    message: page.message,
                    outcome: outcome.joined(separator: "; ")
                ),
                to: \.damage
            )
        }
    }

    /// Says which pages of other trees cannot be read: indexes follow from rows.
    func checkOtherTrees() throws {
        let rows = Set(schema.all.map(\.tree))
        for root in roots.values.sorted(by: { $0.tree < $1.tree }) where !rows.contains(root.tree) {
            if root.tree > .largeValues, root.tree < .firstFree {
                report.notes.append("\(names.name(root.tree)) is of a later version: not copied")
            }
            let outcome =
                names.indexes[root.tree] != nil
                ? "built anew from the rows" : "found in older pages, or listed as lost"
            var bytes: UInt64 = 0
            var goesOn = true
            _ = try log.audit(root) { page, error in
                bytes += page.address.frameLength
                if let error {
                    report.add(
                        SalvageReport.Damage(
                            subject: page.kindOfTree + names.name(page.tree),
                            place: page.address.offset.rawValue,
                            bytes: page.address.frameLength,
                            rows: page.rows,
                            message: error.message,
                            outcome: outcome
                        ),
                        to: \.damage
                    )
                }
                goesOn = progress(bytes, report.damage.count)
                return goesOn
            }
            if !goesOn {
                throw InspectionError(.cancelled, "the recovery was ended; nothing was written")
            }
        }
    }

    // MARK: References

    /// Of rows of several entities with one ID the first entity's stays. A plan, which writes
    /// nothing, does not know of them.
    func dropSharedIDs(in writer: SalvageWriter) throws {
        var dropped: [(entity: RecordEntity, object: ObjectID)] = []
        func drop() throws(InspectionError) {
            try writer.write { transaction in
                for (entity, object) in dropped { try transaction.delete(entity.id, object) }
            }
            dropped = []
            try goOn(0)
        }
        let snapshot = writer.store.engine.snapshot()
        var steps = 0
        try SharedObjectIDs.forEach(
            schema.all,
            of: snapshot,
            step: { () throws(InspectionError) in
                steps += 1
                if steps % 4096 == 0 { try goOn(0) }
            }
        ) { object, holders throws(InspectionError) in
            for entity in holders.dropFirst() {
                lose(entity, object, "\(holders[0].name) has a row with the same object ID")
                damage.counts[entity.id]?.kept -= 1
                dropped.append((entity, object))
            }
            if dropped.count >= 1024 { try drop() }
        }
        if !dropped.isEmpty { try drop() }
    }

    /// Takes out references to lost rows, in the new store.
    func clearReferences(in writer: SalvageWriter) throws {
        damage.finish()
        for entity in schema.all {
            for relationship in entity.relationships {
                guard case .column(let column, let index) = relationship.storage,
                    let target = schema.entity(relationship.target),
                    damage.mayHaveLost(target.id)
                else { continue }
                var from: [UInt8] = []
                while let next = try clear(
                    relationship,
                    entity,
                    column,
                    index,
                    target,
                    from: from,
                    writer
                ) {
                    from = next
                }
            }
        }
    }

    /// Clears some thousand references; where to go on, or nil at the end.
    private func clear(
        _ relationship: RecordRelationship,
        _ entity: RecordEntity,
        _ column: ColumnID,
        _ index: TreeID,
        _ target: RecordEntity,
        from start: [UInt8],
        _ writer: SalvageWriter
    ) throws -> [UInt8]? {
        let snapshot = writer.store.engine.snapshot()
        var dangling: [(object: ObjectID, target: ObjectID)] = []
        var cursor = snapshot.cursor(index)
        var more = try cursor.seek(atOrAfter: start)
        var next: [UInt8]?
        while more {
            let key = cursor.key
            var reader = ByteReader(key, place: "index key")
            if case .value(.reference(let wanted)) = try KeyCoding.decode(&reader),
                damage.isLost(target.id, wanted), try snapshot.row(target.tree, wanted) == nil
            {
                dangling.append((try cursor.trailingObjectID(), wanted))
            }
            if dangling.count == 4096 {
                next = key + [0]
                break
            }
            more = try cursor.next()
        }
        try goOn(0)
        guard !dangling.isEmpty else { return nil }
        try writer.write { transaction in
            for (object, _) in dangling {
                if entity.isHiddenLink {
                    try transaction.delete(entity.id, object)
                } else {
                    try transaction.update(
                        entity.id,
                        object,
                        patch: RowPatch.encode([(column, .null)])
                    )
                }
            }
        }
        for (object, lost) in dangling {
            report.clearedCount += 1
            report.add(
                "\(names.object(entity.id, object)).\(relationship.name) -> "
                    + names.object(target.id, lost),
                to: \.clearedReferences
            )
        }
        return next
    }
}
