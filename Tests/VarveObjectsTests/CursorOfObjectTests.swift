// Cursors of objects inside a page: the place where a reader left off.

import Testing
import VarveObjects

@Suite(.verified) struct CursorOfObjectTests {
    @Test("A cursor of any object of a page, unsaved ones too, and none of one that is gone")
    func cursorsInside() throws {
        let container = try memory()
        let ids = try makeItems(30, in: container) { item, index in item.number = index / 4 }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.descending] }.limit(10)
        let new = Item(in: context)
        new.number = 3
        let whole = try context.fetchIDs(request.limit(nil))
        for (place, id) in whole.enumerated() {
            let cursor = try context.cursor(of: id, in: request)
            let after = try context.fetchIDs(request.after(cursor))
            let before = try context.fetchIDs(request.before(cursor))
            #expect(after == Array(whole[(place + 1)...].prefix(10)))
            #expect(before == Array(whole[..<place].suffix(10)))
        }
        // Not of the request's objects, and all the same with a place in its order.
        let some = Item.where { $0.number != 3 }.sorted { [$0.number.descending] }
        let cursor = try context.cursor(of: new.id, in: some)
        #expect(try context.fetch(some.after(cursor)).allSatisfy { $0.number < 3 })
        context.delete(try context.object(with: ids[4]))
        #expect(code { _ = try context.cursor(of: ids[4], in: request) } == .objectNotFound)
        // The order of places counts, not whether the object is there.
        let gone = try context.cursor(of: ids[8], in: request)
        context.delete(try context.object(with: ids[8]))
        try context.save()
        let rest = whole[(whole.firstIndex(of: ids[8]) ?? 0)...].filter {
            $0 != ids[8] && $0 != ids[4]
        }
        #expect(try context.fetchIDs(request.after(gone)) == Array(rest.prefix(10)))
    }

    /// The cursors of a page had edited values, and the next page began where these belong.
    @Test("Pages without unsaved edits begin and end where the saved values are")
    func pagesWithoutEdits() throws {
        let container = try memory()
        let ids = try makeItems(9, in: container) { item, index in item.number = index }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.ascending] }.includingPendingChanges(false)
        let page = request.limit(3)
        let kept = try ids.map { try context.object(with: $0) }
        // The last of the first page goes behind all, and the first of the last one to the front.
        (kept[2].number, kept[6].number) = (100, 0)
        context.delete(kept[3])
        let new = Item(in: context)
        new.number = 4
        var down: [Item.ID] = []
        var place: FetchCursor?
        for _ in 0..<3 {
            let next = try context.fetchPage(page.after(place))
            down += next.objects.map(\.id)
            place = next.last
        }
        #expect(down == ids)
        var up: [Item.ID] = []
        for _ in 0..<3 {
            let next = try context.fetchPage(page.before(place))
            up = next.objects.map(\.id) + up
            place = next.first
        }
        #expect(up == ids.dropLast())
        // The same of single objects: saved ones have their place, and a new one has none.
        for (index, id) in ids.enumerated() {
            let cursor = try context.cursor(of: id, in: request)
            #expect(try context.fetchIDs(request.after(cursor)) == Array(ids[(index + 1)...]))
        }
        #expect(code { _ = try context.cursor(of: new.id, in: request) } == .objectNotFound)
        #expect(code { _ = try context.cursor(of: ids[3], in: Item.all) } == .objectNotFound)
        withExtendedLifetime(kept) {}
    }

    @Test("IDs of others, contexts of the past, and requests that differ")
    func wrongOrders() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(9, in: container) { item, index in item.number = index }
        let context = container.newContext()
        let request = Item.all.sorted { [$0.number.descending] }
        let old = try context.cursor(of: ids[4], in: request)
        let past = try container.newContext(at: .commit(#require(context.commit)))
        // Of another store, and of an object that never was.
        let stranger = try makeItems(1, in: memory())[0]
        #expect(code { _ = try context.cursor(of: stranger, in: request) } == .foreignID)
        // The cursor of one request is none of another, as those of pages.
        #expect(code { _ = try context.fetch(Item.all.after(old)) } == .invalidCursor)
        #expect(
            code { _ = try context.fetch(Item.where { $0.number > 3 }.after(old)) }
                == .invalidCursor
        )
        // Limit and offset are no part of it; an offset counts from the place on.
        let cursor = try context.cursor(of: ids[4], in: request.limit(0).offset(7))
        #expect(cursor == old)
        #expect(try context.fetchIDs(request.after(cursor).offset(1).limit(2)) == [ids[2], ids[1]])
        // Between two places, in either order.
        let upper = try context.cursor(of: ids[7], in: request)
        let between = request.after(upper).before(cursor)
        #expect(try context.fetchIDs(between) == [ids[6], ids[5]])
        #expect(try context.fetchIDs(request.after(cursor).before(upper)).isEmpty)
        // The past has its own places.
        let moved = try context.object(with: ids[4])
        moved.number = 50
        try context.save()
        #expect(try past.cursor(of: ids[4], in: request) == old)
        #expect(try context.cursor(of: ids[4], in: request) != old)
        #expect(try context.fetchIDs(request.after(old)).first == ids[3])
        #expect(try context.fetchIDs(request.before(old)).last == ids[5])
        try container.closeNow()
        #expect(code { _ = try context.cursor(of: ids[4], in: request) } == .closed)
    }
}
