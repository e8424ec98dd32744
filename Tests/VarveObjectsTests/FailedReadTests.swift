// Failed reads that were acknowledged protect the next save again, once they fail again.

import Testing
import VarveObjects

@Suite(.verified) struct FailedReadTests {
    /// An ID that no row has: what a lost row looks like.
    private func ghost(in container: PersistentContainer) -> Node.ID {
        Node(in: container.newContext()).id
    }

    @Test func aSecondFailureIsListedAgainAndProtectsTheSave() throws {
        let reported = Shared(0)
        let container = try PersistentContainer.inMemory(
            schema: GraphSchema.self,
            options: ContainerOptions(onReadFailure: { _ in reported.withLock { $0 += 1 } })
        )
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        let broken = try context.object(with: ghost(in: container))
        for round in 1...3 {
            // Read several times: listed once.
            #expect(broken.name == "" && broken.score == 0 && broken.next == nil)
            #expect(context.readFailures.map(\.object) == [broken.objectID])
            #expect(reported.withLock { $0 } == round)
            node.name = broken.name + "depends \(round)"
            #expect(code { try context.save() } == .contextFailed)
            let fresh = container.newContext()
            #expect(try fresh.existingObject(with: node.id)?.name != node.name)
            context.acknowledgeReadFailures()
            #expect(context.readFailures.isEmpty && node.isUpdated)
            try context.save()
        }
        // Rollback lets go of them, too, and the next failure counts again.
        _ = broken.name
        node.name = "dropped"
        context.rollback()
        #expect(context.readFailures.isEmpty && node.name == "depends 3")
        _ = broken.name
        node.name = "kept out"
        #expect(code { try context.save() } == .contextFailed)
        context.rollback()
        try context.save()
        #expect(try storedNames(container) == ["depends 3"])
    }

    /// To fill the object, and for the one value.
    @Test func aReadThatFailsAsksTheStoreTwice() throws {
        let container = try graph()
        let context = container.newContext()
        let broken = try context.object(with: ghost(in: container))
        let read = reads(container) { broken.name }
        #expect(read.value == "" && read.passes == 2 && read.reads == 0)
        #expect(context.readFailures.count == 1)
    }

    @Test func editsOfFailedObjectsAreKeptOut() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        let broken = try context.object(with: ghost(in: container))
        broken.name = "never"
        broken.next = node
        node.parent = broken
        node.name = "b"
        #expect(code { try context.save() } == .contextFailed)
        context.acknowledgeReadFailures()
        // What leads to nothing is said by itself.
        let outcome = code { try context.save() }
        #expect(outcome == nil || outcome == .conflict || outcome == .objectDeleted)
        if outcome != nil {
            node.parent = nil
            context.refresh(broken, mergeChanges: false)
            context.acknowledgeRefusedEdits()
            try context.save()
        }
        let fresh = container.newContext()
        let stored = try #require(try fresh.existingObject(with: node.id))
        #expect(stored.name == "b" && stored.parent == nil && stored.previous == nil)
        try expectSound(fresh)
    }
}
