// THE FETCH PATH. One function of numbered steps; the work is in the steps.
//
// Invariants
// - A fetch reads one commit, the context's, and sees the context's unsaved edits unless told
//   otherwise.
// - The order is total, so a request gives the same list whichever way it is read.

public import VarveBase
public import VarveRecords

extension ManagedObjectContext {
    /// The objects that a request asks for, as faults unless it says `returningFaults(false)`.
    ///
    /// Faults cost no read. The first one that is filled reads those after it in the list too, 128
    /// at most and no more than the row cache's budget holds.
    /// - Complexity: O(result) with an index that fits, else O(objects of the entity).
    /// - Throws: `unsupportedPredicate`, `unknownAttribute`, `invalidRequest`, `invalidCursor`,
    ///   `damaged`, `ioFailed`, `closed`.
    @inlinable public func fetch<Entity>(
        _ descriptor: FetchDescriptor<Entity>
    ) throws -> [Entity] {
        // 1. pin, 2. plan, 3. scan, 4. overlay, 5. window, 6. loadRows: IDs, and rows if wanted.
        let found = try find(descriptor)
        // 7. unique: one object per ID and context, as a fault or with its row pinned.
        let objects: [Entity] = makeObjects(found)
        // 8. prefetch: each relationship in one pass.
        if found.prefetches { try prefetch(found, for: objects) }
        // 9. hand over.
        return objects
    }

    /// Step 7 of a fetch.
    @inlinable func makeObjects<Entity: ManagedObject>(_ found: FoundObjects) -> [Entity] {
        precondition(found.isOf(Entity.self), "a request finds objects of its own class")
        // Prefetching asks the rows once more.
        return objects(found.ids, found.model, rows: found.pinnedRows, takesRows: !found.prefetches)
    }

    /// Steps 1 to 6 of a fetch.
    @usableFromInline func find<Entity>(
        _ descriptor: FetchDescriptor<Entity>
    ) throws -> FoundObjects {
        // 1. pin: the context's snapshot; a read never sees two commits.
        let snapshot = try snapshot(for: descriptor)
        // 2. plan: names become numbers, the request is checked.
        let plan = try RequestPlan(descriptor, in: self)
        faultWatch?.requested(plan, in: container)
        // 3. scan, 4. overlay, 5. window: IDs from the index or the rows, edits of this context in
        //    or out, limit and offset.
        let ids = try orderedIDs(plan, snapshot)
        // 6. loadRows: row cache first; misses are read together.
        let rows = try loadRows(ids, plan, snapshot)
        return FoundObjects(ids: ids, plan: plan, rows: rows, snapshot: snapshot)
    }

    /// Step 8 of a fetch.
    @usableFromInline func prefetch<Entity: ManagedObject>(
        _ found: FoundObjects,
        for objects: [Entity]
    ) throws {
        let plan = found.plan
        let related = try prefetch(
            plan.prefetch,
            plan.model,
            found.ids,
            found.rows,
            found.snapshot
        )
        for object in objects { related.give(to: object) }
    }

    /// The list of a request, evaluated once; rows are read in batches of `size` when they are
    /// touched. From the third batch in a row on, rows after it come along as bytes: up to twice
    /// what the row cache may keep (`ContainerOptions.unreferencedRowBytes`), shared by all lists
    /// of the container; in the view context at most 4,096 rows at a time.
    ///
    /// Where an index gives filter and order, the list is a place in the index of its commit: it
    /// opens at once, however long it is, and keeps the commit readable as long as it lives. Else
    /// it is a list of IDs.
    /// - Complexity: O(log n) and O(1) memory with an index that gives filter and order, or without
    ///   both; else that of `fetchIDs`, and 8 bytes per object. Each object with unsaved edits
    ///   costs O(log n).
    public func fetchBatched<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        size: Int = 50
    ) throws -> BatchedResults<Entity> {
        guard size > 0 else {
            throw StoreError(.invalidRequest, "a batch must have at least one row")
        }
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        faultWatch?.requested(plan, in: container)
        return BatchedResults(
            store: BatchStore(
                context: self,
                model: plan.model,
                list: try list(plan, snapshot),
                size: size,
                returnsFaults: descriptor.returnsFaults,
                prefetch: plan.prefetch
            )
        )
    }

    /// A page of a request, with cursors of its first and last object for `before` and `after`.
    /// - Complexity: with an index that fits, as many entries as the page has objects, and one.
    public func fetchPage<Entity>(
        _ descriptor: FetchDescriptor<Entity>
    ) throws -> FetchPage<Entity> {
        let objects = try fetch(descriptor)
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        func cursor(_ object: Entity?) throws -> FetchCursor? {
            guard let object else { return nil }
            return FetchCursor(
                entity: plan.model.name,
                fingerprint: plan.fingerprint,
                position: try key(of: object.storage.object, plan, snapshot)
            )
        }
        return FetchPage(
            objects: objects,
            first: try cursor(objects.first),
            last: try cursor(objects.last)
        )
    }

    /// The place of an object in the order of a request, for its `after` and `before`: where a
    /// reader left off in the middle of a page. The request's filter need not find the object.
    /// - Parameters:
    ///   - id: the object.
    ///   - descriptor: the request; its limit and offset do not count.
    /// - Returns: the place by its values now: unsaved ones count if the request includes them.
    /// - Throws: `objectNotFound` if there is no such object in this context, or, of a request that
    ///   leaves unsaved edits out, none in its commit; what `fetch` throws.
    /// - Complexity: O(log n) for each object that the order looks at.
    public func cursor<Entity>(
        of id: TypedObjectID<Entity>,
        in descriptor: FetchDescriptor<Entity>
    ) throws -> FetchCursor {
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        let (object, model) = (id.objectID.object, try container.check(id))
        let isThere =
            descriptor.includesPendingChanges
            ? try isAlive(object, model)
            : try container.translating { () throws(RecordError) in
                try snapshot.exists(model.record.id, object)
            }
        guard isThere else {
            throw StoreError(
                .objectNotFound,
                "the object whose place was asked for is not there",
                place: .init(store: container.place, entity: model.name, object: id.objectID),
                suggestion: "Take the cursor while the object is there; it stays good afterwards."
            )
        }
        return FetchCursor(
            entity: model.name,
            fingerprint: plan.fingerprint,
            position: try key(of: object, plan, snapshot)
        )
    }

    /// The IDs that a request asks for. Makes no objects and keeps no rows.
    public func fetchIDs<Entity>(_ descriptor: FetchDescriptor<Entity>) throws -> [Entity.ID] {
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        let (store, entity) = (container.identity, plan.model.record.id)
        return try orderedIDs(plan, snapshot).map {
            TypedObjectID(ManagedObjectID(store: store, entity: entity, object: $0))
        }
    }

    /// How many objects `fetch` would return, limit and offset included. Makes no objects.
    /// - Complexity: O(log n) without filter or with one that an index answers.
    public func count<Entity>(_ descriptor: FetchDescriptor<Entity>) throws -> Int {
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        if touchesPending(plan) { return try orderedIDs(plan, snapshot).count }
        func count() throws(StoreError) -> Int {
            try container.translating { () throws(RecordError) in try snapshot.count(plan.query) }
        }
        guard let trace = container.options.trace else { return try count() }
        return try traced(.count, plan, snapshot, trace, found: { $0 }, count)
    }

    /// How a request would be answered: the index, the range, what is left to be filtered and
    /// sorted. The text is for people.
    /// - Parameters:
    ///   - descriptor: the request.
    ///   - isMeasured: whether the list of objects is also made, and what that reads is said:
    ///     objects found, rows and index entries looked at, pages visited, and how many of these
    ///     had to be restored from the file. What others read meanwhile counts too.
    /// - Throws: what `fetch` throws.
    public func explain<Entity>(
        _ descriptor: FetchDescriptor<Entity>,
        isMeasured: Bool = false
    ) throws -> String {
        let snapshot = try snapshot(for: descriptor)
        let plan = try RequestPlan(descriptor, in: self)
        var text = try container.translating { () throws(RecordError) in
            try snapshot.explain(plan.query)
        }
        if touchesPending(plan) { text += "\nwith unsaved edits laid over" }
        guard isMeasured else { return text }
        let before = container.statistics
        let found = try orderedIDs(plan, snapshot).count
        let after = container.statistics
        return text + "\n\(found) objects found; \(after.rowsScanned - before.rowsScanned) rows, "
            + "\(after.entriesScanned - before.entriesScanned) entries and "
            + "\(after.pagesVisited - before.pagesVisited) pages read, "
            + "\(after.pagesRestored - before.pagesRestored) of the pages from the file"
    }

    // MARK: Steps

    /// Steps 3 to 5 for a list that is read a part at a time.
    private func list(
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> ObjectList {
        let touches = touchesPending(plan)
        let list = try container.translating { () throws(RecordError) in
            var plan = plan
            if touches { try plan.answer(self, snapshot) }
            let held = snapshot.held(for: PinOwner(.context, label: "list \(plan.model.name)"))
            guard let positions = try held.positioned(plan.query) else { return nil as ObjectList? }
            let window = ListWindow(plan.query)
            let source = ListSource(positions, plan.query)
            if !touches {
                // A short list is rather copied than its commit kept.
                let isShort = window.range(of: positions.count).count <= Self.copiedListMax
                return isShort ? nil : ObjectList(source: source, window: window)
            }
            let request = try ListRequest(plan, self, snapshot)
            return ObjectList(
                source: source,
                patch: try patch(request, over: source, snapshot),
                window: request.window
            )
        }
        if let list { return list }
        let ids = try orderedIDs(plan, snapshot)
        return ObjectList(
            source: ListSource(IDChunks(ids), plan.query),
            window: ListWindow(plan.query.withoutWindow)
        )
    }

    /// IDs of a list that are copied rather than looked up in their commit.
    private static var copiedListMax: Int { 256 }

    /// Steps 3 to 5: the IDs of a request, in its order. Where no unsaved edit can change the
    /// answer the store gives all three; else its list with the edits laid over (Overlay.swift).
    func orderedIDs(
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> [ObjectID] {
        guard let trace = container.options.trace else { return try findIDs(plan, snapshot) }
        return try traced(.objects, plan, snapshot, trace, found: { $0.count }) {
            () throws(StoreError) in
            try findIDs(plan, snapshot)
        }
    }

    private func findIDs(
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> [ObjectID] {
        guard touchesPending(plan) else {
            return try container.translating { () throws(RecordError) in
                try snapshot.fetchIDs(plan.query)
            }
        }
        return try container.translating { () throws(RecordError) in
            try overlaid(plan.query, plan.model, snapshot)
        }
    }

    /// Rows of the result, where something needs them; pinned if the objects are to be filled.
    func loadRows(
        _ ids: [ObjectID],
        _ plan: RequestPlan,
        _ snapshot: RecordSnapshot
    ) throws(StoreError) -> RowList {
        let entity = plan.model.record.id
        return try container.translating { () throws(RecordError) in
            if !plan.returnsFaults {
                return try snapshot.rows(entity, ids, pin: true)
            }
            // Faults without relationships to fill need no row yet; see `fill`.
            return plan.prefetch.isEmpty ? RowList() : try snapshot.rows(entity, ids)
        }
    }
}

/// What a request found, before it becomes objects.
@usableFromInline struct FoundObjects {
    @usableFromInline let ids: [ObjectID]
    let plan: RequestPlan
    /// One per ID, or none at all; pinned if the objects are to be filled.
    let rows: RowList
    let snapshot: RecordSnapshot

    @usableFromInline var model: EntityModel { plan.model }
    /// The rows that new objects begin with.
    @usableFromInline var pinnedRows: RowList? { plan.returnsFaults ? nil : rows }
    @usableFromInline var prefetches: Bool { !plan.prefetch.isEmpty }

    @usableFromInline func isOf(_ type: any ManagedObject.Type) -> Bool {
        ObjectIdentifier(type) == ObjectIdentifier(plan.model.type)
    }
}

/// A page of a request.
public struct FetchPage<Entity: ManagedObject> {
    /// The objects, in the request's order.
    public let objects: [Entity]
    /// The place of the first object: `before(page.first)` is the page in front. Nil: the page is
    /// empty.
    public let first: FetchCursor?
    /// The place of the last object: `after(page.last)` is the page after. Nil: the page is empty.
    public let last: FetchCursor?
}
