// The objects that a damaged leaf held: their IDs, from what other trees say of them.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension ContentChecks {
    /// Names the objects of damaged leaves, as far as an index still knows them.
    mutating func nameHiddenObjects(_ entity: RecordEntity) throws(InspectionError) {
        guard let pages = damagedTrees[entity.tree], report.isComplete,
            let index = entity.indexes.first(where: { damagedTrees[$0.tree] == nil })
        else { return }
        // Pages that cannot be read do not overlap, and come in the order of their keys.
        var found: [Int: (count: Int, objects: [ObjectID])] = [:]
        do throws(InspectionError) {
            try observer.forEachEntry(index.tree, of: storage) { cursor throws(InspectionError) in
                try countEntry()
                let object = try engine { () throws(EngineError) in try cursor.trailingObjectID() }
                guard let page = Self.page(of: object, among: pages) else { return }
                found[page, default: (0, [])].count += 1
                if found[page, default: (0, [])].objects.count < Self.objectsMax {
                    found[page, default: (0, [])].objects.append(object)
                }
            }
        } catch {
            guard error.kind == .damaged else { throw error }
            return
        }
        let byPlace = Dictionary(
            found.map { (pages[$0.key].address.offset.rawValue, $0.value) },
            uniquingKeysWith: { first, _ in first }
        )
        for place in report.problems.indices {
            guard let offset = report.problems[place].place, let (count, objects) = byPlace[offset]
            else { continue }
            report.problems[place].objects = objects.sorted().map { names.object(entity.id, $0) }
            report.problems[place].details.append(
                "\(TreeNames.name(of: index, entity)) still lists \(count) of its rows"
            )
        }
    }

    /// The damaged page that an object lies in.
    private static func page(of object: ObjectID, among pages: [AuditedPage]) -> Int? {
        var key: [UInt8] = []
        KeyCoding.appendObjectID(object, to: &key)
        var (from, to) = (0, pages.count)
        while from < to {
            let middle = (from + to) / 2
            if ByteReader.compare(pages[middle].low, key) <= 0 {
                from = middle + 1
            } else {
                to = middle
            }
        }
        guard from > 0, pages[from - 1].high.map({ ByteReader.compare(key, $0) < 0 }) ?? true
        else { return nil }
        return from - 1
    }
}
