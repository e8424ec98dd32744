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

    /// Runs `body` once, when a change of what `read` reads is told.
    @MainActor private func before(_ read: () -> Void, _ body: @escaping @MainActor () -> Void) {
        let isDone = Shared(false)
        withObservationTracking(read) {
            // Inside itself it is called once more.
            let isSecond = isDone.withLock { value in
                defer { value = true }
                return value
            }
            if !isSecond { MainActor.assumeIsolated { body() } }
        }
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

    /// What an observer of such a list does in the middle of the deletion holds.
    @MainActor @Test(arguments: 0...5)
    func anObserverOfAListWithoutInverseActs(what: Int) throws {
        let container = try memory()
        let context = container.viewContext
        let (person, tag) = (Person(in: context), Tag(in: context))
        person.name = "saved"
        person.likes.append(tag)
        try context.save()
        let count = Shared(0)
        before({ _ = person.likes.count }) {
            count.withLock { $0 += 1 }
            switch what {
            case 0: context.rollback()
            case 1: person.likes.remove(tag)
            case 2: _ = try? context.save()
            case 3: context.delete(person)
            case 4: context.reset()
            default: person.name = "edited"
            }
        }
        context.delete(tag)
        context.processPendingChanges()
        #expect(count.withLock { $0 } == 1)
        if what != 4 { try context.save() }
        let stored = container.newContext()
        let (people, tags) = (try stored.fetch(Person.all), try stored.fetch(Tag.all))
        // A rollback in the middle takes the deletion back, a reset ends all of it.
        let isThere = what == 0 || what == 4
        #expect(tags.count == (isThere ? 1 : 0))
        #expect(people.map(\.likes.count) == (what == 3 ? [] : [isThere ? 1 : 0]))
        #expect(people.map(\.name) == (what == 3 ? [] : [what == 5 ? "edited" : "saved"]))
        let shown = try context.fetch(Person.all)
        #expect(shown.map(\.likes.count) == people.map(\.likes.count))
    }
}
