// What readers with fresh eyes found in branches, lists and refused edits.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct AttackBranchAndListTests {
    /// That nobody else can have changed what is not saved holds for a context, not between a
    /// branch and its parent: the parent's edits went with the object.
    @Test(arguments: [false, true])
    func aDeletionInABranchMeetsAnEditOfTheParent(isSaved: Bool) throws {
        let container = try memory()
        let parent = container.newContext()
        let item = Item(in: parent)
        item.title = "draft"
        if isSaved { try parent.save() }
        let sheet = try parent.branch()
        sheet.delete(try sheet.object(with: item.id))
        item.title = "worked on"
        #expect(code { try sheet.mergeIntoParent() } == .conflict)
        let left = try sheet.mergeIntoParent(.parentWins)
        #expect(left.count == 1 && item.title == "worked on" && !item.isDeleted)
        try parent.save()
        #expect(try container.newContext().fetch(Item.all).map(\.title) == ["worked on"])
    }

    /// What the parent left as it was goes without a word, as before.
    @Test(arguments: [false, true])
    func aDeletionInABranchThatMeetsNothingIsDone(isSaved: Bool) throws {
        let container = try memory()
        let parent = container.newContext()
        let (item, other) = (Item(in: parent), Item(in: parent))
        item.tags.append(Tag(in: parent))
        if isSaved { try parent.save() }
        let sheet = try parent.branch()
        sheet.delete(try sheet.object(with: item.id))
        other.title = "worked on"
        try sheet.mergeIntoParent()
        try parent.save()
        #expect(try container.newContext().fetch(Item.all).map(\.title) == ["worked on"])
    }

    /// The defaults of the new object came over what was stored.
    @Test(arguments: ["itself", "branch", "advance", "redo", "undone"])
    func anUpsertGivesWhatWasSet(way: String) throws {
        let container = try memory()
        let first = container.newContext()
        let stored = Account(in: first)
        (stored.email, stored.name, stored.visits, stored.code) = ("a@b", "Ann", 7, 3)
        try first.save()
        let context = container.newContext()
        context.undoLimit = 10
        switch way {
        case "itself": Account(in: context).email = "a@b"
        case "branch", "advance":
            let sheet = try context.branch()
            Account(in: sheet).email = "a@b"
            if way == "advance" { sheet.advance() }
            try sheet.mergeIntoParent()
        case "redo":
            context.withUndoGroup { Account(in: context).email = "a@b" }
            try context.undo()
            try context.redo()
        default:
            let new = Account(in: context)
            new.email = "a@b"
            context.withUndoGroup { context.delete(new) }
            try context.undo()
        }
        #expect(try context.save().replaced.count == 1)
        let now = try #require(try container.newContext().fetch(Account.all).first)
        #expect(now.email == "a@b" && now.name == "Ann" && now.visits == 7 && now.code == 3)
    }

    @Test(arguments: 0...2) func settingAListToNoneMakesARefusalGood(way: Int) throws {
        let context = try graph().newContext()
        let all = try nodes("owner", "gone", "there", in: context)
        context.delete(all[1])
        context.processPendingChanges()
        all[0].playlist.append(all[1])
        #expect(context.refusedEdits.count == 1)
        switch way {
        case 0: all[0].playlist.removeAll()
        case 1: all[0].playlist.replaceAll(with: [])
        default: all[0].playlist.replaceAll(with: [all[2]])
        }
        #expect(context.refusedEdits.isEmpty)
        // What the call itself leads to is refused.
        all[0].playlist.replaceAll(with: [all[1]])
        #expect(context.refusedEdits.count == 1)
        all[0].playlist.removeAll()
        try context.save()
        #expect(all[0].playlist.isEmpty)
    }

    @Test(arguments: 0...3) func aListThatIsTheStoredOneAgainIsNoEdit(way: Int) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("o", "a", "b", "c", "d", in: context)
        let owner = all[0]
        owner.playlist.append(contentsOf: [all[1], all[2], all[3]])
        try context.save()
        switch way {
        case 0:
            owner.playlist.insert(all[3], at: 0)
            owner.playlist.remove(all[3])
            owner.playlist.append(all[3])
        case 1:
            owner.playlist.insert(all[3], at: 0)
            owner.playlist.replaceAll(with: [all[1], all[2]])
            owner.playlist.replaceAll(with: [all[1], all[2], all[3]])
        case 2:
            owner.playlist.remove(all[3])
            owner.playlist.append(all[4])
            owner.playlist.append(all[3])
            owner.playlist.remove(all[4])
        default:
            owner.playlist.insert(all[4], at: 1)
            owner.playlist.remove(all[4])
        }
        #expect(owner.playlist.map(\.name) == ["a", "b", "c"])
        #expect(!context.hasChanges)
        // And goes on from there.
        owner.playlist.insert(all[4], at: 1)
        owner.playlist.remove(all[2])
        try context.save()
        let stored = try container.newContext().existingObject(with: owner.id)
        #expect(stored?.playlist.map(\.name) == ["a", "d", "c"])
    }

    @Test func anEndedObjectRefusesNothing() throws {
        let context = try memory().newContext()
        let draft = Everything(in: context)
        context.delete(draft)
        context.processPendingChanges()
        draft.string = "x"
        draft.decimal = .nan
        #expect(context.refusedEdits.isEmpty)
        try context.save()
    }
}
