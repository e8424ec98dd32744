// Reading the objects that relationships lead to, in one pass per relationship.
//
// Invariants
// - A path a.b costs one pass for a and one for b, however many objects there are.
// - An object that several lead to is read once.

import VarveBase
import VarveRecords

/// One relationship to prefetch, and those after it.
struct PrefetchNode {
    let slot: Int
    var children: [PrefetchNode] = []

    /// Joins paths that begin alike.
    static func tree(
        of paths: [PrefetchPath],
        _ root: any ManagedObject.Type,
        _ model: EntityModel,
        _ schema: SchemaModel
    ) throws(StoreError) -> [PrefetchNode] {
        var nodes: [PrefetchNode] = []
        for path in paths {
            guard path.root == ObjectIdentifier(root) else {
                throw StoreError(
                    .invalidRequest,
                    "a prefetched relationship belongs to another entity",
                    place: .init(entity: model.name, attribute: path.names.first)
                )
            }
            try add(path.names[...], to: &nodes, model, schema)
        }
        return nodes
    }

    private static func add(
        _ names: ArraySlice<String>,
        to nodes: inout [PrefetchNode],
        _ model: EntityModel,
        _ schema: SchemaModel
    ) throws(StoreError) {
        guard let name = names.first else { return }
        guard let slot = model.slot(named: name),
            let relationship = model.properties[slot].relationship,
            let target = schema.entity(relationship.target)
        else {
            throw StoreError(
                .unknownAttribute,
                "\(model.name) has no relationship \(name)",
                place: .init(entity: model.name, attribute: name)
            )
        }
        var index = nodes.firstIndex { $0.slot == slot }
        if index == nil {
            nodes.append(PrefetchNode(slot: slot))
            index = nodes.count - 1
        }
        guard let index else { return }
        try add(names.dropFirst(), to: &nodes[index].children, target, schema)
    }
}

/// What a prefetch brought in: rows that are pinned, and members of to-many relationships by owner.
struct PrefetchedRelations {
    var rows: [CachedRow] = []
    var lists: [ObjectID: [RelatedList]] = [:]

    /// Gives an owner the members that were read for it.
    func give(to object: any ManagedObject) {
        // Of what others deleted, the last lists are all that is left: a merge policy may bring it
        // back with them.
        guard object.storage.state.isDisjoint(with: [.gone, .invalid]) else { return }
        for list in lists[object.storage.object] ?? [] {
            object.storage.core.context?.keepMembers(list, of: object)
        }
    }
}

extension ManagedObjectContext {
    /// Reads what `nodes` lead to from the objects `ids`, whose rows are given. With `pin`, the
    /// rows read are pinned for the caller.
    func prefetch(
        _ nodes: [PrefetchNode],
        _ model: EntityModel,
        _ ids: [ObjectID],
        _ rows: RowList,
        _ snapshot: RecordSnapshot,
        pin: Bool = false
    ) throws(StoreError) -> PrefetchedRelations {
        var result = PrefetchedRelations()
        do throws(StoreError) {
            try container.translating { () throws(RecordError) in
                try prefetch(nodes, model, ids, rows, snapshot, pin, &result)
            }
        } catch {
            if pin { container.store.rowCache.unpin(result.rows) }
            throw error
        }
        return result
    }

    private func prefetch(
        _ nodes: [PrefetchNode],
        _ model: EntityModel,
        _ ids: [ObjectID],
        _ rows: RowList,
        _ snapshot: RecordSnapshot,
        _ pin: Bool,
        _ result: inout PrefetchedRelations
    ) throws(RecordError) {
        for node in nodes {
            guard let relationship = model.properties[node.slot].relationship,
                let target = container.schema.entity(relationship.target)
            else { continue }
            var targets: [ObjectID] = []
            if relationship.isToMany {
                for owner in saved(ids) {
                    let list = try snapshot.relatedIDs(
                        model.record,
                        relationship.record,
                        of: owner
                    )
                    targets += list
                    result.lists[owner, default: []].append(
                        RelatedList(
                            slot: node.slot,
                            commit: snapshot.number,
                            ids: list,
                            isPrefetched: true
                        )
                    )
                }
            } else {
                targets = try self.targets(of: ids, rows, model, node.slot)
            }
            // Where each has one owner nobody comes twice: the rows are made in the order in which
            // they are gone through.
            if !relationship.isKeptByInverse { targets = Self.ascending(targets) }
            let wanted = saved(targets)
            let found = try snapshot.rows(target.record.id, wanted, pin: pin)
            if pin { result.rows += found.compactMap { $0 } }
            try prefetch(node.children, target, wanted, found, snapshot, pin, &result)
        }
    }

    /// The IDs without those of objects that were never saved.
    private func saved(_ ids: [ObjectID]) -> [ObjectID] {
        changed.isEmpty ? ids : ids.filter { changed[$0]?.isInserted != true }
    }

    /// What a to-one relationship leads to, as the context has it, from each of some objects.
    private func targets(
        of ids: [ObjectID],
        _ rows: RowList,
        _ model: EntityModel,
        _ slot: Int
    ) throws(RecordError) -> [ObjectID] {
        var targets: [ObjectID] = []
        targets.reserveCapacity(ids.count)
        let column = model.columns[slot]
        for (id, row) in zip(ids, rows) {
            if !changed.isEmpty,
                case .reference(let edited)? = changed[id]?.storage.edits?.values[slot]
            {
                targets.append(edited)
            } else if let row, let stored = try row.reference(column) {
                targets.append(stored)
            }
        }
        return targets
    }

    /// Ascending, each once.
    private static func ascending(_ ids: [ObjectID]) -> [ObjectID] {
        var sorted = ids
        sorted.sort()
        var last: ObjectID?
        sorted.removeAll { id in
            defer { last = id }
            return id == last
        }
        return sorted
    }
}
