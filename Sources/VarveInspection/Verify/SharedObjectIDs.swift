// Object IDs that rows of two entities have, and IDs that are still to be handed out.
//
// The store's own calls make neither: an ID is handed out once. Caches and contexts know objects by
// their ID alone, and would show the one row or the other.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

enum SharedObjectIDs {
    private struct Place {
        let object: ObjectID
        /// Number of the entity in the list.
        let entity: Int
    }

    /// Calls `body` with each ID that rows of several entities have, ascending, and with those.
    ///
    /// Each tree is left where the next ID of another one lies, so that what lies between is not
    /// read. No page is held from step to step. Keys that are no object ID are passed over.
    ///
    /// - Parameter step: called before each step; throws to end the walk.
    /// - Complexity: O(changes from entity to entity x (entities + log n)), where the first factor
    ///   in the brackets is a move of memory; 16 bytes an entity.
    static func forEach(
        _ entities: [RecordEntity],
        of snapshot: Snapshot,
        step: () throws(InspectionError) -> Void,
        _ body: (ObjectID, [RecordEntity]) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        // Descending: the lowest ID comes last, of equal ones the first entity.
        var places: [Place] = []
        func add(_ entity: Int, from object: ObjectID) throws(InspectionError) {
            let tree = entities[entity].tree
            guard let found = try first(in: tree, from: object, of: snapshot), found >= object
            else { return }
            var (low, high) = (0, places.count)
            while low < high {
                let middle = (low + high) / 2
                let there = places[middle]
                if (there.object, there.entity) > (found, entity) {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            places.insert(Place(object: found, entity: entity), at: low)
        }
        for entity in entities.indices { try add(entity, from: ObjectID(0)) }
        while let lowest = places.last, places.count > 1 {
            try step()
            var holders: [Int] = []
            while let place = places.last, place.object == lowest.object {
                holders.append(place.entity)
                places.removeLast()
            }
            if holders.count > 1 { try body(lowest.object, holders.map { entities[$0] }) }
            if lowest.object.rawValue == .max { return }
            var next = ObjectID(lowest.object.rawValue + 1)
            if holders.count == 1, let other = places.last { next = other.object }
            for entity in holders { try add(entity, from: next) }
        }
    }

    /// The first object of a tree of rows that is not below `object`.
    static func first(
        in tree: TreeID,
        from object: ObjectID,
        of snapshot: Snapshot
    ) throws(InspectionError) -> ObjectID? {
        var key: [UInt8] = []
        KeyCoding.appendObjectID(object, to: &key)
        let start = key
        return try engine { () throws(EngineError) in
            var cursor = snapshot.cursor(tree)
            var more = try cursor.seek(atOrAfter: start)
            while more {
                if let found = try Self.object(at: cursor) { return found }
                more = try cursor.next()
            }
            return nil
        }
    }

    /// The object of a row's key; nil for a key that is none.
    static func object(at cursor: TreeCursor) throws(EngineError) -> ObjectID? {
        var count = 0
        cursor.withKey { count = $0.count }
        return count == 8 ? try cursor.trailingObjectID() : nil
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
        try SharedObjectIDs.forEach(
            readable,
            of: storage,
            step: { () throws(InspectionError) in
                steps += 1
                if steps % 4096 == 0, !goesOn() {
                    throw InspectionError(.cancelled, "the check was ended")
                }
            }
        ) { object, holders throws(InspectionError) in
            count += 1
            if objects.count < Self.objectsMax {
                objects += holders.map { names.object($0.id, object) }
            }
        }
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
        guard let highWater = observer.log.tail?.newest.record.objectIDHighWater else { return }
        var cursor = storage.cursor(entity.tree)
        let last = try engine { () throws(EngineError) in
            try cursor.last() ? try SharedObjectIDs.object(at: cursor) : nil
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
