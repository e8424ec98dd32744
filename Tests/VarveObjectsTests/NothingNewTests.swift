// What sets nothing new is no edit, whatever else a context has; what writes nothing new changes no
// row, so that nobody's edit meets it.

import Testing
import VarveObjects

@Suite(.verified) struct NothingNewTests {
    /// A context with an edit that leads to what others deleted meanwhile.
    private func losing(
        _ container: PersistentContainer
    ) throws -> (context: ManagedObjectContext, all: [Node]) {
        let context = container.newContext()
        let all = try nodes("a", "b", "c", "d", "e", in: context)
        all[2].playlist.replaceAll(with: [all[3], all[4]])
        try context.save()
        all[0].book = all[1]
        let other = container.newContext()
        other.delete(try other.same(all)[1])
        try other.save()
        context.advance()
        #expect(all[0].book == nil && context.hasChanges)
        return (context, all)
    }

    @Test func aToOneThatIsSetToWhatItShowsTakesOthersValues() throws {
        let container = try graph()
        let (context, all) = try losing(container)
        all[2].book = nil
        let other = container.newContext()
        let theirs = try other.same([all[2], all[3]])
        theirs[0].book = theirs[1]
        try other.save()
        context.advance()
        #expect(all[2].book === all[3])
        #expect(all[3].chapters.count == 1)
        // The one that wanted what is gone is set anew by the same value.
        all[0].book = nil
        try context.save()
        #expect(try container.newContext().named("c")?.book?.name == "d")
    }

    @Test func aMemberThatIsRemovedWhereItIsNotMayBeAddedByOthers() throws {
        let container = try graph()
        let (context, all) = try losing(container)
        all[2].picks.remove(all[3])
        let other = container.newContext()
        let theirs = try other.same([all[2], all[3]])
        theirs[0].picks.append(theirs[1])
        try other.save()
        context.advance()
        #expect(all[2].picks.ids == [all[3].id])
    }

    @Test func aMemberThatIsPutWhereItStandsMayBeMovedByOthers() throws {
        let container = try graph()
        let (context, all) = try losing(container)
        all[2].playlist.insert(all[3], at: 0)
        let other = container.newContext()
        let theirs = try other.same([all[2], all[3]])
        theirs[0].playlist.insert(theirs[1], at: 1)
        try other.save()
        context.advance()
        #expect(all[2].playlist.ids == [all[4].id, all[3].id])
    }

    /// By a constraint the new object is the stored one, and has nothing that this has not.
    @Test(arguments: [false, true])
    func aNewObjectThatGivesNothingNewMeetsNobodysEdit(isBeside: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        node.key = "k"
        try context.save()
        let other = container.newContext()
        if isBeside {
            _ = try other.same([node])
            _ = try nodes("beside", in: container.newContext())
        }
        let new = Node(in: other)
        new.key = "k"
        #expect(try other.save().replaced.count == 1)
        node.score = 6
        try context.save(mergePolicy: .error)
        let stored = try container.newContext().fetch(Node.where { $0.key == "k" })
        #expect(stored.map(\.score) == [6] && stored.names == ["a"])
    }
}
