// What an observer reads while its context moves to another commit: some rows are still those of
// the commit before, and edits that a policy gave up are still there. None of it may lead to what
// is gone.

import Testing
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct ObserversBehindTests {
    private func observed() throws -> PersistentContainer {
        var options = ContainerOptions()
        options.everyContextObserves = true
        return try PersistentContainer.inMemory(schema: GraphSchema.self, options: options)
    }

    /// The first row is replaced; that of the second still leads to what others deleted.
    @Test func aReferenceOfAnOldRowToWhatIsGoneReadsAsNil() throws {
        let container = try observed()
        let context = container.newContext()
        let writer = container.newContext()
        let theirs = try nodes("a", "b", "target", in: writer)
        theirs[1].book = theirs[2]
        try writer.save()
        context.advance()
        let all = try context.same(Array(theirs[0...1]))
        #expect(all.names == ["a", "b"])
        var seen: [String?] = []
        let look = Look { seen.append(all[1].book?.name) }
        look.watch { _ = all[0].score }

        writer.delete(theirs[2])
        theirs[0].score = 7
        try writer.save()
        context.advance()

        #expect(look.hasRun && seen == [nil])
        #expect(context.readFailures.isEmpty)
        #expect(all[0].score == 7 && all[1].book == nil)
        try context.save()
    }

    /// The save gives the deletion of one object up, and with it what that one was set to lead to,
    /// a new object that is deleted as well.
    @Test func anEditThatIsGivenUpDoesNotLeadToWhatNeverWas() throws {
        let container = try observed()
        let context = container.newContext()
        let all = try nodes("a", "watched", "member", in: context)
        #expect(all[1].picks.isEmpty)
        do {
            let new = Node(in: context)
            all[0].guardian = new
            context.delete(all[0])
            context.delete(new)
        }
        let other = container.newContext()
        let theirs = try other.same(all)
        theirs[0].score = 7
        theirs[1].picks.append(theirs[2])
        try other.save()
        var seen: [String?] = []
        let look = Look { seen.append(all[0].guardian?.name) }
        look.watch { _ = all[1].picks.ids }

        try context.save(mergePolicy: .storeWinsByProperty)

        #expect(look.hasRun && seen == [nil])
        #expect(context.readFailures.isEmpty)
        #expect(!all[0].isDeleted && all[0].score == 7 && all[0].guardian == nil)
        try expectSound(context)
    }
}
