// A list in sections that follows saves: contacts by their first letter, on a screen that is never
// loaded anew, only told what changed.

import Check
import Foundation
import Varve

@Entity final class Contact: ManagedObject {
    #Index<Contact>([\.initial, \.name])
    #Unique<Contact>([\.name])
    var name: String = ""
    var phone: String = ""
    @Derived var initial: String { name.prefix(1).uppercased() }
}

enum ContactsSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Contact.self] }
}

/// Stands for a table view: it has sections of rows, and is told which to delete, insert and move.
@MainActor final class Screen {
    private(set) var rows: [[Contact.ID]] = []
    private(set) var reloads = 0
    private let list: SectionedResults<Contact, String>

    init(_ list: SectionedResults<Contact, String>) {
        self.list = list
        reload()
    }

    func apply(_ change: LiveChange<Contact>) {
        if change.isReplaced { return reload() }
        // 1. Out, from the back: rows that left or move, then sections that ended.
        let leaving = change.deleted.map(\.place) + change.moved.map(\.from)
        for place in leaving.sorted(by: { $0.offset > $1.offset }) {
            rows[place.section].remove(at: place.item)
        }
        for section in change.deletedSections.reversed() { rows.remove(at: section) }
        // 2. In, from the front: sections that began, then rows that came or moved.
        for section in change.insertedSections { rows.insert([], at: section) }
        let coming =
            change.inserted.map { ($0.id, $0.place) } + change.moved.map { ($0.id, $0.to) }
        for (id, place) in coming.sorted(by: { $0.1.offset < $1.1.offset }) {
            rows[place.section].insert(id, at: place.item)
        }
    }

    private func reload() {
        rows = list.sections.map { $0.map(\.id) }
        reloads += 1
    }

    /// Whether the screen shows what the list is.
    var isRight: Bool { rows == list.sections.map { $0.map(\.id) } }
}

@main struct ListWithSections {
    @MainActor static func main() async throws {
        try await withFolder { folder in
            let container = try await PersistentContainer.open(
                at: folder.appending(path: "contacts.varve"),
                schema: ContactsSchema.self
            )
            try await show(container)
            try await container.close()
        }
    }

    @MainActor static func show(_ container: PersistentContainer) async throws {
        let view = container.viewContext
        try view.batchInsert(Contact.self, ["Ada", "Alan", "Barbara", "Edsger", "Grace"]) {
            $0.name = $1
        }
        let contacts = try view.live(
            Contact.all.sorted { [$0.name.ascending] },
            sectionedBy: { $0.initial }
        )
        let screen = Screen(contacts)
        var changes = contacts.list.changes.makeAsyncIterator()
        /// What a loop `for await change in contacts.list.changes` does, until `isDone`.
        func follow(_ what: String, until isDone: () -> Bool) async {
            // The list may be ahead of what the screen was told.
            while !isDone() || !screen.isRight, let change = await changes.next() {
                screen.apply(change)
            }
            check(what, isDone() && screen.isRight)
        }
        func letters() -> String { contacts.sections.compactMap(\.value).joined() }
        check("sections A, B, E and G", letters() == "ABEG" && screen.isRight)

        // 1. A save of the background: the view context follows by itself.
        try await container.performBackgroundTask(author: "sync") { context in
            for name in ["Donald", "Alonzo"] { Contact(in: context).name = name }
            try context.save()
        }
        await follow("a new section D, and one more in A") {
            letters() == "ABDEG" && contacts.sections[0].count == 3
        }

        // 2. An edit of the view shows before it is saved. It ends a section and begins another.
        let barbara = try view.fetch(Contact.where { $0.name == "Barbara" })[0]
        barbara.name = "Zhores"
        await follow("an edit moves a row to a new section Z") { letters() == "ADEGZ" }
        view.rollback()
        await follow("rollback moves it back") { letters() == "ABDEG" }

        // 3. A batch of the background: no objects are made, and the list follows all the same.
        try await container.performBackgroundTask { context in
            _ = try context.batchDelete(Contact.where { $0.name.hasPrefix("A") })
        }
        await follow("a section ends with its rows") { letters() == "BDEG" }

        // 4. Many saves while the screen follows: what it is told of may be several saves at once.
        let work = Task {
            try await container.performBackgroundTask { context in
                for round in 0..<300 {
                    let all = try context.fetch(Contact.all)
                    let letter = "ABCDEFGHIJ".randomElement() ?? "A"
                    if round % 3 == 2, let one = all.randomElement() { context.delete(one) }
                    if round % 3 == 1 { all.randomElement()?.name = "\(letter)-\(round)" }
                    if round % 3 == 0 { Contact(in: context).name = "\(letter)+\(round)" }
                    try context.save()
                }
                Contact(in: context).name = "last"
                try context.save()
            }
        }
        await follow("the screen follows 300 saves without a reload") {
            contacts.sections.last?.value == "L"
        }
        try await work.value
        check("it was loaded once", screen.reloads == 1)

        // 5. Another order and filter take the place of the first ones, in the same list.
        contacts.list.descriptor = Contact.where { $0.initial < "L" }
            .sorted { [$0.name.descending] }
        await follow("another request, shown anew") { screen.reloads == 2 }
        check("without section L", contacts.sections.allSatisfy { ($0.value ?? "L") < "L" })
        let names = contacts.sections[0].map(\.name)
        check("names descend in a section", names == names.sorted(by: >))
    }
}
