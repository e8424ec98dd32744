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
}
