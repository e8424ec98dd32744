// The damaged pages of row trees, and what is lost with them.
//
// Invariants
// - Holes of an entity do not overlap: each is the range of keys that a parent gives a page.
// - What is kept of lost objects is bounded; what is not kept is counted.

import VarveBase
import VarveEngine
import VarveFormat

/// A range of keys of which no sound page is known yet.
struct SalvageHole {
    /// No key of it is smaller.
    let low: [UInt8]
    /// Every key of it is smaller; nil at the right edge.
    let high: [UInt8]?
    /// The damaged page, by its number in `SalvageDamage.pages`.
    let page: Int

    func contains(_ key: [UInt8]) -> Bool {
        ByteReader.compare(key, low) >= 0
            && (high.map { ByteReader.compare(key, $0) < 0 } ?? true)
    }

    func contains(_ object: ObjectID) -> Bool { contains(Self.key(object)) }

    /// The part of a page's range inside it.
    func part(_ page: AuditedPage) -> SalvageHole {
        let from = ByteReader.compare(page.low, low) > 0 ? page.low : low
        var to = high
        if let end = page.high, to.map({ ByteReader.compare(end, $0) < 0 }) ?? true { to = end }
        return SalvageHole(low: from, high: to, page: self.page)
    }

    static func key(_ object: ObjectID) -> [UInt8] {
        var key: [UInt8] = []
        KeyCoding.appendObjectID(object, to: &key)
        return key
    }
}

/// A damaged page of the commit that is kept.
struct SalvagePage {
    let page: AuditedPage
    let message: String
    let entity: EntityID
    /// Rows of it that were kept after all.
    var rebuilt: UInt64 = 0
    /// Where they came from.
    var source: CommitNumber?
    /// Whether all of its range was found elsewhere.
    var isCovered = true
    /// Objects known to be lost with it: how many, the first and the last.
    var lost: UInt64 = 0
    var first: ObjectID?
    var last: ObjectID?

    mutating func lose(_ object: ObjectID) {
        lost += 1
        first = min(first ?? object, object)
        last = max(last ?? object, object)
    }
}

struct SalvageDamage {
    /// Places in `SalvageReport.lostRows`, so that indexes can say more of them.
    private(set) var lost: [EntityID: [ObjectID: Int]] = [:]
    var counts: [EntityID: SalvageReport.Entity] = [:]
    var pages: [SalvagePage] = []
    var holes: [EntityID: [SalvageHole]] = [:]
    /// Objects in holes that were told by the log: kept, or gone.
    var told: [EntityID: Set<ObjectID>] = [:]

    /// Objects that are lost and in no list.
    private var unlisted: [EntityID: ObjectIDCollector] = [:]
    /// The same after `finish`.
    private var settled: [EntityID: ObjectIDSet] = [:]

    private static let holeBytes = 400

    mutating func add(
        _ page: AuditedPage,
        _ error: EngineError,
        _ entity: EntityID,
        _ options: SalvageOptions
    ) throws(InspectionError) {
        guard pages.count * Self.holeBytes < options.memoryBytesMax else {
            throw InspectionError(.limit, "more pages are damaged than memory is allowed for")
        }
        holes[entity, default: []].append(
            SalvageHole(low: page.low, high: page.high, page: pages.count)
        )
        pages.append(SalvagePage(page: page, message: error.message, entity: entity))
    }

    /// The hole that an object lies in.
    func hole(_ entity: EntityID, _ object: ObjectID) -> SalvageHole? {
        guard let holes = holes[entity], !holes.isEmpty else { return nil }
        // They ascend.
        let key = SalvageHole.key(object)
        var (from, to) = (0, holes.count)
        while from < to {
            let middle = (from + to) / 2
            if ByteReader.compare(holes[middle].low, key) <= 0 {
                from = middle + 1
            } else {
                to = middle
            }
        }
        guard from > 0, holes[from - 1].contains(key) else { return nil }
        return holes[from - 1]
    }

    func isHidden(_ entity: EntityID, _ object: ObjectID) -> Bool {
        hole(entity, object) != nil
    }

    /// Notes that an object in a hole is told; false: it was before.
    mutating func tellFirst(_ entity: EntityID, _ object: ObjectID) -> Bool {
        told[entity, default: []].insert(object).inserted
    }

    /// Whether an object lies in a hole, and nothing is told of it yet.
    func isOpen(_ entity: EntityID, _ object: ObjectID) -> Bool {
        isHidden(entity, object) && told[entity]?.contains(object) != true
    }

    var hasHoles: Bool { holes.values.contains { !$0.isEmpty } }

    mutating func lose(_ entity: EntityID, _ object: ObjectID, at place: Int?) {
        counts[entity]?.lost += 1
        if let place {
            lost[entity, default: [:]][object] = place
        } else {
            unlisted[entity, default: ObjectIDCollector()].add(object)
        }
    }

    /// To be called when all that is lost was told, in front of `isLost`.
    mutating func finish() {
        for entity in unlisted.keys { settled[entity] = unlisted[entity]?.finish() }
        unlisted = [:]
    }

    /// Whether an object is known to be lost, or may be.
    func isLost(_ entity: EntityID, _ object: ObjectID) -> Bool {
        if lost[entity]?[object] != nil || settled[entity]?.contains(object) == true {
            return true
        }
        return isOpen(entity, object)
    }

    func mayHaveLost(_ entity: EntityID) -> Bool {
        (counts[entity]?.lost ?? 0) > 0 || !(holes[entity]?.isEmpty ?? true)
    }
}
