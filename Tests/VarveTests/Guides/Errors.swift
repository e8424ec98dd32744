// The examples of the article Errors.
#if Macros
import Foundation
import Testing
import Varve
import VarveTesting

@Suite("Guide: errors") @MainActor struct ErrorsGuide {
    // Shown in Errors: advise
    func advice(for error: any Error) -> String {
        switch error {
        case StoreError.Code.diskFull: "The disk is full. Nothing was saved."
        case StoreError.Code.busy: "Another program is using the store."
        case StoreError.Code.conflict: "Somebody else changed this. Have a look, and save again."
        case let error as StoreError where error.outcome == .unknown: "Please start again."
        case let error as StoreError: error.message
        default: "\(error)"
        }
    }
    // End.

    @Test("Codes are patterns, and details list every failure") func codes() throws {
        #expect(advice(for: StoreError(.diskFull, "full")).hasPrefix("The disk is full"))
        #expect(advice(for: StoreError(.closed, "the container is closed")) != "")
        let container = try notes()
        let context = container.newContext()
        let one = Notebook(in: context)
        context.delete(one)
        one.name = "too late"
        // Shown in Errors: details
        do {
            try context.save()
        } catch let error as StoreError {
            print(error)  // code, message, place and advice: for the log
            for detail in error.details { print(detail.code, detail.objects) }
        }
        // End.
        // Shown in Errors: refused
        for edit in context.refusedEdits { print(edit.property ?? "", edit.error.code) }
        context.acknowledgeRefusedEdits()
        try context.save()
        // End.
        #expect(!context.hasChanges && context.refusedEdits.isEmpty)
    }

    @Test("A failed read is told") func reads() throws {
        let container = try notes("Bread")
        let context = container.newContext()
        let note = try #require(try context.fetch(Note.all).first)
        try container.newContext().batchDelete(Note.all)
        // Shown in Errors: load
        try context.load(note)  // throws what reading note.title could not
        print(note.title)
        // End.
        #expect(note.title == "Bread")
    }

    @Test("Unsaved edits keep a container open") func closing() async throws {
        let container = try notes()
        let context = container.viewContext
        _ = Note(in: context)
        // Shown in Errors: close
        do {
            try await container.close()
        } catch StoreError.Code.unsavedChanges {
            try context.save()
            try await container.close()
        }
        // End.
        #expect(code { _ = try context.count(Note.all) } == .closed)
    }
}
#endif
