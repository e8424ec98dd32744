// The objects whose answer to a request unsaved edits can change.
//
// Invariants
// - An object that is not among them passes the filter, and stands in the order, as the commit has
//   it.
// - Found from the edits backward along the request's paths: the cost is that of the edits and of
//   what leads to them, not that of the table.

import VarveBase
import VarveRecords

/// The relationships that a request goes along, from its entity on.
struct PathTree {
    private(set) var branches: [String: PathTree] = [:]

    init() {}

    init(_ query: RecordQuery) {
        add(query.predicate)
        for term in query.sort { add(term.path.names.dropLast()) }
    }

    private mutating func add(_ predicate: Predicate) {
        switch predicate {
        case .always, .never: break
        // The last name is a column of the object itself.
        case .compare(let path, _, _), .isIn(let path, _), .isWithin(let path, _),
            .text(let path, _, _, _), .isInRequest(let path, _):
            add(path.names.dropLast())
        case .compareProperties(let path, _, let other):
            add(path.names.dropLast())
            add(other.names.dropLast())
        case .not(let inner): add(inner)
        case .and(let terms), .or(let terms): for term in terms { add(term) }
        case .any(let path, let inner), .all(let path, let inner),
            .count(let path, let inner, _, _):
            add(path.names[...], inner)
        }
    }

    private mutating func add(_ names: ArraySlice<String>, _ inner: Predicate = .always) {
        guard let first = names.first else { return add(inner) }
        branches[first, default: PathTree()].add(names.dropFirst(), inner)
    }
}

extension ManagedObjectContext {
    /// The objects of an entity that have edits, or from which a path leads to such.
    /// - Complexity: O(edits) for each relationship of the paths, O(log n) for each object found.
    func reach(
        _ paths: PathTree,
        _ model: EntityModel,
        _ snapshot: RecordSnapshot
    ) throws(RecordError) -> Set<ObjectID> {
        var found: Set<ObjectID> = []
        for (id, object) in changed where object.storage.model === model { found.insert(id) }
        for (key, edit) in toManyEdits where edit.model === model { found.insert(key.owner) }
        for (name, rest) in paths.branches {
            guard let slot = model.slot(named: name),
                let relationship = model.properties[slot].relationship,
                let far = schema.entity(relationship.target)
            else { continue }
            for id in try reach(rest, far, snapshot) where !isUnsaved(id) {
                found.formUnion(
                    try snapshot.owners(model.record, relationship.record, of: id)
                )
            }
        }
        return found
    }
}
