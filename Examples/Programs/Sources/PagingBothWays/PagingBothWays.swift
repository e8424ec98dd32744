// Paging both ways while rows come and go: a chat that opens where the reader left off, with older
// messages above and newer ones below.

import Check
import Foundation
import Varve

@Entity final class Message: ManagedObject {
    #Index<Message>([\.sent])
    var text: String = ""
    var sent: Date = .now
}

enum ChatSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Message.self] }
}

/// The messages on the screen, and the places where they begin and end. A cursor is a place in the
/// order, no number of rows: what others insert or delete in front of it does not move it.
@MainActor final class Chat {
    static let messages = Message.all.sorted { [$0.sent.ascending] }
    private(set) var shown: [Message] = []
    private var top, end: FetchCursor?
    private let context: ManagedObjectContext
    private let page = messages.limit(40)

    /// - Parameter read: the place of the last message that was read; nil: none was.
    init(_ context: ManagedObjectContext, after read: FetchCursor?) throws {
        self.context = context
        (top, end) = (read, read)
        _ = try loadNewer()
        // The page above the first unread message has the last read one.
        if let first = shown.first { top = try context.cursor(of: first.id, in: page) }
        _ = try loadOlder()
    }

    /// The page above. False: there is none.
    func loadOlder() throws -> Bool {
        let older = try context.fetchPage(page.before(top))
        shown.insert(contentsOf: older.objects, at: 0)
        top = older.first ?? top
        return older.first != nil
    }

    /// The page below. False: there is none yet.
    func loadNewer() throws -> Bool {
        let newer = try context.fetchPage(page.after(end))
        shown += newer.objects
        end = newer.last ?? end
        return newer.last != nil
    }

    /// The place of a message, as the app keeps it for its next launch.
    func place(of index: Int) throws -> Data {
        try JSONEncoder().encode(context.cursor(of: shown[index].id, in: page))
    }

    /// Whether no message is there twice, and all are in their order.
    var isInOrder: Bool {
        Set(shown.map(\.id)).count == shown.count
            && zip(shown, shown.dropFirst()).allSatisfy { ($0.sent, $0.id) < ($1.sent, $1.id) }
    }
}

@main struct PagingBothWays {
    @MainActor static func main() async throws {
        try await withFolder { folder in
            let url = folder.appending(path: "chat.varve")
            var container = try await PersistentContainer.open(at: url, schema: ChatSchema.self)
            // A thousand messages, four of each second, so that a place is more than a date.
            try container.newContext().batchInsert(Message.self, 0..<1_000) { row, number in
                row.text = "message \(number)"
                row.sent = Date(timeIntervalSinceReferenceDate: Double(number / 4))
            }
            let place = try read(container)
            try await container.close()
            // The next launch: the kept place is where the reader left off.
            container = try await PersistentContainer.open(at: url, schema: ChatSchema.self)
            try await page(container, from: JSONDecoder().decode(FetchCursor.self, from: place))
            try await container.close()
        }
    }

    /// The first launch: reads 500 messages.
    @MainActor static func read(_ container: PersistentContainer) throws -> Data {
        let chat = try Chat(container.viewContext, after: nil)
        while chat.shown.count < 500, try chat.loadNewer() {}
        check("a chat that begins at its first message", chat.shown.first?.text == "message 0")
        return try chat.place(of: 499)
    }

    /// Pages up and down from the middle, while another context writes and deletes everywhere.
    @MainActor static func page(
        _ container: PersistentContainer,
        from place: FetchCursor
    ) async throws {
        let view = container.viewContext
        let old = try view.fetchIDs(Chat.messages)
        let chat = try Chat(view, after: place)
        check("it opens with a page below the place", chat.shown.last?.text == "message 539")
        check("and one above, with what was read", chat.shown.first?.text == "message 460")

        var (gone, pages, hasOlder, hasNewer) = (Set<Message.ID>(), 0, true, true)
        while hasOlder || hasNewer {
            // Each round writes a last message, so there must be a last round.
            if pages < 14 {
                gone.formUnion(try await disturb(container, at: chat.shown))
                view.advance()
            }
            if hasOlder { hasOlder = try chat.loadOlder() }
            if hasNewer { hasNewer = try chat.loadNewer() }
            pages += 1
        }
        check("everything was paged, a page each way at a time", pages > 12 && pages < 25)
        check("nothing twice, all in their order", chat.isInOrder)
        let shown = Set(chat.shown.map(\.id))
        let missing = Set(old).subtracting(shown).subtracting(gone)
        check("no message that stayed is missing", missing.isEmpty)
        check("what was deleted while it is shown says so", chat.shown.contains { $0.isDeleted })

        // Somebody writes: the same call as before goes on below.
        try await container.performBackgroundTask { context in
            Message(in: context).text = "hello"
            try context.save()
        }
        view.advance()
        check("a new one comes below", try chat.loadNewer() && chat.shown.last?.text == "hello")
        check("and no other", try !chat.loadNewer() && !chat.loadOlder())
    }

    /// Deletes messages at both ends, where the cursors stand, and between; writes some everywhere.
    @MainActor static func disturb(
        _ container: PersistentContainer,
        at shown: [Message]
    ) async throws -> [Message.ID] {
        let doomed = [shown.first, shown[shown.count / 2], shown.last].compactMap { $0?.id }
        try await container.performBackgroundTask(author: "others") { context in
            for id in doomed { try context.existingObject(with: id).map(context.delete) }
            for second in [-1, 60, 125, 200, 251] {
                let message = Message(in: context)
                message.text = "late"
                message.sent = Date(timeIntervalSinceReferenceDate: Double(second))
            }
            try context.save()
        }
        return doomed
    }
}
