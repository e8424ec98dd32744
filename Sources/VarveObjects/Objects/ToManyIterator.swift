// Going through a to-many relationship: members are made some at a time.
//
// Invariants
// - The members are those of the list when the walk begins, whatever is changed meanwhile.
// - At most `togetherMax` members live because of a walk, and the one that it gave last.
// - A walk reads rows only if a request prefetched the list: then those of the members that are
//   made together, in one pass as far as they are not in the row cache. Else members are faults.
// - What is no sound list, an ID twice or one of another entity's object, is made one by one: no
//   living object loses its place in the registry.
//
// Why together: a member by itself is two locks and two looks into tables to be made, and as many
// again to be filled.

public import VarveBase
public import VarveRecords

extension ToMany {
    /// One walk through the members of a to-many relationship.
    public struct Iterator: IteratorProtocol {
        @usableFromInline let list: ToMany
        @usableFromInline let ids: [ObjectID]
        /// The next member's position in `ids`.
        @usableFromInline var position = 0
        /// Members that are made.
        @usableFromInline var made: [Target] = []
        /// Position of the first of them.
        @usableFromInline var madeStart = 0

        /// Members that are made together at most.
        @usableFromInline static var togetherMax: Int { 64 }

        @usableFromInline init(_ list: ToMany, _ ids: [ObjectID]) {
            (self.list, self.ids) = (list, ids)
        }

        /// The next member: a registered object, a fault, or, in a list that a request prefetched,
        /// an object with its values.
        /// - Complexity: O(1).
        @inlinable public mutating func next() -> Target? {
            if position - madeStart == made.count {
                if position == ids.count { return nil }
                make()
            }
            let member = made[position - madeStart]
            position += 1
            return member
        }

        /// Makes the members that come next: few at first, as who looks for one may find it soon.
        @inlinable @inline(never) mutating func make() {
            let room = Swift.min(Self.togetherMax, Swift.max(16, 2 * made.count))
            made = []
            let part = ids[position..<Swift.min(ids.count, position + room)]
            madeStart = position
            if let wanted = list.membersTogether(part) {
                made = wanted.context.objects(
                    wanted.ids,
                    wanted.model,
                    rows: wanted.rows,
                    isInOrder: false
                )
            } else {
                made = [list.member(ids[position])]
            }
        }
    }

    /// The members, as they are when it begins.
    @inlinable public func makeIterator() -> Iterator { Iterator(self, members) }

    /// What `transform` makes of each member. By itself a collection would ask for one position
    /// after the other, and each member would be made by itself.
    @inlinable public func map<Value, Failure: Error>(
        _ transform: (Target) throws(Failure) -> Value
    ) throws(Failure) -> [Value] {
        var walk = makeIterator()
        var values: [Value] = []
        values.reserveCapacity(walk.ids.count)
        while let member = walk.next() { values.append(try transform(member)) }
        return values
    }

    /// What is needed to make the next members together, of which there may be fewer than asked
    /// for; nil: the next one is to be made by itself.
    @usableFromInline func membersTogether(_ part: ArraySlice<ObjectID>) -> MembersWanted? {
        guard let context, let model = context.container.schema.entity(of: Target.self),
            !part.contains(ReadMembers.unread)
        else { return nil }
        let ids = context.saved(upToNew: part)
        if ids.isEmpty || !Self.isDistinct(ids) { return nil }
        if context.core.registry.containsOthers(than: model.number, ids) { return nil }
        if owner.storage.related?.first(where: { $0.slot == slot })?.isPrefetched == true,
            let rows = context.rowsForMembers(ids, model)
        {
            return MembersWanted(context: context, model: model, ids: ids, rows: rows)
        }
        if let watch = context.faultWatch {
            for id in ids where context.registered(id) == nil {
                watch.led(to: id, owner.storage.model, slot)
            }
        }
        return MembersWanted(context: context, model: model, ids: ids, rows: nil)
    }
}

extension ToMany {
    /// Whether no ID comes twice.
    private static func isDistinct(_ ids: [ObjectID]) -> Bool {
        if zip(ids, ids.dropFirst()).allSatisfy({ $0 < $1 }) { return true }
        return Set(ids).count == ids.count
    }
}

/// Members that are to be made.
@usableFromInline struct MembersWanted {
    @usableFromInline let context: ManagedObjectContext
    @usableFromInline let model: EntityModel
    @usableFromInline let ids: [ObjectID]
    /// Pinned; nil: they are to be faults.
    @usableFromInline let rows: RowList?
}

extension ManagedObjectContext {
    /// IDs as far as no object among them was never saved: that one lives, and has no row.
    fileprivate func saved(upToNew ids: ArraySlice<ObjectID>) -> [ObjectID] {
        if changed.isEmpty { return Array(ids) }
        return Array(ids.prefix { changed[$0]?.isInserted != true })
    }

    /// The rows of some members, pinned; nil if they cannot be read: then reading a member's
    /// properties says why.
    fileprivate func rowsForMembers(_ ids: [ObjectID], _ model: EntityModel) -> RowList? {
        guard let snapshot = try? currentSnapshot() else { return nil }
        return try? snapshot.rows(model.record.id, ids, pin: true)
    }
}
