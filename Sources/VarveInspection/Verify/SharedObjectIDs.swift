// Object IDs that rows of two entities have.
//
// No store is written like that: an ID is handed out once. Caches and contexts know objects by
// their ID alone, and would show the one row or the other.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

enum SharedObjectIDs {
    private struct Place {
        let entity: RecordEntity
        var cursor: TreeCursor
        var object: ObjectID
    }

    /// Calls `body` with each ID that rows of several entities have, ascending, and with those.
    ///
    /// Each tree is left where the next ID of another one lies, so that what lies between is not
    /// read.
    ///
    /// - Parameter goesOn: called for each step; false ends the walk.
    /// - Complexity: O(changes from entity to entity x (entities + log n)); a node a level and
    ///   entity in memory.
    static func forEach(
        _ entities: [RecordEntity],
        of snapshot: Snapshot,
        goesOn: () -> Bool,
        _ body: (ObjectID, [RecordEntity]) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        var places: [Place] = []
        for entity in entities {
            var cursor = snapshot.cursor(entity.tree)
            let object = try engine { () throws(EngineError) in
                try cursor.first() ? try cursor.trailingObjectID() : nil
            }
            guard let object else { continue }
            places.append(Place(entity: entity, cursor: cursor, object: object))
        }
        while places.count > 1, goesOn() {
            var lowest = ObjectID(.max)
            for place in places { lowest = min(lowest, place.object) }
            let holders = places.indices.filter { places[$0].object == lowest }
            if holders.count > 1 { try body(lowest, holders.map { places[$0].entity }) }
            var target: [UInt8]?
            if holders.count == 1 {
                var next = ObjectID(.max)
                for place in places where place.object != lowest { next = min(next, place.object) }
                var key: [UInt8] = []
                KeyCoding.appendObjectID(next, to: &key)
                target = key
            }
            for holder in holders.reversed() {
                let object = try engine { () throws(EngineError) -> ObjectID? in
                    let isThere =
                        if let target {
                            try places[holder].cursor.seek(atOrAfter: target)
                        } else {
                            try places[holder].cursor.next()
                        }
                    return isThere ? try places[holder].cursor.trailingObjectID() : nil
                }
                if let object, object > lowest {
                    places[holder].object = object
                } else {
                    places.remove(at: holder)
                }
            }
        }
    }
}

extension ContentChecks {
    /// Each ID is a row of one entity only, and below those that are still to be handed out.
    mutating func checkIdentities(_ entities: [RecordEntity]) throws(InspectionError) {
        let readable = entities.filter { damagedTrees[$0.tree] == nil }
        for entity in readable { try checkHighWater(entity) }
        var steps = 0
        var count = 0
        var objects: [String] = []
        let names = names
        var isCancelled = false
        var checks = self
        try SharedObjectIDs.forEach(
            readable,
            of: storage,
            goesOn: {
                steps += 1
                if steps % 4096 == 0 { isCancelled = !checks.goesOn() }
                return !isCancelled
            }
        ) { object, holders throws(InspectionError) in
            count += 1
            if objects.count < Self.objectsMax {
                objects += holders.map { names.object($0.id, object) }
            }
        }
        if isCancelled { report.isComplete = false }
        guard count > 0 else { return }
        report.add(
            problem(
                "object IDs",
                "\(count) are of rows of several entities; an ID belongs to one object",
                objects: objects
            )
        )
    }

    private mutating func checkHighWater(_ entity: RecordEntity) throws(InspectionError) {
        guard let highWater = observer.log.tail?.newest.record.objectIDHighWater,
            // At the end of the IDs the counter stays below the last.
            highWater < CommitRecord.countersEnd - 1
        else { return }
        var cursor = storage.cursor(entity.tree)
        let last = try engine { () throws(EngineError) in
            try cursor.last() ? try cursor.trailingObjectID() : nil
        }
        guard let last, last.rawValue >= highWater else { return }
        let object = names.object(entity.id, last)
        report.add(
            problem(
                "row \(object)",
                "the newest commit counts IDs up to \(highWater): one would be given twice",
                objects: [object]
            )
        )
    }
}
