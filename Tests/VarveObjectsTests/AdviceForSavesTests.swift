// What an error of a save advises is done, and helps. Other advice: AdviceForRequestsTests and
// AdviceForOpeningTests.

import Foundation
import Testing
import VarveObjects

/// The error that `body` throws; it has to advise this.
@discardableResult
func advised(
    _ code: StoreError.Code,
    _ advice: String,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
) -> StoreError? {
    let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation, performing: body)
    let suggestion = error?.suggestion ?? "none"
    #expect(error?.code == code, sourceLocation: sourceLocation)
    #expect(suggestion.contains(advice), "\(suggestion)", sourceLocation: sourceLocation)
    return error
}

@Suite(.verified) struct AdviceForSavesTests {
    @Test func aSaveInsideASave() throws {
        let container = try graph()
        let context = container.newContext()
        let node = Node(in: context)
        // "Edit only: what willSave changes is saved with the rest".
        node.onWillSave = { [unowned node] in
            advised(.reentrantSave, "what willSave changes is saved with the rest") {
                try context.save()
            }
            node.name = "by willSave"
        }
        // "what didSave changes belongs to the next save".
        node.onDidSave = { [unowned node] in
            advised(.reentrantSave, "didSave changes belongs to the next save") {
                try context.save()
            }
            node.score = 1
        }
        try context.save()
        #expect(try storedNames(container) == ["by willSave"])
        node.onDidSave = nil
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.named("by willSave")?.score == 1)
    }

    @Test func anEditInValidate() throws {
        let container = try graph()
        let context = container.newContext()
        let node = Node(in: context)
        node.onValidate = { [unowned node] in node.name = "by validate" }
        advised(.reentrantSave, "willSave and didSave may edit") { try context.save() }
        node.onWillSave = { [unowned node] in node.name = "by willSave" }
        node.onValidate = nil
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(try storedNames(container) == ["by willSave"])
    }

    @Test func aStoreForReadingOnly() throws {
        let folder = try TemporaryFolder()
        try folder.open().closeNow()
        do {
            let reader = try folder.open(ContainerOptions(isReadOnly: true))
            let context = reader.newContext()
            Item(in: context).title = "x"
            advised(.readOnly, "without isReadOnly") { try context.save() }
            advised(.readOnly, "without isReadOnly") { _ = try context.makeBlob() }
            advised(.readOnly, "without isReadOnly") {
                try context.batchInsert(Item.self, count: 1) { _, _ in }
            }
            context.rollback()
            try reader.closeNow()
        }
        let writer = try folder.open()
        let context = writer.newContext()
        Item(in: context).title = "x"
        _ = try context.makeBlob().finish()
        try context.save()
        try context.batchInsert(Item.self, count: 1) { _, _ in }
        #expect(try context.count(Item.all) == 2)
        try writer.closeNow()
    }

    @Test(arguments: [false, true]) func aFailedReadBefore(keepsOthers: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes("a", in: context)[0]
        node.name = "b"
        _ = try context.object(with: Node(in: container.newContext()).id).name
        advised(.contextFailed, "rollback() drops the edits; acknowledgeReadFailures() keeps") {
            try context.save()
        }
        if keepsOthers { context.acknowledgeReadFailures() } else { context.rollback() }
        try context.save()
        #expect(try storedNames(container) == [keepsOthers ? "b" : "a"])
    }

    @Test func valuesThatDoNotPass() throws {
        let container = try memory()
        let context = container.newContext()
        let item = Item(in: context)
        item.title = "bad"
        let missing = Everything(in: context)
        let error = advised(.invalid, "Correct the values that the details name") {
            try context.save()
        }
        #expect(error?.details.map(\.place.attribute) == ["title", "required"])
        item.title = "good"
        advised(.missingValue, "Correct the values that the details name") { try context.save() }
        missing.required = "given"
        try context.save()
        #expect(try container.newContext().count(Item.all) == 1)
    }

    @Test(arguments: ["delete", "lead elsewhere", "lead nowhere", "rollback"])
    func aDeletionThatIsDenied(way: String) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("guardian", "guarded", "other", in: context)
        all[1].guardian = all[0]
        try context.save()
        context.delete(all[0])
        advised(.deleteDenied, "or lead it elsewhere") { try context.save() }
        switch way {
        case "delete": context.delete(all[1])
        case "lead elsewhere": all[1].guardian = all[2]
        case "lead nowhere": all[1].guardian = nil
        default: context.rollback()
        }
        try context.save()
        let names = try storedNames(container)
        switch way {
        case "delete": #expect(names == ["other"])
        case "rollback": #expect(names == ["guardian", "guarded", "other"])
        default: #expect(names == ["guarded", "other"])
        }
        let fresh = container.newContext()
        #expect(try fresh.named("other")?.guarded.count == (way == "lead elsewhere" ? 1 : 0))
        try expectSound(fresh)
    }

    // MARK: Conflicts

    private enum Meeting: String, CaseIterable {
        case changed, deleted, deletedHere, reached, lost
    }

    /// Two contexts edit the same; the first has saved, and the second cannot.
    private func meet(
        _ meeting: Meeting,
        _ body: (_ context: ManagedObjectContext, _ all: [Node]) throws -> Void
    ) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", in: context)
        let other = container.newContext()
        let theirs = try other.same(all)
        switch meeting {
        case .changed: (all[0].name, theirs[0].name) = ("mine", "theirs")
        case .deleted:
            all[0].name = "mine"
            other.delete(theirs[0])
        case .deletedHere:
            context.delete(all[0])
            theirs[0].name = "theirs"
        case .reached:
            all[1].next = all[0]
            theirs[0].name = "theirs"
        case .lost:
            all[1].next = all[0]
            other.delete(theirs[0])
        }
        try other.save()
        advised(.conflict, "context.advance() takes the others' values") { try context.save() }
        try body(context, all)
        try context.save()
        #expect(!context.hasChanges)
        try expectSound(context)
        try expectSound(container.newContext())
    }

    @Test func conflictsWithChanges() throws {
        for meeting in [Meeting.changed, .deletedHere, .reached] {
            try meet(meeting) { context, all in
                context.advance()
                if meeting == .changed { #expect(all[0].name == "mine") }
            }
        }
    }

    @Test func conflictsWithDeletions() throws {
        for meeting in [Meeting.deleted, .lost] {
            for advances in [false, true] {
                try meet(meeting) { context, all in
                    if advances { context.advance() }
                    context.refresh(all[meeting == .deleted ? 0 : 1], mergeChanges: false)
                }
            }
        }
        for target in [0, 1] {
            try meet(.lost) { context, all in
                context.advance()
                all[1].next = target == 0 ? nil : all[1]
            }
        }
    }

    @Test func conflictsByPolicy() throws {
        for meeting in [Meeting.changed, .deleted, .deletedHere, .reached] {
            for policy in [
                MergePolicy.objectWinsByProperty, .storeWinsByProperty, .overwrite, .rollback,
            ] {
                try meet(meeting) { context, _ in try context.save(mergePolicy: policy) }
            }
        }
        // A policy other than `.error` leaves out what leads to nothing.
        for advances in [false, true] {
            for policy in [
                MergePolicy.objectWinsByProperty, .storeWinsByProperty, .overwrite, .rollback,
            ] {
                try meet(.lost) { context, all in
                    if advances { context.advance() }
                    try context.save(mergePolicy: policy)
                    #expect(all[1].next == nil && !all[1].isDeleted)
                }
            }
        }
    }

    // MARK: Duplicates

    @Test(arguments: ["change", "delete"]) func duplicates(way: String) throws {
        let container = try memory()
        let context = container.newContext()
        let serial = UUID()
        let old = Item(in: context)
        old.serial = serial
        try context.save()
        let new = Item(in: context)
        new.serial = serial
        let error = advised(.notUnique, "PersistentContainer.objectID reads their IDs") {
            try context.save()
        }
        // The text of an ID leads to its object, also in a log.
        let text = try #require(error?.details.first?.objects.last?.description)
        let id = try #require(container.objectID(text))
        let found = try #require(try context.existingObject(with: id) as? Item)
        if way == "change" { found.serial = nil } else { context.delete(found) }
        try context.save()
        #expect(try container.newContext().count(Item.all) == (way == "change" ? 2 : 1))
    }

    @Test func duplicatesOfAnUpsert() throws {
        let container = try memory()
        let context = container.newContext()
        for name in ["first", "second"] {
            let account = Account(in: context)
            account.email = "one address"
            account.name = name
        }
        try context.save()
        let fresh = container.newContext()
        #expect(try fresh.fetch(Account.all).map(\.name) == ["second"])
    }

    @Test func duplicatesThatAreIgnored() throws {
        let container = try memory()
        let context = container.newContext()
        for name in ["first", "second"] {
            let account = Account(in: context)
            (account.email, account.name) = ("\(name)@example.org", name)
            (account.code, account.visits) = (7, 1)
            try context.save()
        }
        let fresh = container.newContext()
        #expect(try fresh.fetch(Account.all).map(\.name) == ["first"])
    }

    // MARK: Refused edits

    @Test func refusedEdits() throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("a", "b", "c", in: context)
        let foreign = try container.newContext().same(all)
        context.delete(all[2])
        context.processPendingChanges()
        let wayOut = "context.acknowledgeRefusedEdits() goes on"
        all[2].name = "x"
        advised(.objectDeleted, wayOut) { try context.save() }
        context.acknowledgeRefusedEdits()
        all[0].next = all[2]
        advised(.objectDeleted, "Set next to another object or to none") { try context.save() }
        all[0].next = all[1]
        all[0].loose = foreign[1]
        advised(.crossContext, "context.existingObject(with: id), and set") { try context.save() }
        all[0].loose = try context.existingObject(with: foreign[1].id)
        context.delete(foreign[1])
        advised(.crossContext, "context.existingObject(with: id)") { try context.save() }
        context.acknowledgeRefusedEdits()
        all[0].picks.insert(all[1], at: 0)
        advised(.invalidRequest, "Use append") { try context.save() }
        all[0].picks.append(all[1])
        try context.save()
        let fresh = container.newContext()
        let node = try #require(try fresh.named("a"))
        #expect(node.next?.name == "b" && node.loose?.name == "b" && node.picks.names == ["b"])
        try expectSound(fresh)
    }

    @Test func refusedDeletions() throws {
        let container = try graph()
        let (context, other) = (container.newContext(), container.newContext())
        let all = try nodes("a", "b", in: context)
        let foreign = try other.same(all)
        // "Delete it in its own context, or get it in this one".
        context.delete(foreign[0])
        advised(.crossContext, "Delete it in its own context") { try context.save() }
        foreign[0].context?.delete(foreign[0])
        try other.save()
        context.acknowledgeRefusedEdits()
        context.advance()
        context.delete(try #require(try context.existingObject(with: foreign[1].id)))
        try context.save()
        #expect(try storedNames(container) == [])
    }

    @Test func valuesAndBlobsThatCannotBeStored() throws {
        let container = try memory()
        let context = container.newContext()
        let everything = Everything(in: context)
        everything.required = "given"
        everything.decimal = .nan
        advised(.invalid, "Set decimal to a value that can be stored") { try context.save() }
        everything.decimal = 5
        let elsewhere = try memory().newContext()
        let bytes = Data(repeating: 7, count: 5_000)
        let blob = try elsewhere.makeBlob(bytes, for: Picture.columns.data)
        let picture = Picture(in: context)
        picture.data = blob
        advised(.crossContext, "Copy its bytes: context.makeBlob()") { try context.save() }
        var writer = try context.makeBlob()
        try writer.append(try blob.readAll())
        picture.data = try writer.finish()
        try context.save()
        #expect(try picture.data?.readAll() == bytes && everything.decimal == 5)
    }

    @Test(arguments: [false, true]) func editsLeftByATask(areWanted: Bool) async throws {
        let container = try graph()
        func run(_ end: @escaping @Sendable (ManagedObjectContext) throws -> Void) async throws {
            try await container.performBackgroundTask { context in
                Node(in: context).name = "made"
                try end(context)
            }
        }
        let error = await #expect(throws: StoreError.self) { try await run { _ in } }
        #expect(error?.code == .unsavedChanges)
        #expect(error?.suggestion?.contains("context.save(), or context.rollback()") == true)
        try await run { if areWanted { try $0.save() } else { $0.rollback() } }
        #expect(try storedNames(container) == (areWanted ? ["made"] : []))
    }
}
