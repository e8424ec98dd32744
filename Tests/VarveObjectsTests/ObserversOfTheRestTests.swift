// Observers of what no edit of their own object changed: policies, constraints, lists without
// inverse, properties that are not stored.

import Foundation
import Observation
import Testing
import VarveObjects

@Suite(.verified) struct ObserversOfTheRestTests {
    /// Whether a change of what `read` reads was told during `body`.
    private func isTold(_ read: () -> Void, during body: () throws -> Void) rethrows -> Bool {
        let told = Shared(false)
        withObservationTracking(read) { told.withLock { $0 = true } }
        try body()
        return told.withLock { $0 }
    }

    /// Nothing was written, so the newest commit was the next one after the context's: that was
    /// taken for its own.
    @Test(arguments: [MergePolicy.storeWinsByProperty, .rollback])
    func aPolicyThatGivesAllEditsUpTells(policy: MergePolicy) throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let item = Item(in: context)
        try context.save()
        let other = container.newContext(observes: false)
        let theirs = try other.object(with: item.id)
        (theirs.title, theirs.number) = ("theirs", 5)
        try other.save()
        item.title = "mine"
        let numberIsTold = try isTold({ _ = item.number }) {
            let titleIsTold = try isTold({ _ = item.title }) {
                try context.save(mergePolicy: policy)
            }
            #expect(titleIsTold)
        }
        #expect(numberIsTold)
        #expect(item.title == "theirs" && item.number == 5)
    }

    @Test func anUpsertOntoAnObjectOfTheSameSaveTells() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let known = Account(in: context)
        known.email = "a"
        try context.save()
        known.name = "mine"
        let new = Account(in: context)
        new.email = "a"
        new.visits = 5
        #expect(try isTold({ _ = known.visits }) { try context.save() })
        #expect(known.visits == 5)
        // What is saved as it was shown tells nobody.
        known.name = "again"
        #expect(try !isTold({ _ = (known.name, known.visits) }) { try context.save() })
    }

    @Test func aRefreshKeepsObserversOfWhatIsNotStored() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let note = ExpandableNote(in: context)
        try context.save()
        let isHeard = isTold({ _ = note.isExpanded }) {
            context.refreshAllObjects()
            note.isExpanded = true
        }
        #expect(isHeard)
        let isHeardAgain = isTold({ _ = note.isExpanded }) {
            context.refresh(note, mergeChanges: true)
            note.isExpanded = false
        }
        #expect(isHeardAgain)
    }

    @Test func aListWithoutInverseTellsOfDeletions() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let (person, tag) = (Person(in: context), Tag(in: context))
        person.likes.append(tag)
        try context.save()
        let deletion = isTold({ _ = person.likes.count }) {
            context.delete(tag)
            context.processPendingChanges()
        }
        #expect(deletion && person.likes.isEmpty)
        #expect(isTold({ _ = person.likes.count }) { context.rollback() })
        #expect(person.likes.count == 1)
        // A new member that is deleted again.
        let new = Tag(in: context)
        person.likes.append(new)
        #expect(person.likes.count == 2)
        let ofNew = isTold({ _ = person.likes.count }) {
            context.delete(new)
            context.processPendingChanges()
        }
        #expect(ofNew && person.likes.count == 1)
        context.rollback()
    }

    @Test func aListWithoutInverseTellsOfADeletionThatIsGivenUp() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let (person, tag) = (Person(in: context), Tag(in: context))
        person.likes.append(tag)
        try context.save()
        let other = container.newContext(observes: false)
        try other.object(with: tag.id).name = "theirs"
        try other.save()
        let deletion = isTold({ _ = person.likes.count }) {
            context.delete(tag)
            context.processPendingChanges()
        }
        #expect(deletion && person.likes.isEmpty)
        let isToldOfTheEnd = try isTold({ _ = person.likes.count }) {
            try context.save(mergePolicy: .rollback)
        }
        #expect(isToldOfTheEnd && person.likes.count == 1)
    }
}
